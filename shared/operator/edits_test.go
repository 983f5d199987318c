package operator

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// lister is a reconciler of PDGroups that waits for a word before it ends.
type lister struct {
	edits   *queueing.Edits
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
			return l.edits.For(ctrl.NewControllerManagedBy(env.Manager).Named("lister"), &v1alpha1.PDGroup{}, watch.OwnPredicate()).
				WithOptions(env.Controller).Complete(l.edits.NewFairReconciler(env.PerNamespace, env.Now, l.edits.NewPacedReconciler(l)))
		},
	}
}

// A user edits a group while an operator that has just started works off its list.
func TestAnEditComesBeforeAQueuedList(t *testing.T) {
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
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	l := &lister{edits: queueing.NewEdits(), began: make(chan string), proceed: make(chan struct{})}
	ended := make(chan error)
	go func() { ended <- Run(ctx, access, NewProgram(l.definition()), flags) }()
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

	first := next()
	metric(t, "workqueue_depth", "lister") // fills the caches that metrics are read from also when the manager has ended
	// Three, as the queue may have one at its front by chance.
	var edited []string
	for n := 0; len(edited) < 3; n++ {
		name := fmt.Sprintf("g%02d", n)
		if name == first {
			continue
		}
		edited = append(edited, name)
		touch(t, "listed", name, "b")
		require.Eventually(t, func() bool {
			return l.edits.Has(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "listed", Name: name}})
		}, timeout, tick)
	}
	var then []string
	for range edited {
		l.proceed <- struct{}{}
		then = append(then, next())
	}
	assert.ElementsMatch(t, edited, then, "they come before %d others that are listed", groups-1-len(edited))
}
