package queueing

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

func named(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

// The queue of controller-runtime hands an edit out before what waited longer, whether
// that came from a list or from events, and also if the object itself waits already.
func TestAnEditComesFirst(t *testing.T) {
	group := func(name string) *v1alpha1.PDGroup {
		return &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Generation: 1}}
	}
	queue := priorityqueue.New[reconcile.Request]("edits")
	defer queue.ShutDown()
	usual, edits := &handler.EnqueueRequestForObject{}, NewEdits()
	for n := range 50 {
		usual.Create(t.Context(), event.CreateEvent{Object: group(fmt.Sprintf("listed%d", n)), IsInInitialList: true}, queue)
		usual.Generic(t.Context(), event.GenericEvent{Object: group(fmt.Sprintf("polled%d", n))}, queue)
	}
	after := group("listed49")
	after.Generation = 2
	edits.handler().Update(t.Context(), event.UpdateEvent{ObjectOld: group("listed49"), ObjectNew: after}, queue)
	assert.True(t, edits.Has(named("listed49")))

	first, priority, _ := queue.GetWithPriority()
	assert.Equal(t, named("listed49"), first)
	assert.Equal(t, editPriority, priority)
	second, priority, _ := queue.GetWithPriority()
	assert.Equal(t, named("polled0"), second)
	assert.Equal(t, otherPriority, priority)
}

// An edit that comes within the pace of a burst is acted on at once, and once.
func TestAnEditDoesNotWaitForABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, edits := 0, NewEdits()
		p := edits.NewPacedReconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			runs++
			return reconcile.Result{RequeueAfter: time.Hour}, nil
		}))
		reconciled := func() reconcile.Result {
			result, err := p.Reconcile(t.Context(), named("a"))
			require.NoError(t, err)
			return result
		}
		over := reconcile.Result{RequeueAfter: time.Hour, Priority: ptr.To(otherPriority)}

		assert.Equal(t, over, reconciled())
		assert.Equal(t, reconcile.Result{RequeueAfter: pace}, reconciled(), "it keeps the priority that it came with")
		edits.open[named("a")] = struct{}{}
		assert.Equal(t, over, reconciled(), "what an edit asks for later is no edit")
		assert.Equal(t, reconcile.Result{RequeueAfter: pace}, reconciled())
		assert.Equal(t, 2, runs)
		assert.Empty(t, edits.open)
	})
}

// P10 and edits: a namespace whose objects have all its workers has one more for an edit.
func TestAnEditHasAWorkerOfItsOwn(t *testing.T) {
	queue := priorityqueue.New[reconcile.Request]("edits")
	defer queue.ShutDown()
	edits := NewEdits()
	require.NoError(t, edits.begin(t.Context(), queue))
	ran := 0
	f := edits.NewFairReconciler(2, time.Now, edits.NewReconciler(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		ran++
		return reconcile.Result{}, nil
	}))).(*fair)
	for _, name := range []string{"1", "2"} {
		_, entered := f.enter(named(name))
		require.True(t, entered)
	}
	reconciled := func(name string) bool {
		before := ran
		result, err := f.Reconcile(t.Context(), named(name))
		require.NoError(t, err)
		assert.Zero(t, result)
		return ran > before
	}
	edits.open[named("a")] = struct{}{}
	assert.False(t, reconciled("b"))
	assert.True(t, reconciled("a"))
	assert.False(t, reconciled("a"), "it is no edit any more")
	edits.open[named("c")], edits.open[named("d")] = struct{}{}, struct{}{}
	leave, entered := f.enter(named("c"))
	require.True(t, entered)
	assert.False(t, reconciled("d"), "edits do not take all workers either")
	assert.True(t, edits.Has(named("d")), "it is still one")

	leave()
	next, priority, _ := queue.GetWithPriority()
	assert.Equal(t, named("d"), next, "b and a wait for one that is no edit")
	assert.Equal(t, editPriority, priority)
	assert.Zero(t, queue.Len())
}
