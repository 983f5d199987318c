package queueing

import (
	"context"
	"sync"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// Priorities in the queue of a controller. What is there when an operator starts has
// handler.LowPriority.
const (
	// otherPriority is that of all other events, and of a reconcile that asked to be
	// called again.
	otherPriority = 0
	// editPriority is that of what a user changed.
	editPriority = 100
)

// Edits has a controller act first on what a user changed. It knows which objects of
// the controller's kind were changed and not reconciled since: neither NewPacedReconciler
// nor NewFairReconciler lets those wait.
type Edits struct {
	lock sync.Mutex
	open map[reconcile.Request]struct{}
	// queue is the controller's, from its start on.
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// backoff of the controller.
	backoff backoff
}

// NewEdits returns the Edits of one controller.
func NewEdits() *Edits {
	return &Edits{open: map[reconcile.Request]struct{}{}, backoff: backoff{putOff: map[reconcile.Request]struct{}{}}}
}

// For has a controller reconcile a kind of objects. Other events than edits pass if all
// predicates let them.
func (e *Edits) For(b *builder.Builder, object client.Object, predicates ...predicate.Predicate) *builder.Builder {
	edited := watch.EditedPredicate()
	return b.For(object, builder.WithPredicates(append(predicates, predicate.Not(edited))...)).
		Watches(object, e.handler(), builder.WithPredicates(edited)).
		WatchesRawSource(source.Func(e.begin))
}

// begin takes the queue of the controller, which starts no worker before.
func (e *Edits) begin(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	e.lock.Lock()
	defer e.lock.Unlock()
	e.queue = queue
	return nil
}

// handler queues what was edited before everything else.
func (e *Edits) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, event event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			e.queueEdit(event.Object, q)
		},
		UpdateFunc: func(_ context.Context, event event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			e.queueEdit(event.ObjectNew, q)
		},
	}
}

// queueEdit notes the edit before it queues it, so that no reconcile of it comes too early.
func (e *Edits) queueEdit(object client.Object, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(object)}
	e.lock.Lock()
	e.open[request] = struct{}{}
	e.lock.Unlock()
	queueRequest(q, request, editPriority)
}

// queueRequest queues an object with a priority.
func queueRequest(q workqueue.TypedRateLimitingInterface[reconcile.Request], request reconcile.Request, priority int) {
	if queue, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		queue.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(priority)}, request)
		return
	}
	q.Add(request)
}

// queueAgain queues an object that was handed out too early.
func (e *Edits) queueAgain(request reconcile.Request) {
	e.lock.Lock()
	_, edited := e.open[request]
	queue := e.queue
	e.lock.Unlock()
	priority := otherPriority
	if edited {
		priority = editPriority
	}
	queueRequest(queue, request, priority)
}

// Has reports whether an object was edited and not reconciled since.
func (e *Edits) Has(request reconcile.Request) bool {
	e.lock.Lock()
	defer e.lock.Unlock()
	_, open := e.open[request]
	return open
}

// forget forgets an edit that is about to be acted on.
func (e *Edits) forget(request reconcile.Request) {
	e.lock.Lock()
	defer e.lock.Unlock()
	delete(e.open, request)
}

// NewReconciler returns a reconciler whose reconciles act on edits. When one asks to be called
// again, that is no edit any more: else the queue would keep the priority forever.
func (e *Edits) NewReconciler(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		e.forget(request)
		result, err := inner.Reconcile(ctx, request)
		if err == nil && result.Priority == nil && result.RequeueAfter > 0 {
			result.Priority = ptr.To(otherPriority)
		}
		return result, err
	})
}
