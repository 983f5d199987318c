package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// act carries a plan out and nothing else. What PD refuses does not keep the
// children from being applied.
func (r *Reconciler) act(ctx context.Context, g *v1alpha1.TiKVGroup, s group.Snapshot, p groupPlan) step.Outcome {
	children := group.Act(ctx, r.Env, g, s, p.Plan)
	return step.Worst(children, store.SetLabels(ctx, r.Env, g, p.Labels))
}
