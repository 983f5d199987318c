package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
)

// observe reads everything that plan and report decide from.
func (r *Reconciler) observe(ctx context.Context, g *v1alpha1.PDGroup) (group.Snapshot, error) {
	s, err := group.Observe(ctx, r.Env, g, group.Wants{})
	if err != nil {
		return s, err
	}
	if len(s.Instances) > 0 && g.DeletionTimestamp == nil {
		group.AskPD(r.Env, g, &s, group.Moving(g))
	}
	return s, nil
}
