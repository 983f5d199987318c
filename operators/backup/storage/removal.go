package storage

import (
	"context"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// cleanTimeout bounds the removal of what a failed backup wrote, once the run was asked to
// stop: it ends before the pod's grace does.
const cleanTimeout = 40 * time.Second

// RemoveFailedAttempt removes what a failed backup has written: half a backup is none. It does so
// also when the run was asked to stop.
func (p *Place) RemoveFailedAttempt(ctx context.Context, m Marker) error {
	ctx, cancel := boundRemoval(ctx)
	defer cancel()
	return p.RemoveAttempt(ctx, m)
}

// boundRemoval returns the context of the removal: it ends some time after the run was asked to
// stop, and not before.
func boundRemoval(ctx context.Context) (context.Context, context.CancelFunc) {
	clean, cancel := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		if hook.Pause(clean, cleanTimeout) {
			cancel()
		}
	})
	return clean, cancel
}
