package controller

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/logbackup"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tikvgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tikvgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tikvgroups/finalizers,verbs=update
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups;tiflashgroups;tidbgroups,verbs=get;list;watch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=services;configmaps,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=apps,resources=controllerrevisions,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=get;list;watch;create;update
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// pdDeadline is after how long the operator looks again by itself whether PD
// has answered for the first time.
const pdDeadline = 5 * time.Second

// Reconciler reconciles TiKVGroups.
type Reconciler struct {
	operator.Env
	stores  *logbackup.Stores
	members *settings.Members
	holds   holds
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	return operator.Definition{
		Name: "tikvgroup", Kind: v1alpha1.KindTiKVGroup, Dialer: pdclient.Open, Tools: true,
		List: list,
		Setup: func(ctx context.Context, env operator.Env) error {
			return newReconciler(ctx, env, statusport.HTTP{}).setup()
		},
	}
}

func newReconciler(ctx context.Context, env operator.Env, api settings.API) *Reconciler {
	r := &Reconciler{Env: env, members: settings.NewMembers(statusport.Table(), api, settings.Beside(ctx), env.Now)}
	r.stores = logbackup.New(ctx, logbackup.GRPC, r.tell)
	return r
}

func list() client.ObjectList { return &v1alpha1.TiKVGroupList{} }

func (r *Reconciler) setup() error {
	b := ctrl.NewControllerManagedBy(r.Manager).
		For(&v1alpha1.TiKVGroup{}, builder.WithPredicates(watch.Own())).
		WatchesRawSource(r.PD.Events(watch.GroupsOf(r.Client, list, watch.ByName))).
		WatchesRawSource(source.Channel(r.members.Answers(), &handler.EnqueueRequestForObject{})).
		WithOptions(r.Controller)
	if err := reading.Watches(b, r.Env, v1alpha1.KindTiKVGroup, v1alpha1.ComponentTiKV, list).Complete(r.Env.Fair(r)); err != nil {
		return fmt.Errorf("build controller: %w", err)
	}
	return nil
}

// Reconcile brings one TiKVGroup closer to its spec.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	g := &v1alpha1.TiKVGroup{}
	if err := r.Client.Get(ctx, request.NamespacedName, g); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		r.holds.put(request.NamespacedName, observation.Hold{})
		return ctrl.Result{}, reading.StopPolling(ctx, r.Env, request.Namespace, list())
	}
	s, err := r.observe(ctx, g)
	if err != nil {
		return ctrl.Result{}, err
	}
	switch {
	case s.PDPending:
		return step.Wait("PD", pdDeadline, v1alpha1.ReasonPDUnreachable, "PD is being asked").Result()
	case s.RunningPending:
		return step.Wait("status port", settings.Patience, v1alpha1.ReasonConfigPending, "stores are being asked").Result()
	}
	p, err := r.decide(ctx, g, &s)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("plan TiKVGroup %s: %w", g.Name, err)
	}
	r.holds.put(request.NamespacedName, p.Hold)
	r.Outcomes.Count("plan", p.Outcome)

	outcome := r.Outcomes.Count("act", r.act(ctx, g, s, p))

	status, set, end := report(g, s, p, outcome, r.Now())
	result, err := execution.Conclude(ctx, r.Env, g, &g.Status, execution.Findings[v1alpha1.TiKVGroupStatus]{Status: status, Set: set, Members: members(g, s, p, r.Now()), Changes: p.Changes, End: end})
	if err != nil || !asksPD(g, s) {
		return result, err
	}
	return result, reading.AdjustPolling(ctx, r.Env, g, list())
}

// decide plans, and asks PD for what the plan cannot go on without: it is too much to
// be asked for at any other moment.
func (r *Reconciler) decide(ctx context.Context, g *v1alpha1.TiKVGroup, s *observation.Snapshot) (groupPlan, error) {
	p, err := plan(g, *s)
	if err != nil || p.Question == nil {
		return p, err
	}
	s.Answer = reading.AskQuestion(ctx, r.Env, g, *p.Question)
	return plan(g, *s)
}
