package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/reconciler"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=ticdcgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=ticdcgroups/finalizers,verbs=update

// steps are those of the reconcile of a TiCDCGroup.
type steps struct {
	operator.Env
	captures *statusports.Members
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	out := reconciler.Definition(v1alpha1.KindTiCDCGroup, func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, statusport.ReadState).component().Setup(env)
	})
	out.Tools = true
	return out
}

func newSteps(ctx context.Context, env operator.Env, ask statusports.Ask) *steps {
	return &steps{env, statusports.New(ctx, ask, statusport.IsFinal, env.Now)}
}

func (r *steps) component() reconciler.Component[*v1alpha1.TiCDCGroup, observation.Snapshot, groupPlan, v1alpha1.TiCDCGroupStatus] {
	return reconciler.Component[*v1alpha1.TiCDCGroup, observation.Snapshot, groupPlan, v1alpha1.TiCDCGroupStatus]{
		Kind:     v1alpha1.KindTiCDCGroup,
		StatusOf: func(g *v1alpha1.TiCDCGroup) *v1alpha1.TiCDCGroupStatus { return &g.Status },
		Observe:  r.observe,
		Pending: func(s observation.Snapshot) step.Outcome {
			if s.StatusPortsPending {
				return step.Wait("status port", statusports.FirstAnswerTimeout, v1alpha1.ReasonProgressing, "captures are being asked which one is the owner")
			}
			return step.Done()
		},
		Plan: func(_ context.Context, g *v1alpha1.TiCDCGroup, s *observation.Snapshot) (groupPlan, error) {
			return makePlan(g, *s)
		},
		Act: r.act,
		Report: func(g *v1alpha1.TiCDCGroup, s observation.Snapshot, p groupPlan, acted step.Outcome, now time.Time) execution.Findings[v1alpha1.TiCDCGroupStatus] {
			status, set := reportStatus(g, s, p, acted, now)
			return execution.Findings[v1alpha1.TiCDCGroupStatus]{
				Status: status, Set: set, Members: reportMembers(g, s, p, now), Changes: p.Changes, End: step.Worst(acted, p.Outcome),
			}
		},
		Forget: r.captures.Forget,
		Watch: func(b *builder.Builder) *builder.Builder {
			return b.WatchesRawSource(source.Channel(r.captures.Answers(), &handler.EnqueueRequestForObject{}))
		},
	}
}
