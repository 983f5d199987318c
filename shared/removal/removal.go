package removal

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/departure"
	"github.com/tidb-groups/tidb-groups/shared/failover"
	"github.com/tidb-groups/tidb-groups/shared/leaders"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// MaxConcurrentRemovals implements component.Component (KV-06).
func MaxConcurrentRemovals(c storestate.State) int {
	return int(ptr.Deref(c.Group.GetStoreSpec().ScaleInParallelism, 1))
}

// Leave takes a member out of its cluster (KV-04, FL-04): its leaders move away,
// then its regions, and it has left when it is a tombstone, which PD does not
// list. Nothing is stopped until then. begun is when the Lease was taken.
//
// The Lease is held until PD knows that the store is to go: whether the cluster
// can do without it is decided by one at a time. No other member waits while its
// regions move; TiKV stores that are to be restarted meanwhile see it in PD.
//
// A member whose Instance was deleted and which is to stay does not leave: it is
// recreated in the same slot, with its data. One that serves is restarted; it never
// comes here.
func Leave(c storestate.State, d component.Disruption, begun time.Time) component.Preparation {
	i := d.Instance
	m := storestate.StoreOf(c, i)
	switch {
	case !departure.MustLeave(c, i):
		return releaseToReturn(c, d)
	case !c.TrustPD.IsAllowed():
		return storestate.WaitForPD(v1alpha1.ReasonPDUnreachable, "Instance %s stays for now (%s): %s", i.Name, d.Why, c.TrustPD.Reason())
	case !m.Own.IsAllowed():
		return storestate.WaitForPD(v1alpha1.ReasonStoreMismatch, "%s", m.Own.Reason())
	case departure.HasLeft(c, m):
		return finishRemoval(c, d, m)
	case m.Store == nil && m.Recorded != "":
		return storestate.WaitForPD(v1alpha1.ReasonDraining, "Instance %s stays for now (%s): PD lists no store at all", i.Name, d.Why)
	case m.Store == nil:
		return removeUnregistered(c, d)
	case m.Store.State == pd.StateOffline:
		return awaitOffline(c, d, m)
	}
	if c.HasLeaders {
		if p := leaders.Evict(c, d, begun); !p.Ready {
			p.Wait.Reason = v1alpha1.ReasonDraining
			return p
		}
	}
	p := storestate.WaitForPD(v1alpha1.ReasonDraining, "store %s of Instance %s (%s): waiting for PD to move its regions", m.Store.ID, i.Name, d.Why)
	p.Calls = []component.Call{{Verb: component.DeleteStore, Target: m.Store.ID, Instance: i.Name}}
	return p
}

// finishRemoval ends a removal. A store that left fast leaves its name in the scheduler that
// has moved its leaders.
func finishRemoval(c storestate.State, d component.Disruption, m storestate.Match) component.Preparation {
	if !c.Snapshot.PD.MayEvictLeaders(m.Recorded) {
		return component.Preparation{Ready: true}
	}
	p := storestate.WaitForPD(v1alpha1.ReasonDraining, "store %s of Instance %s (%s) has left: waiting for PD to drop its leader eviction", m.Recorded, d.Instance.Name, d.Why)
	p.Calls = []component.Call{{Verb: component.StopEvictingLeaders, Target: m.Recorded, Instance: d.Instance.Name}}
	return p
}

// releaseToReturn lets a member's Instance go without its store, once nothing of an
// earlier preparation is left in PD.
func releaseToReturn(c storestate.State, d component.Disruption) component.Preparation {
	if !c.TrustPD.IsAllowed() && storestate.MarkOf(d.Instance) != "" {
		p := storestate.WaitForPD(v1alpha1.ReasonPDUnreachable, "Instance %s (%s) stays until it is known what was done to its store: %s", d.Instance.Name, d.Why, c.TrustPD.Reason())
		p.Stays = true
		return p
	}
	if calls := leaders.UndoPreparation(c, d.Instance); len(calls) > 0 {
		p := storestate.WaitForPD(v1alpha1.ReasonRecovering, "the store of Instance %s (%s) will lead again", d.Instance.Name, d.Why)
		p.Calls, p.Stays = calls, true
		return p
	}
	return component.Preparation{Ready: true, Stays: true}
}

// awaitOffline waits for PD to move the regions of a store away.
func awaitOffline(c storestate.State, d component.Disruption, m storestate.Match) component.Preparation {
	text := fmt.Sprintf("store %s of Instance %s (%s) is Offline and has %s left", m.Store.ID, d.Instance.Name, d.Why, storestate.RegionCount(m.Store.Regions))
	if why := placement.DescribeStuck(c, *m.Store); why != "" && m.Store.Regions > 0 {
		text += ": " + why
	}
	p := storestate.WaitForPD(v1alpha1.ReasonDraining, "%s", text)
	p.Wait.After = storestate.LookLater // the operator is woken when PD says something else of the store
	p.Calls = leaders.StopEvicting(c, d.Instance)
	return p
}

// removeUnregistered removes a member that PD has never listed (KV-08): once its pod
// has stopped for good it never will be. A pod whose claim is being deleted does not stop before
// its Instance goes.
func removeUnregistered(c storestate.State, d component.Disruption) component.Preparation {
	i := d.Instance
	if member.HasStopped(i) || c.Snapshot.IsClaimDeleted(i.Name) {
		return component.Preparation{Ready: true, Suspend: true}
	}
	return component.Preparation{Suspend: true, Wait: step.Wait("Instance", time.Minute, v1alpha1.ReasonDraining,
		fmt.Sprintf("Instance %s (%s) has never registered with PD and is being stopped", i.Name, d.Why))}
}

// ReasonDead implements component.Component: a store that has left when its removal was
// taken back never returns, and one that is dead is not waited for if the user
// says so.
func ReasonDead(c storestate.State, i *v1alpha1.Instance) verdict.Reason {
	m := storestate.StoreOf(c, i)
	switch {
	case storestate.MarkOf(i) == member.Remove && departure.HasLeft(c, m):
		return verdict.NewReasonf("store %s had left PD before its removal was taken back", m.Recorded)
	case failover.IsReplaceable(c, i):
		return verdict.NewReasonf("store %s has been down for spec.failover.after (%s)", m.Store.ID, failover.FailoverDelay(c))
	}
	return verdict.Reason{}
}

// AllowsRemoval implements component.Component.
func AllowsRemoval(c storestate.State, leaving []*v1alpha1.Instance) verdict.Verdict {
	if !storestate.PDKnown(c).IsAllowed() {
		return verdict.Allow() // it is asked again before each begins to leave
	}
	may := placement.CanDoWithout(c, leaving...)
	if may.IsAllowed() {
		return verdict.Allow()
	}
	if asked := member.ReplacementReason(c.Group, leaving[0]); asked.IsGiven() && len(leaving) == 1 {
		return verdict.Refusef("Instance %s stays (%s): %s", leaving[0].Name, asked.Text(), may.Reason())
	}
	edit := origin.OfGroup(c.Group)
	return verdict.Refusef("%s is %d, and nothing is removed: %s; to set it back: %s",
		edit.Field("replicas"), c.Group.GetReplicas(), may.Reason(), edit.Scale(int(c.Group.GetReplicas())+len(leaving)))
}
