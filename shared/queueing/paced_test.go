package queueing

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestABurstOfEventsIsOneMoreReconcile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := map[string]int{}
		p := NewEdits().NewPacedReconciler(reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			runs[r.Name]++
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}))
		event := func(name string) time.Duration {
			result, err := p.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: name}})
			require.NoError(t, err)
			return result.RequeueAfter
		}

		assert.Equal(t, time.Hour, event("a"))
		<-time.After(pace / 4)
		assert.Equal(t, pace*3/4, event("a"))
		assert.Equal(t, time.Hour, event("b"), "others do not wait")
		<-time.After(pace / 4)
		assert.Equal(t, pace/2, event("a"))
		assert.Equal(t, map[string]int{"a": 1, "b": 1}, runs)
		<-time.After(pace / 2)
		assert.Equal(t, time.Hour, event("a"))
		assert.Equal(t, map[string]int{"a": 2, "b": 1}, runs)

		<-time.After(pruneEvery)
		event("b")
		assert.Len(t, p.(*paced).ended, 1, "what is not reconciled is forgotten")
	})
}
