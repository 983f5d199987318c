package operator

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// slowReconcile is how long a reconcile takes that waits for somebody: for a PD or a
	// server that does not answer, mostly.
	slowReconcile = time.Second
	// workersWhileSlow is how many workers a namespace has while one of its reconciles
	// is slow.
	workersWhileSlow = 2
	// forEdits is how many workers a namespace may have beyond that for what a person
	// changed in it.
	forEdits = 1
	// fairDelay is how soon an object is looked at again whose namespace has all the
	// workers that it may have.
	fairDelay = 100 * time.Millisecond
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
}

// Fair returns a reconciler that leaves workers for other namespaces. edits are those of
// the same controller.
func (e Env) Fair(edits *Edits, inner reconcile.Reconciler) reconcile.Reconciler {
	return &fair{inner: inner, edits: edits, most: e.PerNamespace, now: e.Now, begun: map[string][]time.Time{}}
}

// Reconcile implements reconcile.Reconciler.
func (f *fair) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	leave, entered := f.enter(request.Namespace, f.edits.has(request))
	if !entered {
		return reconcile.Result{RequeueAfter: fairDelay}, nil
	}
	defer leave()
	return f.inner.Reconcile(ctx, request)
}

// enter takes a worker for a namespace, unless it has as many as it may have.
func (f *fair) enter(namespace string, edited bool) (leave func(), entered bool) {
	f.lock.Lock()
	defer f.lock.Unlock()
	now, most := f.now(), f.most
	for _, began := range f.begun[namespace] {
		if now.Sub(began) >= slowReconcile {
			most = min(most, workersWhileSlow)
		}
	}
	if edited {
		most += forEdits
	}
	if len(f.begun[namespace]) >= most {
		return nil, false
	}
	f.begun[namespace] = append(f.begun[namespace], now)
	return func() { f.leave(namespace, now) }, true
}

func (f *fair) leave(namespace string, began time.Time) {
	f.lock.Lock()
	defer f.lock.Unlock()
	all := f.begun[namespace]
	for i := range all {
		if all[i].Equal(began) {
			all = append(all[:i], all[i+1:]...)
			break
		}
	}
	if f.begun[namespace] = all; len(all) == 0 {
		delete(f.begun, namespace)
	}
}
