package operator

import (
	"errors"
	"net/http"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
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
