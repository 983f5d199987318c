package leaders

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// UndoOrphaned are the calls that take back what was begun with a member whose Instance
// has gone meanwhile, with its group or because a user removed its finalizer: its
// leaders are kept away from its store (KV-15), also from one of that name that comes
// later. Only the Lease still reports that an operator did it, so that it must not be
// released before. unknown says that PD cannot be asked.
func UndoOrphaned(c storestate.State) (calls []component.Call, unknown bool) {
	held := c.Snapshot.Lease
	if !c.Snapshot.HolderLost || held.Holder.Kind != c.Group.GroupKind() {
		return nil, false
	}
	calls = slices.DeleteFunc(disruption.StopEvictingCalls(c.Snapshot.PD, held), func(call component.Call) bool {
		s, _ := c.Snapshot.PD.Store(call.Target)
		return storestate.IsAnnotated(c, call.Instance) || s.HasLearnersOnly() == c.HasLeaders
	})
	return calls, !c.TrustPD.IsAllowed()
}

// LeaderCount implements component.Component.
func LeaderCount(c storestate.State, i *v1alpha1.Instance) int {
	if m := storestate.StoreOf(c, i); m.Store != nil {
		return m.Store.Leaders
	}
	return 0
}

// Recover implements component.Component: the store has to be Up again.
func Recover(c storestate.State, i *v1alpha1.Instance, _ lease.State) component.Preparation {
	m := storestate.StoreOf(c, i)
	switch {
	case !c.TrustPD.IsAllowed():
		return storestate.WaitForPD(v1alpha1.ReasonRecovering, "Instance %s has been restarted, and its store is not known: %s", i.Name, c.TrustPD.Reason())
	case !m.Own.IsAllowed():
		return storestate.WaitForPD(v1alpha1.ReasonStoreMismatch, "%s", m.Own.Reason())
	case m.Store == nil && m.Recorded != "":
		// It has left meanwhile: there is nothing to come back.
		return component.Preparation{Ready: true}
	case m.Store == nil:
		return storestate.WaitForPD(v1alpha1.ReasonRecovering, "Instance %s has been restarted, and PD lists no store at %s", i.Name, m.Address)
	case m.Store.State == pd.StateUp, m.Store.State == pd.StateOffline:
		return component.Preparation{Ready: true}
	}
	return storestate.WaitForPD(v1alpha1.ReasonRecovering, "store %s of Instance %s is %s after its restart", m.Store.ID, i.Name, m.Store.State)
}

const (
	// restoredThirds is the part of a store's leaders that have to be back, in thirds.
	restoredThirds = 2
	// perLeader is how long each leader may take to come back, and returnTimeout
	// how long all of them may. TiDB Operator waits 400 s, and not at all for fewer
	// than 200 leaders; this is the same for 200 and more.
	perLeader     = 2 * time.Second
	returnTimeout = 400 * time.Second
)

// Evict moves the leaders of a member's store away before it is stopped (KV-10,
// KV-11). begun is when that began.
func Evict(c storestate.State, d component.Disruption, begun time.Time) component.Preparation {
	m := storestate.StoreOf(c, d.Instance)
	switch {
	case !c.TrustPD.IsAllowed():
		return storestate.WaitForPD(v1alpha1.ReasonPDUnreachable, "Instance %s is not stopped: %s", d.Instance.Name, c.TrustPD.Reason())
	case m.Store == nil, m.Store.State == pd.StateDown, m.Store.State == pd.StateOffline, !canLeadElsewhere(c, m):
		return component.Preparation{Ready: true}
	}
	if m.Store.State != pd.StateUp && !m.Was(v1alpha1.ConditionPodReady) {
		return component.Preparation{Ready: true} // it does not serve, and PD cannot tell it to give anything away
	}
	evicts := c.Snapshot.PD.EvictsLeaders(m.Store.ID)
	if evicts && m.Store.Leaders == 0 {
		return component.Preparation{Ready: true}
	}
	left := begun.Add(c.EvictTimeout).Sub(c.Snapshot.Now)
	if left <= 0 {
		return component.Preparation{Ready: true, Wait: step.Wait("Instance", time.Minute, v1alpha1.ReasonEvictionTimedOut,
			fmt.Sprintf("store %s of Instance %s still has leaders after %s and is stopped with them: %s", m.Store.ID, d.Instance.Name, c.EvictTimeout, d.Why))}
	}
	p := storestate.WaitForPD(v1alpha1.ReasonPreparing, "store %s of Instance %s gives its leaders away, for %s at most: %s", m.Store.ID, d.Instance.Name, c.EvictTimeout, d.Why)
	p.Wait.After = min(storestate.LookSoon, left)
	if !c.Snapshot.PD.MayEvictLeaders(m.Store.ID) { // ordered before PD has loaded its schedulers, it forgets what others ordered
		p.Calls = []component.Call{{Verb: component.EvictLeaders, Target: m.Store.ID, Instance: d.Instance.Name}}
	}
	return p
}

