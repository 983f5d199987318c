package departure

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/failover"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/safety"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// NeedsLease implements component.Component: a pod that stops needs the Lease, and so does
// a store until PD knows that it is to go. One that comes back with its data, that
// has left or that PD has never listed does not.
func NeedsLease(c storestate.State, d component.Disruption) bool {
	i := d.Instance
	if d.Verb == member.Restart {
		return true
	}
	m := storestate.StoreOf(c, i)
	switch {
	case !MustLeave(c, i):
		return false
	case !c.TrustPD.IsAllowed():
		// What has begun is neither given up nor begun again.
		return c.Snapshot.Lease.IsHeldBy(i) || !i.Spec.Retire && storestate.MarkOf(i) != member.Remove
	}
	return !m.Own.IsAllowed() || m.Store != nil && m.Store.State != pd.StateOffline
}

// MustLeave reports whether a member that is being removed leaves for good: it is
// one too many, or leaving already, or has left, or is dead and not to come
// back, or has lost its data or is about to: an empty store at the address of one
// that PD knows would be refused.
func MustLeave(c storestate.State, i *v1alpha1.Instance) bool {
	if i.DeletionTimestamp == nil || i.Spec.Retire || storestate.MarkOf(i) == member.Remove || HasLeft(c, storestate.StoreOf(c, i)) || failover.IsReplaceable(c, i) || isDataLost(c, i) {
		return true
	}
	return failover.CountMembers(c) >= int(c.Group.GetReplicas()+failover.ExtraMembers(c))
}

// isDataLost reports whether the data of a member that PD knows is gone, or goes: its
// claim is gone, and no other one is in its place; it goes with its
// Instance; or it is being deleted, and goes with the pod. A volume that is lost, or
// all whose nodes are, is lost whether or not PD knows the member: it would be
// recreated on that volume, and never start.
func isDataLost(c storestate.State, i *v1alpha1.Instance) bool {
	if storestate.StoreOf(c, i).Own.IsAllowed() && (c.Snapshot.LostNodes[i.Name] != "" || member.IsVolumeLost(i)) {
		return true
	}
	goes := i.Spec.ClaimRetention.WhenDeleted == v1alpha1.DeleteClaim || c.Snapshot.IsClaimDeleted(i.Name)
	if goes && len(i.Spec.VolumeClaimTemplates) > 0 && storestate.RecordedID(i) != "" && storestate.StoreOf(c, i).Own.IsAllowed() {
		return true
	}
	return member.IsClaimLost(i) && storestate.RecordedID(i) != "" && len(c.Snapshot.Claims[i.Name]) < len(i.Spec.VolumeClaimTemplates)
}

// HasLeft reports whether PD has let a member's store go. A PD that lists no store
// at all has forgotten them.
func HasLeft(c storestate.State, m storestate.Match) bool {
	return c.TrustPD.IsAllowed() && c.Snapshot.PD.Bootstrapped && len(c.Snapshot.PD.Stores) > 0 && m.Store == nil && m.Recorded != "" && m.Own.IsAllowed()
}

// RestartsWhenDeleted implements component.Component: a member that is to stay is released when its
// leaders are elsewhere and no other one is missing, unless it adds nothing anyway.
// That is not known of a store which is not the one it should be, and deleting its
// Instance is what repairs it.
func RestartsWhenDeleted(c storestate.State, i *v1alpha1.Instance) bool {
	if i.DeletionTimestamp == nil || c.Group.GetComponentSpec().Suspended || MustLeave(c, i) {
		return false
	}
	return c.Snapshot.Lease.IsHeldBy(i) || !safety.IsNotServing(c, i) && storestate.StoreOf(c, i).Own.IsAllowed()
}

// IsReplacedWhenDeleted implements component.Component: a member that leaves for good and that PD
// has ever listed is missed until another one has come, which takes another slot:
// the claims of this one are not used again.
func IsReplacedWhenDeleted(c storestate.State, i *v1alpha1.Instance) bool {
	return storestate.RecordedID(i) != "" && MustLeave(c, i)
}
