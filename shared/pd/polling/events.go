package polling

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// queue is what a controller takes its work from.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// subscriber is a controller that gets changes until its context ends.
type subscriber struct {
	ctx      context.Context
	queue    queue
	handlers []handler.EventHandler
}

// Events returns a source for a controller: a GenericEvent for a PDGroup, of
// which only name and namespace are filled in, whenever the View of its PD has
// changed, for better or for worse. The View is in place before the event.
// The handlers say whom to wake; without any, it is the PDGroup itself. They
// run in the goroutine that polls that PD and should only look into caches.
func (p *Poller) Events(handlers ...handler.EventHandler) source.Source {
	if len(handlers) == 0 {
		handlers = []handler.EventHandler{&handler.EnqueueRequestForObject{}}
	}
	return source.Func(func(ctx context.Context, q queue) error {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.subscribers = append(p.subscribers, subscriber{ctx: ctx, queue: q, handlers: handlers})
		return nil
	})
}

// notifySubscribers wakes the subscribers. A queue takes a request without blocking, so
// nothing is lost and nothing is waited for.
func (p *Poller) notifySubscribers(key types.NamespacedName) {
	p.mu.Lock()
	p.subscribers = slices.DeleteFunc(p.subscribers, func(s subscriber) bool { return s.ctx.Err() != nil })
	subscribers := slices.Clone(p.subscribers)
	p.mu.Unlock()
	group := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	for _, s := range subscribers {
		for _, h := range s.handlers {
			h.Generic(s.ctx, event.GenericEvent{Object: group}, s.queue)
		}
	}
}
