package hook

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Say reports progress to the user; nil reports none.
type Say func(format string, args ...any)

// Logf does, also for nil.
func (s Say) Logf(format string, args ...any) {
	if s != nil {
		s(format, args...)
	}
}

// Command is a command line that has been read.
type Command interface {
	// Run carries it out, and bounds itself.
	Run(ctx context.Context, say Say) error
}

// Main is the whole of a program: it reads a command line, carries it out, and ends
// the process. name is that of the program. What it says goes to the log of the
// container whose hook it is; an error also to standard error, which Kubernetes shows in
// an Event.
func Main[C Command](name string, parse func(args []string, env func(string) string) (C, error)) {
	command, err := parse(os.Args[1:], os.Getenv)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(2)
	}
	out := containerLog()
	say := func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "[%s] %s: %s\n", time.Now().UTC().Format(time.RFC3339), name, fmt.Sprintf(format, args...))
	}
	if err := command.Run(context.Background(), say); err != nil {
		say("%v", err)
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// containerLog is the log of the container: what a hook prints is not kept.
func containerLog() io.Writer {
	f, err := os.OpenFile("/proc/1/fd/1", os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return io.Discard
	}
	return f
}

// Expand fills in $(POD_NAME) and $(NAMESPACE): Kubernetes does in a container's
// arguments, but not in the commands of hooks.
func Expand(text string, env func(string) string) string {
	for _, name := range []string{"POD_NAME", "NAMESPACE"} {
		text = strings.ReplaceAll(text, "$("+name+")", env(name))
	}
	return text
}

// Pause waits between two looks; false if the context ended.
func Pause(ctx context.Context, every time.Duration) bool {
	timer := time.NewTimer(every)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
