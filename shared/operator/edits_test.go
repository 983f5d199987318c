package operator

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/watch"
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
	assert.True(t, edits.has(named("listed49")))

	first, priority, _ := queue.GetWithPriority()
	assert.Equal(t, named("listed49"), first)
	assert.Equal(t, editPriority, priority)
	second, priority, _ := queue.GetWithPriority()
	assert.Equal(t, named("polled0"), second)
	assert.Equal(t, otherPriority, priority)
}

// lister is a reconciler of PDGroups that waits for a word before it ends.
type lister struct {
	edits   *Edits
	began   chan string
	proceed chan struct{}
}

func (l *lister) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	select {
	case l.began <- request.Name:
	case <-ctx.Done():
	}
	select {
	case <-l.proceed:
	case <-ctx.Done():
	}
	return reconcile.Result{}, nil
}

func (l *lister) definition() Definition {
	return Definition{
		Name: "lister", Kind: v1alpha1.KindPDGroup, List: func() client.ObjectList { return &v1alpha1.PDGroupList{} },
		Setup: func(_ context.Context, env Env) error {
			return l.edits.For(ctrl.NewControllerManagedBy(env.Manager).Named("lister"), &v1alpha1.PDGroup{}, watch.Own()).
				WithOptions(env.Controller).Complete(env.Fair(l.edits, l.edits.Paced(l)))
		},
	}
}

// A person edits a group while an operator that has just started works off its list.
func TestAnEditComesBeforeAListThatIsWorkedOff(t *testing.T) {
	require.NoError(t, api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "listed"}}))
	const groups = 20
	for n := range groups {
		name := fmt.Sprintf("g%02d", n)
		create(t, "listed", name)
		g := &v1alpha1.PDGroup{}
		require.NoError(t, api.Get(t.Context(), client.ObjectKey{Namespace: "listed", Name: name}, g))
		g.Status.ObservedGeneration = g.Generation
		require.NoError(t, api.Status().Update(t.Context(), g))
	}
	flags, err := Parse("lister", []string{"--namespaces=listed", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--concurrency=1"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	l := &lister{edits: NewEdits(), began: make(chan string), proceed: make(chan struct{})}
	ended := make(chan error)
	go func() { ended <- Run(ctx, access, Alone(l.definition()), flags) }()
	defer func() {
		cancel()
		assert.NoError(t, <-ended)
	}()
	next := func() string {
		select {
		case name := <-l.began:
			return name
		case <-ctx.Done():
			require.Fail(t, "nothing is reconciled")
			return ""
		}
	}

	seen := map[string]bool{next(): true}
	metric(t, "workqueue_depth", "lister") // fills the caches that metrics are read from also when the manager has ended
	edited := fmt.Sprintf("g%02d", groups-1)
	if seen[edited] {
		edited = fmt.Sprintf("g%02d", groups-2)
	}
	touch(t, "listed", edited, "b")
	require.Eventually(t, func() bool {
		return l.edits.has(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "listed", Name: edited}})
	}, patience, tick)
	l.proceed <- struct{}{}
	assert.Equal(t, edited, next(), "it comes before %d others that are listed", groups-2)
}

// An edit that comes within the pace of a burst is acted on at once, and once.
func TestAnEditDoesNotWaitForABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, edits := 0, NewEdits()
		p := edits.Paced(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
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
	edits := NewEdits()
	f := Env{PerNamespace: 2, Now: time.Now}.Fair(edits, edits.Acted(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	}))).(*fair)
	for range 2 {
		_, entered := f.enter("ns", false)
		require.True(t, entered)
	}
	edits.open[named("a")] = struct{}{}
	reconciled := func(name string) reconcile.Result {
		result, err := f.Reconcile(t.Context(), named(name))
		require.NoError(t, err)
		return result
	}
	assert.Equal(t, reconcile.Result{RequeueAfter: fairDelay}, reconciled("b"))
	assert.Zero(t, reconciled("a"))
	assert.Equal(t, reconcile.Result{RequeueAfter: fairDelay}, reconciled("a"), "it is no edit any more")
	_, entered := f.enter("ns", true)
	require.True(t, entered)
	edits.open[named("a")] = struct{}{}
	assert.Equal(t, reconcile.Result{RequeueAfter: fairDelay}, reconciled("a"), "edits do not take all workers either")
	assert.True(t, edits.has(named("a")), "it is still one")
}
