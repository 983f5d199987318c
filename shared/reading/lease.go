package reading

import (
	"context"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// observeLease reads the cluster's Lease, and whether its holder still exists.
func observeLease(ctx context.Context, env operator.Env, g v1alpha1.Group, s *observation.Snapshot) error {
	var err error
	if s.Lease, err = leaseclient.Read(ctx, env.Client, g.GetNamespace(), g.PDGroupName()); err != nil || s.Lease.IsFree() {
		return err
	}
	if slices.ContainsFunc(s.Instances, s.Lease.IsHeldBy) {
		return nil
	}
	if lost, err := leaseclient.IsHolderLost(ctx, env.Client, g.GetNamespace(), s.Lease.Holder); err != nil || !lost {
		return err
	}
	// What a cache does not show may still be there.
	if lost, err := leaseclient.IsHolderLost(ctx, env.Live, g.GetNamespace(), s.Lease.Holder); err != nil || !lost {
		return err
	}
	s.HolderRecreated, err = leaseclient.IsRecreated(ctx, env.Live, g.GetNamespace(), s.Lease)
	s.HolderLost = err == nil && !s.HolderRecreated
	return err
}
