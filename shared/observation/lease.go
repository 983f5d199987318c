package observation

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// AwaitsRecreation reports whether the Lease is kept for a member of the group whose
// Instance is to be created again.
func (s Snapshot) AwaitsRecreation(g v1alpha1.Group) bool {
	return s.HolderRecreated && s.Lease.Holder.Kind == g.GroupKind() && s.Lease.Recreating == g.GetName()
}

// RecreatedSlot returns the slot of that member.
func (s Snapshot) RecreatedSlot(g v1alpha1.Group) (int32, bool) {
	if !s.AwaitsRecreation(g) {
		return 0, false
	}
	return names.Slot(g.GetName(), s.Lease.Holder.Instance)
}

// HoldsLease reports whether one of the group's members holds the Lease.
func (s Snapshot) HoldsLease() bool { return slices.ContainsFunc(s.Instances, s.Lease.IsHeldBy) }

// HolderOf returns the Instance of the snapshot that holds the Lease.
func HolderOf(s Snapshot) *v1alpha1.Instance {
	at := slices.IndexFunc(s.Instances, s.Lease.IsHeldBy)
	if at < 0 {
		return nil
	}
	return s.Instances[at]
}

// UnfinishedBatchMember names a member of the batch of a lost holder that has not finished
// its restart; empty if there is none. A member that is deleted or suspended is not waited
// for. A member that asks does not wait for itself and, if it has not finished either,
// only for those that are still to stop: otherwise they would wait for each other. asker
// may be nil.
func (s Snapshot) UnfinishedBatchMember(asker *v1alpha1.Instance) string {
	if !s.HolderLost {
		return ""
	}
	among := asker != nil && s.Lease.Covers(asker) && !member.HasRestarted(asker)
	for _, i := range s.WithSiblings() {
		switch {
		case !s.Lease.Covers(i), member.HasRestarted(i), asker != nil && i.Name == asker.Name, i.DeletionTimestamp != nil, s.isSuspended(i):
		case among && !member.IsStopPending(i):
		default:
			return i.Name
		}
	}
	return ""
}

// isSuspended reports whether a member is suspended, or its group.
func (s Snapshot) isSuspended(i *v1alpha1.Instance) bool {
	return i.Spec.Suspended || slices.ContainsFunc(s.Groups, func(g v1alpha1.Group) bool {
		return g.GroupKind() == i.Spec.Group.Kind && g.GetName() == i.Spec.Group.Name && g.GetComponentSpec().Suspended
	})
}
