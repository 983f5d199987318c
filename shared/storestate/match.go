package storestate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Match is an Instance and its store.
type Match struct {
	// Instance of the group.
	Instance *v1alpha1.Instance
	// Address that its store advertises, host:port.
	Address string
	// Recorded is the ID of the store that the Instance is known to be; empty
	// if it has not registered yet.
	Recorded string
	// Store as PD lists it, nil if it does not.
	Store *pd.Store
	// Own says whether the store is the one that it should be; if not, what a user may do.
	Own verdict.Verdict
}

// Matches finds the store of every Instance of a group. port is where a store
// of the group's kind advertises itself.
func Matches(g v1alpha1.Group, s observation.Snapshot, port int32) []Match {
	here := map[string][]pd.Store{} // by pod
	for _, store := range s.PD.Stores {
		if pod := podOf(g, store, port); pod != "" {
			here[pod] = append(here[pod], store)
		}
	}
	owner := map[string]string{} // Instance by recorded ID
	for _, i := range s.Instances {
		if id := RecordedID(i); id != "" {
			owner[id] = i.Name
		}
	}
	out := make([]Match, 0, len(s.Instances))
	for _, i := range s.Instances {
		m := Match{
			Instance: i, Recorded: RecordedID(i), Own: verdict.Allow(),
			Address: fmt.Sprintf("%s:%d", names.PodHost(i.Name, g.GetName(), g.GetNamespace(), g.GetComponentSpec().ClusterDomain), port),
		}
		if m.Recorded == "" {
			m.adopt(here[i.Name], owner)
		} else {
			m.verify(g, s.PD, here[i.Name], port)
		}
		out = append(out, m)
	}
	return out
}

// adopt takes the store at the Instance's address for its own, for the first
// time.
func (m *Match) adopt(here []pd.Store, owner map[string]string) {
	candidates := notLeaving(here)
	if len(candidates) == 0 {
		candidates = here
	}
	switch {
	case len(candidates) == 0:
	case len(candidates) > 1:
		m.Own = verdict.Refusef("PD lists stores %s and %s at the address of Instance %s: remove the one that is not running from PD", candidates[0].ID, candidates[1].ID, m.Instance.Name)
	case owner[candidates[0].ID] != "":
		m.Own = verdict.Refusef("at the address of Instance %s PD lists store %s, which is Instance %s: its claims hold the data of another member; give each Instance its own claims back", m.Instance.Name, candidates[0].ID, owner[candidates[0].ID])
	default:
		m.Store = &candidates[0]
	}
}

// verify finds the store that the Instance is known to be, and makes sure that
// no other one has taken its place.
func (m *Match) verify(g v1alpha1.Group, view pd.View, here []pd.Store, port int32) {
	for _, other := range notLeaving(here) {
		if other.ID != m.Recorded {
			m.Own = verdict.Refusef("Instance %s is store %s, but at its address PD lists store %s: its data was lost or replaced; restore its claims, or %sdelete the Instance (kubectl -n %s delete instance %s) to go on with store %s",
				m.Instance.Name, m.Recorded, other.ID, origin.KeepClaims(g), m.Instance.Namespace, m.Instance.Name, other.ID)
			return
		}
	}
	store, listed := view.Store(m.Recorded)
	if !listed {
		return
	}
	if pod := podOf(g, store, port); pod != m.Instance.Name {
		m.Own = verdict.Refusef("Instance %s is store %s, but PD lists that store at %s: another member runs with its data; give each Instance its own claims back", m.Instance.Name, m.Recorded, store.Address)
		return
	}
	m.Store = &store
}

