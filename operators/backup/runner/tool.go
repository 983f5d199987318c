package runner

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

// stopTimeout is how long a tool has to end after SIGTERM.
const stopTimeout = 10 * time.Second

// runTool runs a tool to its end. What it says goes to the container's log.
func (c Command) runTool(ctx context.Context, log io.Writer, env, args []string) error {
	said := &failure.Tail{}
	start := c.Start
	if start == nil {
		start = Execute
	}
	out := []io.Writer{log, said}
	if c.meter != nil {
		out = append(out, c.meter)
	}
	err := start(ctx, Process{Program: c.Tool, Dir: c.Scratch, Args: args, Env: env, Out: io.MultiWriter(out...)})
	last := said.LastWords()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return failure.New(v1alpha1.ReasonRunFailed, "the run was asked to stop")
	case last == "":
		return fmt.Errorf("run %s: %w", c.Tool, err)
	}
	return failure.New(failure.OfTool(last), "%s (%w)", last, err)
}

// Execute runs a tool as a process. It is asked to end when the context does, and killed when
// it does not.
func Execute(ctx context.Context, p Process) error {
	cmd := exec.CommandContext(ctx, p.Program, p.Args...) //nolint:gosec // whose Job it is names the tool
	cmd.Env = append(os.Environ(), p.Env...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.Dir, p.Out, p.Out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopTimeout
	return cmd.Run()
}
