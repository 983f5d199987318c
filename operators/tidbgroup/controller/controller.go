package controller

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/registry"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/reconciler"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tidbgroups/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list

// steps are those of the reconcile of a TiDBGroup.
type steps struct {
	operator.Env
	servers   *labelling.Members
	orders    *statusport.Orders
	members   *settings.Members
	collector *registry.Collector
	// life is as long as the operator's: an order outlives its reconcile.
	life context.Context
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	out := reconciler.Definition(v1alpha1.KindTiDBGroup, func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, statusPorts{statusport.PostLabels, statusport.PostUpgrade, statusport.Settings{}}, registry.DefaultTiming()).component().Setup(env)
	})
	out.Dialer, out.Tools = pdclient.Open, true
	out.Cached[&batchv1.Job{}] = cache.ByObject{Label: operator.ManagedSelector()}
	return out
}

// statusPorts reach the status ports of servers.
type statusPorts struct {
	label  labelling.Set
	tell   statusport.Tell
	config settings.API
}

func newSteps(ctx context.Context, env operator.Env, reach statusPorts, timing registry.Timing) *steps {
	return &steps{
		Env: env, servers: labelling.New(reach.label), orders: statusport.NewOrders(reach.tell, env.Now),
		members: settings.NewMembers(statusport.SettingsTable(), reach.config, settings.RunInBackground(ctx), env.Now).WithTLS(env.Credentials.TLSForMembers), life: ctx,
		collector: registry.NewCollector(func(pdGroup types.NamespacedName) (registry.PD, error) { return env.PD.Client(pdGroup) }, timing),
	}
}

func (r *steps) component() reconciler.Component[*v1alpha1.TiDBGroup, snapshot, groupPlan, v1alpha1.TiDBGroupStatus] {
	return reconciler.Component[*v1alpha1.TiDBGroup, snapshot, groupPlan, v1alpha1.TiDBGroupStatus]{
		Kind:     v1alpha1.KindTiDBGroup,
		StatusOf: func(g *v1alpha1.TiDBGroup) *v1alpha1.TiDBGroupStatus { return &g.Status },
		Observe:  r.observe,
		Pending: func(s snapshot) step.Outcome {
			if s.RunningPending {
				return step.Wait("status port", settings.FirstAnswerTimeout, v1alpha1.ReasonConfigPending, "servers are being asked")
			}
			return step.Done()
		},
		Plan: func(_ context.Context, g *v1alpha1.TiDBGroup, s *snapshot) (groupPlan, error) { return makePlan(g, *s) },
		Act:  r.act,
		Report: func(g *v1alpha1.TiDBGroup, s snapshot, p groupPlan, acted step.Outcome, now time.Time) execution.Findings[v1alpha1.TiDBGroupStatus] {
			status, set := reportStatus(g, s, p, acted, now)
			return execution.Findings[v1alpha1.TiDBGroupStatus]{Status: status, Set: set, Members: reportMembers(g, s, p, now), Changes: p.Changes, End: combineOutcomes(g, p, acted), Once: true}
		},
		Announce: func(g *v1alpha1.TiDBGroup, before v1alpha1.TiDBGroupStatus) { r.tellSQL(g, before.SQL) },
		Forget: func(group types.NamespacedName) {
			r.members.Forget(group)
			r.forgetOrders(group)
			r.collector.Forget(group)
			r.servers.Forget(group)
		},
		Watch: func(b *builder.Builder) *builder.Builder {
			list := func() client.ObjectList { return &v1alpha1.TiDBGroupList{} }
			answers := &handler.EnqueueRequestForObject{}
			return b.
				Watches(&v1alpha1.TiDBGroup{}, watch.GroupsOf(r.Client, list, watch.ByPDGroup), builder.WithPredicates(watch.ChangedPredicate())).
				Owns(&batchv1.Job{}, builder.WithPredicates(watch.ChangedPredicate())).
				WatchesRawSource(source.Channel(r.orders.Answers(), answers)).
				WatchesRawSource(source.Channel(r.members.Answers(), answers))
		},
	}
}
