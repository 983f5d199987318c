package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/reconciler"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tiproxygroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tiproxygroups/finalizers,verbs=update

// steps are those of the reconcile of a TiProxyGroup.
type steps struct {
	operator.Env
	members *settings.Members
	proxies *labelling.Members
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	out := reconciler.Definition(v1alpha1.KindTiProxyGroup, func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, statusport.Settings{}, statusport.PutLabels).component().Setup(env)
	})
	out.Tools = true
	return out
}

func newSteps(ctx context.Context, env operator.Env, api settings.API, label labelling.Set) *steps {
	members := settings.NewMembers(statusport.SettingsTable(), api, settings.RunInBackground(ctx), env.Now).WithTLS(env.Credentials.TLSForMembers)
	return &steps{env, members, labelling.New(label)}
}

func (r *steps) component() reconciler.Component[*v1alpha1.TiProxyGroup, snapshot, groupPlan, v1alpha1.TiProxyGroupStatus] {
	return reconciler.Component[*v1alpha1.TiProxyGroup, snapshot, groupPlan, v1alpha1.TiProxyGroupStatus]{
		Kind:     v1alpha1.KindTiProxyGroup,
		StatusOf: func(g *v1alpha1.TiProxyGroup) *v1alpha1.TiProxyGroupStatus { return &g.Status },
		Observe:  r.observe,
		Pending: func(s snapshot) step.Outcome {
			if s.RunningPending {
				return step.Wait("status port", settings.FirstAnswerTimeout, v1alpha1.ReasonConfigPending, "proxies are being asked")
			}
			return step.Done()
		},
		Plan: func(_ context.Context, g *v1alpha1.TiProxyGroup, s *snapshot) (groupPlan, error) {
			return makePlan(g, *s)
		},
		Act: r.act,
		Report: func(g *v1alpha1.TiProxyGroup, s snapshot, p groupPlan, acted step.Outcome, now time.Time) execution.Findings[v1alpha1.TiProxyGroupStatus] {
			status, set := reportStatus(g, s, p, acted, now)
			return execution.Findings[v1alpha1.TiProxyGroupStatus]{
				Status: status, Set: set, Members: reportMembers(g, s, p, now), Changes: p.Changes, End: step.Worst(acted, p.Outcome),
			}
		},
		Forget: func(group types.NamespacedName) {
			r.members.Forget(group)
			r.proxies.Forget(group)
		},
		Watch: func(b *builder.Builder) *builder.Builder {
			return b.WatchesRawSource(source.Channel(r.members.Answers(), &handler.EnqueueRequestForObject{}))
		},
	}
}
