package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// observe reads everything that plan and report decide from. The owner matters only
// while captures are to be stopped.
func (r *steps) observe(ctx context.Context, g *v1alpha1.TiCDCGroup) (observation.Snapshot, error) {
	s, err := reading.Observe(ctx, r.Env, g)
	if err != nil {
		return s, err
	}
	if key := client.ObjectKeyFromObject(g); observation.IsProgressing(g) && g.DeletionTimestamp == nil {
		s.StatusPorts, s.StatusPortsPending = r.captures.Observe(key, s.Instances, r.Credentials.TLSForInstances(s.Groups))
	} else {
		r.captures.Forget(key)
	}
	return s, nil
}