// SlotsWithoutInstance returns the slots whose store PD lists, and whose Instance has gone
// although its member did not leave: it was released to be created again, and spec.replicas is
// smaller by now; or its group was deleted and made again with fewer members. A store that is
// Offline leaves by itself.
func SlotsWithoutInstance(c State) []int32 {
	if !c.TrustPD.IsAllowed() {
		return nil
	}
	var out []int32
	for _, store := range c.Snapshot.PD.Stores {
		pod, ok := names.PodOfHost(store.Address, c.Group.GetName(), c.Group.GetNamespace())
		slot, own := names.Slot(c.Group.GetName(), pod)
		if ok && own && store.HasLearnersOnly() != c.HasLeaders && store.State != pd.StateOffline && c.Snapshot.Instance(pod) == nil {
			out = append(out, slot)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// StallOnMismatch stalls a group of which a store is not the one that it should be;
// Done if there is none.
func StallOnMismatch(matches []Match) step.Outcome {
	for _, m := range matches {
		if !m.Own.IsAllowed() {
			return step.Stall(v1alpha1.ReasonStoreMismatch, m.Own.Reason())
		}
	}
	return step.Done()
}

// notLeaving leaves out stores that are being removed: a new one may take their
// address before they are gone.
func notLeaving(stores []pd.Store) []pd.Store {
	var out []pd.Store
	for _, s := range stores {
		if s.State != pd.StateOffline {
			out = append(out, s)
		}
	}
	return out
}

// podOf returns the pod of the group that a store's address belongs to, empty
// if it is none of them.
func podOf(g v1alpha1.Group, store pd.Store, port int32) string {
	if !strings.HasSuffix(store.Address, fmt.Sprintf(":%d", port)) {
		return ""
	}
	pod, ok := names.PodOfHost(store.Address, g.GetName(), g.GetNamespace())
	if !ok {
		return ""
	}
	return pod
}

// RecordedID is the ID of the store that an Instance is known to be; empty if it has not
// registered yet.
func RecordedID(i *v1alpha1.Instance) string {
	if i.Status.Member == nil {
		return ""
	}
	return i.Status.Member.ID
}

// Judge reports what PD's answer means for an Instance.
func (m Match) Judge() Health {
	switch {
	case !m.Own.IsAllowed():
		return Health{Reason: v1alpha1.ReasonStoreMismatch, Message: m.Own.Reason()}
	case m.Store == nil && m.Recorded == "":
		return Health{Reason: v1alpha1.ReasonMemberNotListed, Message: "PD lists no store at " + m.Address}
	case m.Store == nil:
		return Health{Reason: v1alpha1.ReasonMemberNotListed, Message: fmt.Sprintf("PD no longer lists store %s: it has been removed", m.Recorded)}
	}
	name := "store " + m.Store.ID
	switch {
	case m.Store.State == pd.StateUp:
		return Health{Joined: true, Healthy: true, Reason: v1alpha1.ReasonMemberHealthy, Message: name + " is Up"}
	case m.Store.State == pd.StateDisconnected && m.Was(v1alpha1.ConditionHealthy):
		// After a change of PD's leader every store is Disconnected until its
		// next heartbeat. A pod that really died is not ready either way.
		return Health{Joined: true, Healthy: true, Reason: v1alpha1.ReasonMemberHealthy, Message: name + " was Up when PD last heard of it"}
	case !m.Store.Started && m.Store.State != pd.StateOffline:
		return Health{Joined: true, Reason: v1alpha1.ReasonRegistering, Message: name + " has registered and not sent a heartbeat yet"}
	}
	return Health{Joined: true, Reason: v1alpha1.ReasonMemberUnhealthy, Message: name + " is " + m.Store.State}
}

// Was reports whether the Instance carries a condition at True.
func (m Match) Was(condition string) bool {
	return meta.IsStatusConditionTrue(m.Instance.Status.Conditions, condition)
}

// putDrained sets Drained of a member that leaves, has left, or was deleted and
// waits. A member that has left stays so, but for one that PD has never listed: it
// may start again.
func (m Match) putDrained(set *conditions.Set, left bool, waits string) {
	leaves := m.Instance.Spec.Retire || MarkOf(m.Instance) == member.Remove
	switch {
	case left && m.Recorded == "":
		set.MarkTrue(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, "the pod has stopped and PD has never listed a store of it")
	case left, m.Was(v1alpha1.ConditionDrained) && m.Store == nil && m.Recorded != "":
		set.MarkTrue(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, fmt.Sprintf("PD no longer lists store %s", m.Recorded))
	case waits != "":
		set.MarkFalse(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, waits)
	case leaves && m.Store != nil && m.Store.State == pd.StateOffline:
		set.MarkFalse(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, fmt.Sprintf("store %s is Offline and has %s left", m.Store.ID, RegionCount(m.Store.Regions)))
	case leaves && m.Store != nil:
		set.MarkFalse(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, fmt.Sprintf("store %s is %s and must leave", m.Store.ID, m.Store.State))
	}
}

// status returns the member's status. The recorded ID outlives everything that
// PD says: it is what tells the store from another one at its address.
func (m Match) status() *v1alpha1.MemberStatus {
	switch {
	case !m.Own.IsAllowed() || (m.Store == nil && m.Recorded == ""):
		return m.Instance.Status.Member
	case m.Store == nil:
		gone := *m.Instance.Status.Member
		gone.State = pd.StateTombstone
		return &gone
	}
	return &v1alpha1.MemberStatus{ID: m.Store.ID, Name: m.Instance.Name, State: m.Store.State, Address: m.Store.Address}
}

// IsAbsent reports whether a member's store does not serve. One that PD has only lost
// sight of for a moment has a pod that is ready.
func (m Match) IsAbsent() bool {
	if m.Store == nil || m.Store.State == pd.StateDown {
		return true
	}
	return m.Store.State == pd.StateDisconnected && member.PodStateOf(m.Instance) != member.PodReady
}
