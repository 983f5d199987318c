package controller

import (
	"context"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// observe reads everything that plan and report decide from.
func (r *steps) observe(ctx context.Context, g *v1alpha1.TiProxyGroup) (observation.Snapshot, error) {
	s, err := reading.Observe(ctx, r.Env, g)
	if err != nil {
		return s, err
	}
	s.Running, s.RunningPending = r.members.Observe(g, s.Instances)
	return s, nil
}
