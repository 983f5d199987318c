package queueing

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// waiting is a reconciler that waits until it is told to go on.
type waiting struct {
	begun   chan reconcile.Request
	proceed chan struct{}
	results chan reconcile.Result
}

func (w waiting) Reconcile(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
	w.begun <- request
	<-w.proceed
	return reconcile.Result{}, nil
}

// S M4, P10: however many objects of a namespace wait for a PD, others are reconciled.
func TestP10ANamespaceDoesNotTakeAllWorkers(t *testing.T) {
	clock := time.Unix(1800000000, 0)
	inner := waiting{begun: make(chan reconcile.Request), proceed: make(chan struct{}), results: make(chan reconcile.Result)}
	queue := priorityqueue.New[reconcile.Request]("fair")
	defer queue.ShutDown()
	edits := NewEdits()
	require.NoError(t, edits.begin(t.Context(), queue))
	f := edits.NewFairReconciler(3, func() time.Time { return clock }, inner)
	reconciled := func(namespace, name string) reconcile.Result {
		result, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}})
		require.NoError(t, err)
		return result
	}
	begin := func(namespace string) {
		go func() { inner.results <- reconciled(namespace, "a") }()
		assert.Equal(t, namespace, (<-inner.begun).Namespace)
	}
	end := func() {
		inner.proceed <- struct{}{}
		assert.Zero(t, <-inner.results)
	}
	queued := func(names ...string) {
		t.Helper()
		for _, name := range names {
			require.Positive(t, queue.Len(), "%s is not queued again", name)
			next, _ := queue.Get()
			assert.Equal(t, name, next.Name)
			queue.Done(next)
		}
		assert.Zero(t, queue.Len())
	}

	begin("slow")
	begin("slow")
	begin("slow")
	for _, name := range []string{"b", "c", "b"} {
		assert.Zero(t, reconciled("slow", name), "its namespace has all that it may have")
	}
	queued()
	begin("other")
	end()
	end()
	end()
	end()
	queued("c", "b")
	for range 3 {
		begin("slow")
	}
	end()
	clock = clock.Add(slowReconcile)
	assert.Zero(t, reconciled("slow", "d"), "two wait, so it gets no third")
	assert.Zero(t, reconciled("slow", "e"))
	queued()
	end()
	queued("d")
	begin("slow")
	end()
	end()
	clock = clock.Add(time.Hour)
	for range 3 {
		begin("slow")
	}
	for range 3 {
		end()
	}
}