// HaveLeft reports whether a member's store works, and all its leaders have been
// moved away from it.
func HaveLeft(c storestate.State, i *v1alpha1.Instance) bool {
	m := storestate.StoreOf(c, i)
	return m.Store != nil && m.Store.State == pd.StateUp && m.Store.Leaders == 0 && c.Snapshot.PD.EvictsLeaders(m.Store.ID)
}

// canLeadElsewhere reports whether another store could lead the regions of a member's. One
// that is kept empty leads none of an ordinary store (KV-26).
func canLeadElsewhere(c storestate.State, m storestate.Match) bool {
	for _, other := range storestate.OtherStores(c, m) {
		if canLead(c, m, other) {
			return true
		}
	}
	return false
}

// canLead reports whether another store could lead the regions of a member's.
func canLead(c storestate.State, m storestate.Match, other pd.Store) bool {
	shares := !placement.IsKeptEmpty(c, other) || placement.IsKeptEmpty(c, *m.Store) || other.Regions > 0
	return shares && other.State == pd.StateUp && !c.Snapshot.PD.EvictsLeaders(other.ID)
}

// expectedLeaders is how many leaders a store may get back of those that it had. It does not
// get more than its share: it had those of a store that was restarted just before it, too.
// From one that has become exclusive its regions move away, and their leaders do not return
// (KV-26).
func expectedLeaders(c storestate.State, m storestate.Match, had int) int {
	total, stores := m.Store.Leaders, 1
	for _, other := range storestate.OtherStores(c, m) {
		if other.Leaders > 0 {
			total, stores = total+other.Leaders, stores+1
		}
	}
	if total > 0 { // A new leader of PD counts none at first.
		had = min(had, (total+stores-1)/stores)
	}
	if placement.IsKeptEmpty(c, *m.Store) {
		return min(had, m.Store.Regions)
	}
	return had
}

// Restore lets a restarted member's store lead again, and waits for its leaders
// to come back (KV-12): for two thirds of those that it may get back, or until they have
// had their time. One that must have no leaders, because a user asks, is back when it
// is Up.
func Restore(c storestate.State, i *v1alpha1.Instance, held lease.State) component.Preparation {
	p := Recover(c, i, held)
	m := storestate.StoreOf(c, i)
	if !p.Ready || m.Store == nil || m.Store.State != pd.StateUp || isEvictionRequested(c, i) {
		return p
	}
	if calls := StopEvicting(c, i); len(calls) > 0 {
		p = storestate.WaitForPD(v1alpha1.ReasonRecovering, "store %s of Instance %s will lead again", m.Store.ID, i.Name)
		p.Calls = calls
		return p
	}
	if m.Store.Leaders*3 >= expectedLeaders(c, m, held.Leaders)*restoredThirds {
		return p
	}
	timeout := min(time.Duration(held.Leaders)*perLeader, returnTimeout)
	left := storestate.ReadySince(i).Add(timeout).Sub(c.Snapshot.Now)
	if left <= 0 {
		return p
	}
	p = storestate.WaitForPD(v1alpha1.ReasonRecovering, "store %s of Instance %s is getting leaders back, of which it had %d; waiting at most %s", m.Store.ID, i.Name, held.Leaders, timeout)
	p.Wait.After = min(storestate.LookSoon, left)
	return p
}

// UndoPreparation implements component.Component: what an earlier preparation has left in PD,
// by the annotation that it left on the Instance, is taken back (KV-05, KV-15). What a
// user has done in PD carries none. What a user asks for by an annotation stays.
func UndoPreparation(c storestate.State, i *v1alpha1.Instance) []component.Call {
	var calls []component.Call
	if !isEvictionRequested(c, i) {
		calls = StopEvicting(c, i)
	}
	if m := storestate.StoreOf(c, i); m.Store != nil && m.Store.State == pd.StateOffline && storestate.MarkOf(i) == member.Remove {
		calls = append(calls, component.Call{Verb: component.RestoreStore, Target: m.Store.ID, Instance: i.Name})
	}
	return calls
}

// StopEvicting lets a store lead again that an operator evicts the leaders of. While PD does not
// know yet whether it does, it says yes to the order and forgets it: it is given again.
func StopEvicting(c storestate.State, i *v1alpha1.Instance) []component.Call {
	m := storestate.StoreOf(c, i)
	if storestate.MarkOf(i) == "" || m.Store == nil || !c.Snapshot.PD.MayEvictLeaders(m.Store.ID) {
		return nil
	}
	return []component.Call{{Verb: component.StopEvictingLeaders, Target: m.Store.ID, Instance: i.Name}}
}
