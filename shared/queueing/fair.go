package queueing

import (
	"context"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// slowReconcile is how long a reconcile takes that waits for an answer: of a PD or a
	// server that does not answer, mostly.
	slowReconcile = time.Second
	// workersWhileSlow is how many workers a namespace has while one of its reconciles
	// is slow.
	workersWhileSlow = 2
	// forEdits is how many workers a namespace may have beyond that for what a user
	// changed in it.
	forEdits = 1
)

// fair keeps one namespace from taking all workers of an operator (P10). A reconcile
// may have to wait for PD, whose answers are its cluster's own: others' objects are
// reconciled meanwhile by the workers that the namespace may not have.
type fair struct {
	inner reconcile.Reconciler
	edits *Edits
	most  int
	now   func() time.Time

	lock sync.Mutex
	// begun are the reconciles under way of each namespace, by when they began.
	begun map[string][]time.Time
	// waiting are the objects of each namespace that found it to have all its workers, in
	// their order. They are queued again when one of those is free.
	waiting map[string][]reconcile.Request
}

// NewFairReconciler returns a reconciler that leaves workers for other namespaces: one namespace has at
// most perNamespace of them.
func (e *Edits) NewFairReconciler(perNamespace int, now func() time.Time, inner reconcile.Reconciler) reconcile.Reconciler {
	return &fair{inner: inner, edits: e, most: perNamespace, now: now, begun: map[string][]time.Time{}, waiting: map[string][]reconcile.Request{}}
}

// Reconcile implements reconcile.Reconciler.
func (f *fair) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	leave, entered := f.enter(request)
	if !entered {
		f.edits.backoff.putOffReconcile(request)
		return reconcile.Result{}, nil
	}
	defer leave()
	return f.inner.Reconcile(ctx, request)
}

// enter takes a worker for an object. If its namespace has as many as it may have, the
// object waits for one of those.
func (f *fair) enter(request reconcile.Request) (leave func(), entered bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	namespace, now := request.Namespace, f.now()
	f.forget(request)
	if len(f.begun[namespace]) >= f.requestLimit(request, f.namespaceLimit(namespace, now)) {
		f.waiting[namespace] = append(f.waiting[namespace], request)
		return nil, false
	}
	f.begun[namespace] = append(f.begun[namespace], now)
	return func() { f.leave(namespace, now) }, true
}

// namespaceLimit is how many workers a namespace may have now.
func (f *fair) namespaceLimit(namespace string, now time.Time) int {
	for _, began := range f.begun[namespace] {
		if now.Sub(began) >= slowReconcile {
			return min(f.most, workersWhileSlow)
		}
	}
	return f.most
}

// requestLimit is how many workers the namespace of an object may have for it to be reconciled.
func (f *fair) requestLimit(request reconcile.Request, most int) int {
	if f.edits.Has(request) {
		return most + forEdits
	}
	return most
}

// forget takes an object off those that wait.
func (f *fair) forget(request reconcile.Request) {
	left := slices.DeleteFunc(f.waiting[request.Namespace], func(w reconcile.Request) bool { return w == request })
	if f.waiting[request.Namespace] = left; len(left) == 0 {
		delete(f.waiting, request.Namespace)
	}
}

// leave gives a worker back and queues as many objects as there are workers for now. None
// waits forever: others have the workers, and the last to finish finds all of them free.
func (f *fair) leave(namespace string, began time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	all := f.begun[namespace]
	if i := slices.IndexFunc(all, began.Equal); i >= 0 {
		all = slices.Delete(all, i, i+1)
	}
	if f.begun[namespace] = all; len(all) == 0 {
		delete(f.begun, namespace)
	}
	taken, most := len(all), f.namespaceLimit(namespace, f.now())
	for _, next := range slices.Clone(f.waiting[namespace]) {
		if taken >= f.requestLimit(next, most) {
			continue
		}
		taken++
		f.forget(next)
		f.edits.queueAgain(next)
	}
}
