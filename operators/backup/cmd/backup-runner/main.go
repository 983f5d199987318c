// Command backup-runner runs a tool that copies a database, in the tool's image. The Jobs
// that the backup operator makes bring it into their pods.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/tidb-groups/tidb-groups/operators/backup/runner"
)

func main() { os.Exit(run()) }

func run() int {
	command, err := runner.Parse(os.Args[1:])
	if err != nil {
		fmt.Fprintf(os.Stderr, "backup-runner: %v\n", err)
		return 2
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()
	if err := command.Run(ctx, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "backup-runner: %v\n", err)
		return 1
	}
	return 0
}
