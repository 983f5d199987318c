package queueing

import (
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// firstRetry is after how long an object is tried again that has failed once, and
	// lastRetry after how long at most.
	firstRetry, lastRetry = 50 * time.Millisecond, 30 * time.Second
)

// WithBackoff returns the options of the controller whose edits these are, by which it tries
// a failed object again after 50 ms, then twice as long each time, up to 30 s. What waits
// for something does not pass through it.
func (e *Edits) WithBackoff(options controller.Options) controller.Options {
	e.backoff.TypedRateLimiter = workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry)
	options.RateLimiter = &e.backoff
	return options
}

// backoff counts the failures of each object. A controller forgets them whenever a
// reconcile returns no error: one that was only put off has not succeeded.
type backoff struct {
	workqueue.TypedRateLimiter[reconcile.Request]
	lock   sync.Mutex
	putOff map[reconcile.Request]struct{}
}

// putOffReconcile notes that a reconcile returns without having been made.
func (b *backoff) putOffReconcile(request reconcile.Request) {
	b.lock.Lock()
	defer b.lock.Unlock()
	b.putOff[request] = struct{}{}
}

// Forget implements workqueue.TypedRateLimiter. The controller calls it right after the reconcile.
func (b *backoff) Forget(request reconcile.Request) {
	b.lock.Lock()
	_, was := b.putOff[request]
	delete(b.putOff, request)
	b.lock.Unlock()
	if !was {
		b.TypedRateLimiter.Forget(request)
	}
}
