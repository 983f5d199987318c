package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/registry"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups/finalizers,verbs=update
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups;tikvgroups;tiflashgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Reconciler reconciles TiDBGroups.
type Reconciler struct {
	operator.Env
	servers *statusport.Servers
	orders  *statusport.Orders
	members *settings.Members
	sweeper *registry.Sweeper
	// life is as long as the operator's: an order outlives its reconcile.
	life context.Context
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	return operator.Definition{
		Name: "tidbgroup", Kind: v1alpha1.KindTiDBGroup, Dialer: pdclient.Open, Tools: true,
		List:   list,
		Cached: map[client.Object]cache.ByObject{&batchv1.Job{}: {Label: operator.Managed()}},
		Setup: func(ctx context.Context, env operator.Env) error {
			return newReconciler(ctx, env, statusport.HTTP, statusport.Post, statusport.Settings{}, registry.DefaultTiming()).setup()
		},
	}
}

func newReconciler(ctx context.Context, env operator.Env, label statusport.Set, tell statusport.Tell, api settings.API, sweeps registry.Timing) *Reconciler {
	return &Reconciler{
		Env: env, servers: statusport.New(label), orders: statusport.NewOrders(tell, env.Now),
		members: settings.NewMembers(statusport.Table(), api, settings.Beside(ctx), env.Now), life: ctx,
		sweeper: registry.NewSweeper(func(pdGroup types.NamespacedName) (registry.PD, error) { return env.PD.Client(pdGroup) }, sweeps),
	}
}

func list() client.ObjectList { return &v1alpha1.TiDBGroupList{} }

func (r *Reconciler) setup() error {
	b := ctrl.NewControllerManagedBy(r.Manager).
		For(&v1alpha1.TiDBGroup{}, builder.WithPredicates(watch.Own())).
		Watches(&v1alpha1.TiDBGroup{}, watch.GroupsOf(r.Client, list, watch.ByPDGroup), builder.WithPredicates(watch.Changed())).
		Owns(&batchv1.Job{}, builder.WithPredicates(watch.Changed())).
		WatchesRawSource(source.Channel(r.orders.Answers(), &handler.EnqueueRequestForObject{})).
		WatchesRawSource(source.Channel(r.members.Answers(), &handler.EnqueueRequestForObject{})).
		WithOptions(r.Controller)
	if err := reading.Watches(b, r.Env, v1alpha1.KindTiDBGroup, v1alpha1.ComponentTiDB, list).Complete(r.Env.Fair(r)); err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	return nil
}

// Reconcile brings one TiDBGroup closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	g := &v1alpha1.TiDBGroup{}
	if err := r.Client.Get(ctx, request.NamespacedName, g); err != nil {
		if apierrors.IsNotFound(err) {
			r.sweeper.Forget(request.NamespacedName)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	s, err := r.observe(ctx, g)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.RunningPending {
		return step.Wait("status port", settings.Patience, v1alpha1.ReasonConfigPending, "servers are being asked").Result()
	}
	p, err := plan(g, s)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("plan TiDBGroup %s: %w", g.Name, err)
	}
	r.Outcomes.Count("plan", p.Outcome)

	outcome := r.Outcomes.Count("act", r.act(ctx, g, s, p))
	// What becomes of the SQL stands in status.sql, and in no condition.
	ran := r.Outcomes.Count("sql", r.runSQL(ctx, g, p.SQL))
	p.SQL = p.SQL.Refused(ran.Err)

	status, set := report(g, s, p, outcome, r.Now())
	end, before := step.Worst(outcome, p.Outcome, ran), g.Status.SQL
	if p.SQL.Wake > 0 {
		end = step.Worst(end, step.After(p.SQL.Wake, "", ""))
	}
	result, err := execution.Conclude(ctx, r.Env, g, &g.Status, execution.Findings[v1alpha1.TiDBGroupStatus]{Status: status, Set: set, Members: members(g, s, p, r.Now()), Changes: p.Changes, End: end, Once: true})
	r.tellSQL(g, before)
	return result, err
}
