package operator

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
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
	f := Env{PerNamespace: 3, Now: func() time.Time { return clock }}.Fair(NewEdits(), inner)
	reconciled := func(namespace string) reconcile.Result {
		result, err := f.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "a"}})
		require.NoError(t, err)
		return result
	}
	begin := func(namespace string) {
		go func() { inner.results <- reconciled(namespace) }()
		assert.Equal(t, namespace, (<-inner.begun).Namespace)
	}
	end := func() {
		inner.proceed <- struct{}{}
		assert.Zero(t, <-inner.results)
	}
	postponed := reconcile.Result{RequeueAfter: fairDelay}

	begin("slow")
	begin("slow")
	begin("slow")
	assert.Equal(t, postponed, reconciled("slow"), "it has all that it may have")
	begin("other")
	end()
	end()
	end()
	end()
	for range 3 {
		begin("slow")
	}
	end()
	clock = clock.Add(slowReconcile)
	assert.Equal(t, postponed, reconciled("slow"), "two wait, so it gets no third")
	end()
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
