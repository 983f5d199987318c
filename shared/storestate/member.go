package storestate

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
)

// Health is what PD's answer means for one Instance.
type Health struct {
	Joined, Healthy bool
	// Reason of Healthy, and of Joined if that is False too.
	Reason  string
	Message string
}

// Members returns what is to be reported of every Instance's member. drained are
// those that the planner takes for having left, waiting says why deleted ones are
// still there.
func Members(matches []Match, drained map[string]bool, waiting map[string]string, now time.Time) []groupstatus.Member {
	out := make([]groupstatus.Member, 0, len(matches))
	for _, m := range matches {
		v := m.Judge()
		set := conditions.NewMember(m.Instance.Status.Conditions, now)
		if v.Joined {
			set.MarkTrue(v1alpha1.ConditionJoined, v1alpha1.ReasonMemberJoined, "PD lists store "+m.Store.ID)
		} else {
			set.MarkFalse(v1alpha1.ConditionJoined, v.Reason, v.Message)
		}
		status := metav1.ConditionFalse
		if v.Healthy {
			status = metav1.ConditionTrue
		}
		reason := v.Reason
		if m.Store == nil && m.Recorded != "" && m.Own.IsAllowed() {
			reason = v1alpha1.ReasonStoreTombstone
		}
		set.SetCondition(v1alpha1.ConditionHealthy, status, reason, v.Message)
		m.putDrained(set, drained[m.Instance.Name], waiting[m.Instance.Name])
		out = append(out, groupstatus.Member{Instance: m.Instance, Status: m.status(), Conditions: set.List()})
	}
	return out
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
