package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// snapshot is what plan and report decide from, and what TiProxy alone needs.
type snapshot struct {
	observation.Snapshot
	// Labelled is what each running proxy was last given, by Instance.
	Labelled map[string]labelling.Labelling
}

// observe reads everything that plan and report decide from.
func (r *steps) observe(ctx context.Context, g *v1alpha1.TiProxyGroup) (snapshot, error) {
	common, err := reading.Observe(ctx, r.Env, g)
	if err != nil {
		return snapshot{}, err
	}
	s := snapshot{Snapshot: common, Labelled: r.proxies.Labels(client.ObjectKeyFromObject(g), common.Instances)}
	s.Running, s.RunningPending = r.members.Observe(g, s.Instances)
	return s, nil
}
