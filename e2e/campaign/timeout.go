package campaign

import (
	"context"
	"time"
)

// tick is how often a running timeout looks at the clock.
const tick = 100 * time.Millisecond

// withRunningTimeout returns a context that ends, with a cause, when so much time has
// passed in which this process could run. On a machine that does much else a
// process is held up for seconds, and that is no failure: such a pause
// counts as two ticks.
func withRunningTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		last := time.Now()
		for left := d; left > 0; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			now := time.Now()
			left -= min(now.Sub(last), 2*tick)
			last = now
		}
		cancel(cause)
	}()
	return ctx, func() { cancel(nil) }
}

// trySleep lets time pass, and says whether it was let: not if the context ended.
func trySleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
