package controller

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// observe reads everything that plan and report decide from.
func (r *steps) observe(ctx context.Context, g *v1alpha1.TiFlashGroup) (observation.Snapshot, error) {
	s, err := reading.Observe(ctx, r.Env, g)
	if err != nil || !asksPD(g, s) {
		return s, err
	}
	moving, err := reading.IsAnyProgressing(ctx, r.Env, g, &v1alpha1.TiFlashGroupList{})
	if err != nil {
		return s, err
	}
	reading.AskPD(r.Env, g, &s, moving)
	if mayStopStores(g, s) {
		s.StatusPorts, s.StatusPortsPending = r.stores.Observe(client.ObjectKeyFromObject(g), s.WithSiblings(), r.Credentials.TLSForInstances(s.Groups))
	} else {
		r.stores.Forget(client.ObjectKeyFromObject(g))
	}
	return s, nil
}

// mayStopStores reports whether a store of the group may be about to be stopped, or has been:
// what the stores of the cluster say of themselves matters then. Nothing else is asked.
func mayStopStores(g *v1alpha1.TiFlashGroup, s observation.Snapshot) bool {
	return observation.IsProgressing(g) || slices.ContainsFunc(s.Instances, s.Lease.IsHeldBy)
}

// asksPD reports whether PD can say anything of interest about a group. While
// the group waits for TiKV it is asked already, so that what it says of
// placement rules is known when they are needed.
func asksPD(g *v1alpha1.TiFlashGroup, s observation.Snapshot) bool {
	if g.DeletionTimestamp != nil || s.PDGroup == nil {
		return false
	}
	return len(s.Instances) > 0 || (s.PDGroup.Status.ClusterID != "" && g.GetReplicas() > 0)
}
