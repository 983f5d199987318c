package clusterwide_test

import (
	"sync"
	"testing"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

const (
	// probeEvery is how often the API server is asked, and prompt how soon it
	// answers on a machine that has a processor for it.
	probeEvery, prompt = 50 * time.Millisecond, 50 * time.Millisecond
)

// stalls measures for how long a machine that does much else kept this process and
// its API server waiting: what it adds to every deadline is no fault of an operator.
func stalls(t *testing.T, r *rig.Test, group string) (stop func() time.Duration) {
	t.Helper()
	over := make(chan struct{})
	var lost time.Duration
	var ended sync.WaitGroup
	ended.Go(func() {
		ticker := time.NewTicker(probeEvery)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case <-over:
				return
			case <-ticker.C:
			}
			_ = r.Get(&v1alpha1.PDGroup{}, group) // how long it took is all that counts
			lost += max(0, time.Since(last)-probeEvery-prompt)
			last = time.Now()
		}
	})
	stop = sync.OnceValue(func() time.Duration {
		close(over)
		ended.Wait()
		return lost
	})
	t.Cleanup(func() { stop() })
	return stop
}
