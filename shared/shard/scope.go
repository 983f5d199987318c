package shard

import (
	"context"
	"maps"
	"slices"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// nowhere is what the caches of a shard without namespaces are limited to, for no name at
// all means all namespaces. No namespace can be called so.
const nowhere = "_"

// Scope is where one run of an operator acts: the namespaces that had the label when it
// began and have had it ever since. One that gets the label is for the next run.
type Scope struct {
	lock sync.Mutex
	// within ends, for each namespace, when it leaves.
	within map[string]context.Context
	leave  map[string]context.CancelFunc
	// acted are the namespaces in which something was reconciled.
	acted map[string]bool
}

func newScope(ctx context.Context, names []string) *Scope {
	s := &Scope{within: map[string]context.Context{}, leave: map[string]context.CancelFunc{}, acted: map[string]bool{}}
	for _, name := range names {
		s.within[name], s.leave[name] = context.WithCancel(ctx)
	}
	return s
}

// Namespaces are those whose objects the caches hold.
func (s *Scope) Namespaces() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	if len(s.within) == 0 {
		return []string{nowhere}
	}
	return slices.Sorted(maps.Keys(s.within))
}

// Gate lets a reconcile through for an object of a namespace of the scope, and ends it when
// the namespace leaves.
func (s *Scope) Gate(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		within := s.enter(request.Namespace)
		if within == nil {
			return reconcile.Result{}, nil
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(within, cancel)()
		result, err := inner.Reconcile(ctx, request)
		if within.Err() != nil {
			return reconcile.Result{}, nil // its object is another set's to look at again
		}
		return result, err
	})
}

// enter returns what ends when the namespace leaves; nil if it is not of the scope.
func (s *Scope) enter(namespace string) context.Context {
	s.lock.Lock()
	defer s.lock.Unlock()
	within := s.within[namespace]
	if within == nil || within.Err() != nil {
		return nil
	}
	s.acted[namespace] = true
	return within
}

// removeNamespace takes a namespace out.
func (s *Scope) removeNamespace(namespace string) {
	s.lock.Lock()
	defer s.lock.Unlock()
	if leave := s.leave[namespace]; leave != nil {
		leave()
	}
}

// close ends the scope with its run: the context of the program, which lives on, would keep what
// it has of each namespace.
func (s *Scope) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, leave := range s.leave {
		leave()
	}
}

// releasedNamespaces are the namespaces that have left and in which something was reconciled.
func (s *Scope) releasedNamespaces() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	var out []string
	for name := range s.acted {
		if s.within[name].Err() != nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
