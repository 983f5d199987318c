package operator

import (
	"context"
	"os"
	"time"

	"github.com/go-logr/logr"
)

// standstill is after how long without running another replica may lead: it takes over when the
// Lease has not been renewed for 15 s, which is tried every two.
const standstill = 10 * time.Second

// lookPeriod is how often it is looked whether the process has run.
const lookPeriod = time.Second

// endAfterStandstill ends the process if it stood still for so long that another replica may lead
// (SIGSTOP, a frozen node, no processor). The leader election would find out only ten
// seconds later, and all that is under way would be done beside the other leader. Nothing is
// released: the Lease may be the other's.
func endAfterStandstill(ctx context.Context, logger logr.Logger) error {
	if stood := awaitStandstill(ctx, time.Tick(lookPeriod), time.Now); stood > 0 {
		logger.Info("this process did not run for so long that another replica may lead: it ends, and starts again", "for", stood.Round(time.Second).String())
		os.Exit(1)
	}
	return nil
}

// awaitStandstill waits for a tick that comes as late as that, and returns how late; 0 if
// the context ends before.
func awaitStandstill(ctx context.Context, ticks <-chan time.Time, now func() time.Time) time.Duration {
	for {
		before := now()
		select {
		case <-ctx.Done():
			return 0
		case <-ticks:
		}
		if stood := now().Sub(before); stood >= standstill {
			return stood
		}
	}
}
