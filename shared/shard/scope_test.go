package shard

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// of is a request for an object of a namespace.
func of(namespace string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: "a"}}
}

// P12.
func TestP12NothingIsReconciledOutsideOfTheShard(t *testing.T) {
	s := newScope(t.Context(), []string{"shop", "blog"})
	var seen []string
	gate := s.Gate(reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
		seen = append(seen, r.Namespace)
		return reconcile.Result{RequeueAfter: 1}, nil
	}))
	ask := func(namespace string) reconcile.Result {
		result, err := gate.Reconcile(t.Context(), of(namespace))
		require.NoError(t, err)
		return result
	}
	assert.EqualValues(t, 1, ask("shop").RequeueAfter)
	assert.Zero(t, ask("other"))
	s.removeNamespace("blog")
	assert.Zero(t, ask("blog"))
	assert.Equal(t, []string{"shop"}, seen)
	assert.Empty(t, s.releasedNamespaces(), "nothing was done in the one that has left")
	s.removeNamespace("shop")
	assert.Zero(t, ask("shop"))
	assert.Equal(t, []string{"shop"}, seen)
	assert.Equal(t, []string{"shop"}, s.releasedNamespaces())
}

// P12.
func TestP12AReconcileEndsWhenItsNamespaceLeaves(t *testing.T) {
	s := newScope(t.Context(), []string{"shop", "blog"})
	gate := s.Gate(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
		s.removeNamespace("shop")
		if r.Namespace == "shop" {
			select {
			case <-ctx.Done():
			case <-time.After(waitFor):
				assert.Fail(t, "it was not ended")
			}
		}
		return reconcile.Result{}, errors.Join(ctx.Err(), errors.New("not done"))
	}))
	_, err := gate.Reconcile(t.Context(), of("shop"))
	require.NoError(t, err, "it is not tried again")
	_, err = gate.Reconcile(t.Context(), of("blog"))
	require.EqualError(t, err, "not done")
}

func TestAShardWithoutNamespacesIsNotAllNamespaces(t *testing.T) {
	assert.Equal(t, []string{"a", "b"}, newScope(t.Context(), []string{"b", "a"}).Namespaces())
	assert.Equal(t, []string{nowhere}, newScope(t.Context(), nil).Namespaces())
	assert.Error(t, CheckName(nowhere))
}

func TestTheNameOfAShardIsOneOfALease(t *testing.T) {
	for _, name := range []string{"a", "shop-1", "0"} {
		require.NoError(t, CheckName(name))
	}
	for _, name := range []string{"", "A", "a_b", "a.b", "-a"} {
		require.ErrorContains(t, CheckName(name), "as in shop-1: it is the value of label groups.tidb.dev/shard", name)
	}
}

// The context of the program lives on, and must keep nothing of each run.
func TestAScopeEndsWithItsRun(t *testing.T) {
	s := newScope(t.Context(), []string{"shop", "blog"})
	s.close()
	for _, within := range s.within {
		assert.Error(t, within.Err())
	}
}
