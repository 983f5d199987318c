package group

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// regionsDeadline bounds the calls about regions.
const regionsDeadline = 3 * time.Second

// Disrupting reports whether one of the group's members holds the Lease.
func (s Snapshot) Disrupting() bool { return slices.ContainsFunc(s.Instances, s.Lease.HeldBy) }

// AskRegions asks PD which regions might lose their majority with one more peer,
// while a member of the group is being stopped or is to be.
func AskRegions(ctx context.Context, env operator.Env, g v1alpha1.Group, s *Snapshot) {
	due := s.Disrupting() || restartsDue(g, *s) && (s.Lease.Free() || s.HolderLost)
	if !due || s.PDPending || s.PD.Err != nil {
		return
	}
	s.RegionsKnown = true
	client, err := env.PD.Client(types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	if err != nil {
		s.RegionsErr = err
		return
	}
	ctx, cancel := context.WithTimeout(ctx, regionsDeadline)
	defer cancel()
	s.Regions, s.RegionsErr = client.UnhealthyRegions(ctx)
}

// restartsDue reports whether a member of the group may have to be restarted: it
// has another revision than the group had last time, is asked for it, was deleted,
// or may run with another configuration than its revision's.
func restartsDue(g v1alpha1.Group, s Snapshot) bool {
	target := g.GetGroupStatus().UpdateRevision
	return slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		return held(i) && i.DeletionTimestamp != nil || i.DeletionTimestamp == nil && (target != "" && i.Spec.Revision != target || asked(s, i) != "" || Strays(i))
	})
}
