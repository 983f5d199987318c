package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out and nothing else.
func (r *steps) act(ctx context.Context, g *v1alpha1.TiProxyGroup, s snapshot, p *groupPlan) step.Outcome {
	children := execution.Act(ctx, r.Env, g, s.Snapshot, p.Plan)
	labelled := step.RunInParallel(r.proxies.ListWork(httpclient.WithTLS(ctx, r.Credentials.TLSForMembers(g)), p.Labels)...)
	return step.Worst(children, labelled, r.members.Give(ctx, r.Live, r.Recorder, g, p.Configure))
}
