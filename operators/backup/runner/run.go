package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Run carries a command out and writes its result. The error is for the container's log
// and exit code.
func (c Command) Run(ctx context.Context, log io.Writer) error {
	if c.Verb == "install" {
		return hook.Install(c.Into)
	}
	if c.Progress != "" {
		c.meter = progress.NewMeter(time.Now)
		defer serveProgress(ctx, c.Progress, c.meter, log)()
	}
	out, err := c.runCommand(ctx, log)
	switch {
	case err == nil:
		return writeResult(out, c.Result)
	case errors.Is(err, errBegun):
		return errors.Join(fmt.Errorf("%s: %s", out.Reason, out.Message), err, writeResult(out, c.Result))
	}
	out = failure.NewResult(err, v1alpha1.ReasonRunFailed, false)
	return errors.Join(err, writeResult(out, c.Result))
}

// tellTimeout bounds one answer of tell.
const tellTimeout = 10 * time.Second

// serveProgress answers at an address how far the tool is, until what is returned is called. A run does
// not fail for it.
func serveProgress(ctx context.Context, at string, meter *progress.Meter, log io.Writer) (stop func()) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", at)
	if err != nil {
		_, _ = fmt.Fprintf(log, "backup-runner: cannot serve the run's progress: %v\n", err)
		return func() {}
	}
	server := &http.Server{Handler: meter, ReadTimeout: tellTimeout, WriteTimeout: tellTimeout}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l) // until it is closed
	}()
	return func() {
		_ = server.Close() // what is being answered does not matter any more
		<-ended
	}
}

func (c Command) runCommand(ctx context.Context, log io.Writer) (result.Result, error) {
	switch c.Verb {
	case VerbBackup:
		return c.backup(ctx, log)
	case VerbRestore:
		return c.restore(ctx, log)
	case VerbLog:
		return c.keepLog(ctx, log)
	}
	return c.clean(ctx, log)
}

// clean deletes the files of a Backup. A folder that is not its own is left alone, and
// nothing of the Backup is there then.
func (c Command) clean(ctx context.Context, log io.Writer) (result.Result, error) {
	p, err := c.Storage.Open(ctx)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = p.Blobs.Close() }() // nothing was left unwritten
	there, err := p.Remove(ctx, c.UID)
	if err == nil && !there {
		_, _ = fmt.Fprintf(log, "folder %s of %s has no files of the Backup: nothing was deleted\n", p.Folder, p.Name())
	}
	return result.Result{}, err
}
