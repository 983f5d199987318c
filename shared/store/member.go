package store

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// verdict is what PD's answer means for one Instance.
type verdict struct {
	joined, healthy bool
	// reason of Healthy, and of Joined if that is False too.
	reason  string
	message string
}

// judge tells what PD's answer means for an Instance.
func (m Match) judge() verdict {
	switch {
	case m.Problem != "":
		return verdict{reason: v1alpha1.ReasonStoreMismatch, message: m.Problem}
	case m.Store == nil && m.Recorded == "":
		return verdict{reason: v1alpha1.ReasonMemberNotListed, message: "PD lists no store at " + m.Address}
	case m.Store == nil:
		return verdict{reason: v1alpha1.ReasonMemberNotListed, message: fmt.Sprintf("PD does not list store %s any more: it has been removed", m.Recorded)}
	}
	name := "store " + m.Store.ID
	switch {
	case m.Store.State == pd.StateUp:
		return verdict{joined: true, healthy: true, reason: v1alpha1.ReasonMemberHealthy, message: name + " is Up"}
	case m.Store.State == pd.StateDisconnected && m.was(v1alpha1.ConditionHealthy):
		// After a change of PD's leader every store is Disconnected until its
		// next heartbeat. A pod that really died is not ready either way.
		return verdict{joined: true, healthy: true, reason: v1alpha1.ReasonMemberHealthy, message: name + " was Up when PD last heard of it"}
	case !m.Store.Started && m.Store.State != pd.StateOffline:
		return verdict{joined: true, reason: v1alpha1.ReasonRegistering, message: name + " has registered and not sent a heartbeat yet"}
	}
	return verdict{joined: true, reason: v1alpha1.ReasonMemberUnhealthy, message: name + " is " + m.Store.State}
}

// was reports whether the Instance carries a condition at True.
func (m Match) was(condition string) bool {
	return meta.IsStatusConditionTrue(m.Instance.Status.Conditions, condition)
}

// Members returns what is to be reported of every Instance's member. drained are
// those that the planner takes for having left, waiting says why deleted ones are
// still there.
func Members(matches []Match, drained map[string]bool, waiting map[string]string, now time.Time) []groupstatus.Member {
	out := make([]groupstatus.Member, 0, len(matches))
	for _, m := range matches {
		v := m.judge()
		set := conditions.New(m.Instance.Status.Conditions, m.Instance.Generation, now)
		if v.joined {
			set.True(v1alpha1.ConditionJoined, v1alpha1.ReasonMemberJoined, "PD lists store "+m.Store.ID)
		} else {
			set.False(v1alpha1.ConditionJoined, v.reason, v.message)
		}
		status := metav1.ConditionFalse
		if v.healthy {
			status = metav1.ConditionTrue
		}
		reason := v.reason
		if m.Store == nil && m.Recorded != "" && m.Problem == "" {
			reason = v1alpha1.ReasonStoreTombstone
		}
		set.Put(v1alpha1.ConditionHealthy, status, reason, v.message)
		m.putDrained(set, drained[m.Instance.Name], waiting[m.Instance.Name])
		out = append(out, groupstatus.Member{Instance: m.Instance, Status: m.status(), Conditions: set.List()})
	}
	return out
}

// putDrained sets Drained of a member that leaves, has left, or was deleted and
// waits. A member that has left stays so, but for one that PD has never listed: it
// may start again.
func (m Match) putDrained(set *conditions.Set, left bool, waits string) {
	leaves := m.Instance.Spec.Retire || mark(m.Instance) == member.Remove
	switch {
	case left && m.Recorded == "":
		set.True(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, "the pod has stopped and PD has never listed a store of it")
	case left, m.was(v1alpha1.ConditionDrained) && m.Store == nil && m.Recorded != "":
		set.True(v1alpha1.ConditionDrained, v1alpha1.ReasonMemberLeft, fmt.Sprintf("PD does not list store %s any more", m.Recorded))
	case waits != "":
		set.False(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, waits)
	case leaves && m.Store != nil && m.Store.State == pd.StateOffline:
		set.False(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, fmt.Sprintf("store %s is Offline and has %s left", m.Store.ID, regions(m.Store.Regions)))
	case leaves && m.Store != nil:
		set.False(v1alpha1.ConditionDrained, v1alpha1.ReasonNotDrained, fmt.Sprintf("store %s is %s and is to leave", m.Store.ID, m.Store.State))
	}
}

// status returns the member's status. The recorded ID outlives everything that
// PD says: it is what tells the store from another one at its address.
func (m Match) status() *v1alpha1.MemberStatus {
	switch {
	case m.Problem != "" || (m.Store == nil && m.Recorded == ""):
		return m.Instance.Status.Member
	case m.Store == nil:
		gone := *m.Instance.Status.Member
		gone.State = pd.StateTombstone
		return &gone
	}
	return &v1alpha1.MemberStatus{ID: m.Store.ID, Name: m.Instance.Name, State: m.Store.State, Address: m.Store.Address}
}

// Statuses returns the stores for the group's status, one per Instance that has
// registered.
func Statuses(matches []Match) []v1alpha1.StoreStatus {
	var out []v1alpha1.StoreStatus
	for _, m := range matches {
		if member := m.status(); member != nil {
			out = append(out, v1alpha1.StoreStatus{Instance: m.Instance.Name, ID: member.ID, State: member.State})
		}
	}
	return out
}
