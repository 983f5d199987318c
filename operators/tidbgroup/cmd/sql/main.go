// Command sql runs SQL against a living TiDB. The Jobs that the tidbgroup operator
// makes for spec.sql run it, in the operator's image.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqlrun"
)

func main() { os.Exit(run()) }

func run() int {
	r, err := sqlrun.Parse(os.Args[1:])
	if err != nil {
		printMessage("%v", err)
		return 2
	}
	r.Say = printMessage
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	done, err := r.Do(ctx)
	if err == nil {
		printMessage("%d done", done)
		return 0
	}
	printMessage("%v", err)
	// Kubernetes shows it as the container's message, which the operator reads.
	if err := os.WriteFile(r.Result, []byte(err.Error()), 0o600); err != nil { //nolint:gosec // whose Job it is names the file
		printMessage("write the result: %v", err)
	}
	return 1
}

func printMessage(format string, args ...any) {
	fmt.Printf("[%s] sql: %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}
