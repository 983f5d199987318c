package runner

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// Run carries a command out and writes its result. The error is for the container's log
// and exit code.
func (c Command) Run(ctx context.Context, log io.Writer) error {
	if c.Verb == "install" {
		return hook.Install(c.Into)
	}
	out, err := c.do(ctx, log)
	switch {
	case err == nil:
		return leave(out, c.Result)
	case errors.Is(err, errBegun):
		return errors.Join(fmt.Errorf("%s: %s", out.Reason, out.Message), err, leave(out, c.Result))
	}
	out = resultOf(err, v1alpha1.ReasonRunFailed, false)
	return errors.Join(err, leave(out, c.Result))
}

func (c Command) do(ctx context.Context, log io.Writer) (result.Result, error) {
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
	p, err := c.Storage.open(ctx)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = p.bucket.Close() }() // nothing was left unwritten
	there, err := p.remove(ctx, c.UID)
	if err == nil && !there {
		_, _ = fmt.Fprintf(log, "folder %s of %s has no files of the Backup: nothing was deleted\n", p.Folder, p.name())
	}
	return result.Result{}, err
}
