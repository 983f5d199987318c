package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
)

// decide plans, and asks PD for what the plan cannot go on without: it is too much to
// be asked for at any other moment.
func (r *Reconciler) decide(ctx context.Context, g *v1alpha1.TiKVGroup, s *group.Snapshot) (groupPlan, error) {
	p, err := plan(g, *s)
	if err != nil || p.Question == nil {
		return p, err
	}
	s.Answer = group.AskQuestion(ctx, r.Env, g, *p.Question)
	return plan(g, *s)
}
