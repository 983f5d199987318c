package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/index"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbclusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbclusters/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbclusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups;ticdcgroups;tidbgroups;tiflashgroups;tikvgroups;tiproxygroups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=restores,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// moment is for how long what the groups say is gathered before it is mirrored.
const moment = 100 * time.Millisecond

// Reconciler reconciles TidbClusters.
type Reconciler struct{ operator.Env }

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	return operator.Definition{
		Name: "tidbcluster", Kind: v1alpha1.KindTidbCluster,
		List:  func() client.ObjectList { return &v1alpha1.TidbClusterList{} },
		Setup: func(_ context.Context, env operator.Env) error { return (&Reconciler{env}).setup() },
	}
}

func (r *Reconciler) setup() error {
	changed, wants := builder.WithPredicates(watch.ChangedPredicate()), watch.Gather(moment, r.clustersOf)
	edits := queueing.NewEdits()
	b := edits.For(ctrl.NewControllerManagedBy(r.Manager), &v1alpha1.TidbCluster{}, watch.OwnPredicate()).
		Owns(&v1alpha1.Restore{}, changed).
		WithOptions(edits.WithBackoff(r.Controller))
	for _, component := range v1alpha1.ComponentTable() {
		b = b.Watches(component.New(), wants, changed)
	}
	if err := b.Complete(r.InScope(edits.NewFairReconciler(r.PerNamespace, r.Now, edits.NewPacedReconciler(r)))); err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	return nil
}

// clustersOf returns the clusters that a group matters to: the one that owns it,
// and one that wants its name, because another owner's group stands in its way.
func (r *Reconciler) clustersOf(ctx context.Context, group client.Object) []reconcile.Request {
	var out []reconcile.Request
	for _, name := range index.TidbClusters(group) {
		c := &v1alpha1.TidbCluster{}
		key := client.ObjectKey{Namespace: group.GetNamespace(), Name: name}
		// If the cache is not there, neither is the event.
		if err := r.Client.Get(ctx, key, c, client.UnsafeDisableDeepCopy); err == nil && concernsCluster(group, c) {
			out = append(out, reconcile.Request{NamespacedName: key})
		}
	}
	return out
}

// Reconcile brings one TidbCluster closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	c := &v1alpha1.TidbCluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, c); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s, err := r.observe(ctx, c)
	if err != nil {
		return ctrl.Result{}, err
	}
	p := makePlan(c, s)
	r.Outcomes.Count("plan", p.Outcome)

	outcome := r.Outcomes.Count("act", r.act(ctx, c, p))

	status, set := reportStatus(c, s, p, outcome, r.Now())
	// status.restoredAt is written once: what an outdated version of the cluster does not know of
	// it takes nothing away, and another cluster of its name gets nothing of it.
	wait, err := r.Status.WriteSeen(ctx, c, &c.Status, &status, set.Transitions())
	switch {
	case apierrors.IsConflict(err):
		return ctrl.Result{RequeueAfter: step.ConflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	return queueing.ResultOf(step.Worst(outcome, p.Outcome), wait)
}
