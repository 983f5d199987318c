package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out and nothing else.
func (r *steps) act(ctx context.Context, g *v1alpha1.TiProxyGroup, s observation.Snapshot, p *groupPlan) step.Outcome {
	children := execution.Act(ctx, r.Env, g, s, p.Plan)
	return step.Worst(children, r.members.Give(ctx, r.Live, r.Recorder, g, p.Configure))
}
