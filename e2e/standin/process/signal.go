package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"
	"time"
)

// ErrHelp asks Main to end well without having run: --version and
// --config-check print what they have to and return it.
var ErrHelp = errors.New("nothing to run")

// Main runs fn until it returns, cancelling its context on SIGTERM, SIGINT and
// SIGQUIT, and returns the exit code: 0 when fn ended well or was asked to
// stop, 1 otherwise, with the cause as the last line on w.
func Main(w io.Writer, name string, fn func(ctx context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT)
	defer stop()
	err := fn(ctx)
	if err == nil || errors.Is(err, ErrHelp) || (ctx.Err() != nil && errors.Is(err, context.Canceled)) {
		return 0
	}
	// Nothing better is left to be done when even this write fails.
	_, _ = fmt.Fprintf(PrefixWriter(w, name), "level=FATAL msg=%q\n", err.Error())
	return 1
}

// WaitFor blocks for d, or until ctx ends; it returns ctx's error then.
func WaitFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
