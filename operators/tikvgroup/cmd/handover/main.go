// Command handover gives the leaders of a TiKV store away before its process stops,
// and lets it lead again afterwards. The hooks of every TiKV pod call it; an init
// container of the operator's image copies it there.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/handover"
)

func main() {
	command, err := handover.Parse(os.Args[1:], os.Getenv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "handover: %v\n", err)
		os.Exit(2)
	}
	out := log()
	command.Job.Say = func(format string, args ...any) { say(out, format, args...) }
	if err := command.Run(context.Background()); err != nil {
		// Kubernetes shows what a hook prints in an Event.
		say(out, "%v", err)
		fmt.Fprintf(os.Stderr, "handover: %v\n", err)
		os.Exit(1)
	}
}

// log is the log of the container whose hook this is: nobody keeps what a hook prints.
func log() io.Writer {
	f, err := os.OpenFile("/proc/1/fd/1", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return io.Discard
	}
	return f
}

func say(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, "[%s] handover: %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
