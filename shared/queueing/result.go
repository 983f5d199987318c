package queueing

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/shared/step"
)

// ResultOf translates how a reconcile ended for controller-runtime. The object is reconciled again
// after each of the limits at the latest; 0 asks for nothing. A Stall is not retried, unless
// After says when: what a user changes wakes the object up.
func ResultOf(o step.Outcome, limits ...time.Duration) (reconcile.Result, error) {
	if o.Kind == step.KindFail {
		return reconcile.Result{}, o.Err
	}
	result := reconcile.Result{}
	if o.Kind != step.KindDone {
		result.RequeueAfter = o.After
	}
	for _, limit := range limits {
		result = RequeueWithin(result, limit)
	}
	return result, nil
}

// RequeueWithin returns a result with which the object is reconciled again after d at the latest; 0
// asks for nothing.
func RequeueWithin(result reconcile.Result, d time.Duration) reconcile.Result {
	if d > 0 && (result.RequeueAfter == 0 || d < result.RequeueAfter) {
		result.RequeueAfter = d
	}
	return result
}
