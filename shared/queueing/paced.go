package queueing

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// pace is how soon an object is reconciled again. What happens to the members of a
	// group comes in bursts, and each reconcile reads all of them.
	pace = 100 * time.Millisecond
	// pruneEvery is how often those are forgotten that were not reconciled of late.
	pruneEvery = time.Minute
)

// paced makes one reconcile of a burst of events: the first event is acted on at once,
// what follows within pace of that is acted on together. An edit does not wait.
type paced struct {
	inner reconcile.Reconciler
	edits *Edits

	lock   sync.Mutex
	ended  map[reconcile.Request]time.Time
	pruned time.Time
}

// NewPacedReconciler is NewReconciler for a reconciler that reconciles no object twice
// within a tenth of a second, unless it was edited.
func (e *Edits) NewPacedReconciler(inner reconcile.Reconciler) reconcile.Reconciler {
	return &paced{inner: e.NewReconciler(inner), edits: e, ended: map[reconcile.Request]time.Time{}}
}

// Reconcile implements reconcile.Reconciler.
func (p *paced) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	if left := p.remainingWait(request, time.Now()); left > 0 && !p.edits.Has(request) {
		p.edits.backoff.putOffReconcile(request)
		return reconcile.Result{RequeueAfter: left}, nil
	}
	defer func() { p.end(request, time.Now()) }()
	return p.inner.Reconcile(ctx, request)
}

// remainingWait is for how long an object still has to wait.
func (p *paced) remainingWait(request reconcile.Request, now time.Time) time.Duration {
	p.lock.Lock()
	defer p.lock.Unlock()
	ended, known := p.ended[request]
	if !known {
		return 0
	}
	return ended.Add(pace).Sub(now)
}

func (p *paced) end(request reconcile.Request, now time.Time) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.ended[request] = now
	if now.Sub(p.pruned) < pruneEvery {
		return
	}
	p.pruned = now
	for of, ended := range p.ended {
		if now.Sub(ended) >= pace {
			delete(p.ended, of)
		}
	}
}
