package controller

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups/finalizers,verbs=update
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups;tikvgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles TiDBGroups.
type Reconciler struct {
	operator.Env
	servers *statusport.Servers
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	return operator.Definition{
		Name: "tidbgroup", Kind: v1alpha1.KindTiDBGroup,
		List: list,
		Setup: func(_ context.Context, env operator.Env) error {
			return (&Reconciler{env, statusport.New(statusport.HTTP)}).setup()
		},
	}
}

func list() client.ObjectList { return &v1alpha1.TiDBGroupList{} }

func (r *Reconciler) setup() error {
	b := ctrl.NewControllerManagedBy(r.Manager).
		For(&v1alpha1.TiDBGroup{}, builder.WithPredicates(watch.Own())).
		Owns(&v1alpha1.Instance{}, builder.WithPredicates(watch.Changed())).
		Owns(&corev1.Service{}, builder.WithPredicates(watch.Changed())).
		Owns(&corev1.ConfigMap{}, builder.OnlyMetadata, builder.WithPredicates(watch.Changed())).
		Owns(&appsv1.ControllerRevision{}, builder.WithPredicates(watch.Changed())).
		Watches(&v1alpha1.PDGroup{}, watch.GroupsOf(r.Client, list, watch.ByName), builder.WithPredicates(watch.Changed())).
		Watches(&v1alpha1.TiKVGroup{}, watch.GroupsOf(r.Client, list, watch.ByPDGroup), builder.WithPredicates(watch.Changed())).
		WithOptions(r.Controller)
	if r.ClusterScoped {
		b = b.Watches(&corev1.Node{}, watch.AllGroups(r.Client, list), builder.WithPredicates(watch.NodeLabels()))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	return nil
}

// Reconcile brings one TiDBGroup closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	g := &v1alpha1.TiDBGroup{}
	if err := r.Client.Get(ctx, request.NamespacedName, g); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s, err := r.observe(ctx, g)
	if err != nil {
		return ctrl.Result{}, err
	}
	p, err := plan(g, s)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("plan TiDBGroup %s: %w", g.Name, err)
	}
	r.Outcomes.Count("plan", p.Outcome)

	outcome := r.Outcomes.Count("act", r.act(ctx, g, s, p))

	status, set := report(g, s, p, outcome, r.Now())
	outcome = step.Worst(outcome, r.Outcomes.Count("report", group.WriteMembers(ctx, r.Env, members(s))))
	if err := r.Status.Write(ctx, g, g.Status, status, set.Transitions()); err != nil {
		return ctrl.Result{}, err
	}
	return step.Worst(outcome, p.Outcome).Result()
}
