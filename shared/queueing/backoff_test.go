package queueing

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

func TestFailuresAreRetriedSoonAndThenLessOften(t *testing.T) {
	limiter, request := NewEdits().WithBackoff(controller.Options{}).RateLimiter, reconcile.Request{}
	assert.Equal(t, firstRetry, limiter.When(request))
	assert.Equal(t, 2*firstRetry, limiter.When(request))
	for range 20 {
		limiter.When(request)
	}
	assert.Equal(t, lastRetry, limiter.When(request))
	limiter.Forget(request)
	assert.Equal(t, firstRetry, limiter.When(request))
}

// Each of the first retries comes too early for the pace, and is put off. It has failed all the same.
func TestAReconcileThatIsPutOffForgetsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lasting = 10 * time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), lasting)
		defer cancel()
		tries := 0
		edits := NewEdits()
		failing := edits.NewFairReconciler(8, time.Now, edits.NewPacedReconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			tries++
			return reconcile.Result{}, errors.New("it fails")
		})))
		c, err := controller.NewUnmanaged("failing", edits.WithBackoff(controller.Options{Reconciler: failing, SkipNameValidation: ptr.To(true)}))
		require.NoError(t, err)
		require.NoError(t, c.Watch(source.Func(func(_ context.Context, q workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "a", Name: "b"}})
			return nil
		})))
		require.NoError(t, c.Start(ctx))
		most := 11 + int(lasting/lastRetry) // ten until it is 30 s
		assert.LessOrEqual(t, tries, most)
		assert.Greater(t, tries, most-4)
	})
}
