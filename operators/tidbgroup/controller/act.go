package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out. A server that cannot be labelled keeps nothing else
// from being done.
func (r *Reconciler) act(ctx context.Context, g *v1alpha1.TiDBGroup, s snapshot, p groupPlan) step.Outcome {
	outcome := group.Act(ctx, r.Env, g, s.Snapshot, p.Plan)
	var work []func() step.Outcome
	for _, l := range p.Labels {
		work = append(work, func() step.Outcome {
			if err := r.servers.Give(ctx, l); err != nil {
				return step.Fail(v1alpha1.ReasonRequestFailed, err)
			}
			return step.Done()
		})
	}
	return step.Worst(outcome, step.Parallel(work...))
}
