package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out. Bootstrapping asks nothing of PD itself: its members
// found the cluster with the arguments that they are given.
func (r *Reconciler) act(ctx context.Context, g *v1alpha1.PDGroup, s group.Snapshot, p groupPlan) step.Outcome {
	return group.Act(ctx, r.Env, g, s, p.Plan)
}
