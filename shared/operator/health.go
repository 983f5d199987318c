package operator

import (
	"errors"
	"net/http"
	"time"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// cachesSynced is ready once the manager's work has begun or, while another
// replica leads, once it could begin.
func cachesSynced(manager ctrl.Manager) healthz.Checker {
	return func(r *http.Request) error {
		if !manager.GetCache().WaitForCacheSync(r.Context()) {
			return errors.New("caches are not synced yet")
		}
		return nil
	}
}

// rateLimiter retries a failed object after 50 ms, then twice as long each
// time, up to 30 s. Waits do not pass through it.
func rateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](50*time.Millisecond, 30*time.Second)
}
