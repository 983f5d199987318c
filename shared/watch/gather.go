package watch

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
)

// afterWords is how soon a reconcile is woken up that only repeats what a status says, if
// nothing has changed in it but words and numbers. P11 allows five seconds until what
// blocks is named.
const afterWords = time.Second

// Gather wakes up the objects that wake names, a moment after an event, so that a burst
// of events is one reconcile, and later if no condition of a group has turned. It is for
// those that only mirror what groups do: nothing waits for them.
func Gather(moment time.Duration, wake handler.MapFunc) handler.EventHandler {
	later := func(ctx context.Context, object client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request], moment time.Duration) {
		for _, request := range wake(ctx, object) {
			queue.AddAfter(request, moment)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.Object, q, moment)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if turned(e.ObjectOld, e.ObjectNew) {
				later(ctx, e.ObjectNew, q, moment)
			} else {
				later(ctx, e.ObjectNew, q, afterWords)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.Object, q, moment)
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			later(ctx, e.Object, q, moment)
		},
	}
}

// turned reports whether anything else has changed in a group than what its status says
// beside the states of its conditions.
func turned(before, after client.Object) bool {
	if !apply.SameButStatus(before, after) {
		return true
	}
	b, ok := before.(v1alpha1.Group)
	a, also := after.(v1alpha1.Group)
	return !ok || !also || !slices.EqualFunc(b.GetGroupStatus().Conditions, a.GetGroupStatus().Conditions, func(b, a metav1.Condition) bool {
		return b.Type == a.Type && b.Status == a.Status && b.ObservedGeneration == a.ObservedGeneration
	})
}
