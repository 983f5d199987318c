package store

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// PutHealth sets StoresHealthy: whether every store of the group is Up, and no region
// has lost its majority with stores of others.
func PutHealth(g v1alpha1.Group, s observation.Snapshot, matches []storestate.Match, start gate.Dependencies, set *conditions.Set) {
	const condition = v1alpha1.ConditionStoresHealthy
	trust := storestate.TrustPD(g, s)
	counts := rollout.Count(s, "")
	switch {
	case g.GetComponentSpec().Suspended && !groupstatus.IsSuspensionPaused(g, s):
		set.MarkFalse(condition, v1alpha1.ReasonSuspended, "suspended")
	case len(s.Instances) == 0 && g.GetReplicas() == 0:
		set.MarkFalse(condition, v1alpha1.ReasonNoInstances, "spec.replicas is 0")
	case len(s.Instances) == 0 && !start.Open && (start.Reason == v1alpha1.ReasonWaitingForPDGroup || start.Reason == v1alpha1.ReasonWaitingForTiKVGroup):
		set.MarkFalse(condition, start.Reason, start.Message)
	case len(s.Instances) == 0:
		set.MarkFalse(condition, v1alpha1.ReasonNoInstances, "no Instance exists yet")
	case !trust.IsAllowed() && counts.Ready == 0:
		set.MarkFalse(condition, storestate.DistrustReason(s), "no Instance is ready, and "+trust.Reason())
	case !trust.IsAllowed():
		set.MarkUnknown(condition, storestate.DistrustReason(s), trust.Reason())
	default:
		reason, message := summarizeStores(matches)
		status := metav1.ConditionFalse
		if reason == v1alpha1.ReasonStoresHealthy {
			status = metav1.ConditionTrue
		}
		if why := storestate.DescribeOutage(g, s); why != "" {
			if status == metav1.ConditionTrue {
				status, reason = metav1.ConditionFalse, v1alpha1.ReasonRegionsUnavailable
			}
			set.SetCondition(condition, status, reason, message+"; "+why)
			return
		}
		set.SetCondition(condition, status, reason, message+storestate.DescribeAbandoned(g, s))
	}
}

// summarizeStores says in one reason and line how the stores are.
func summarizeStores(matches []storestate.Match) (reason, message string) {
	up, all, reason, first := 0, 0, v1alpha1.ReasonStoresHealthy, ""
	for _, m := range matches {
		if m.Instance.Spec.Retire && m.Own.IsAllowed() {
			continue // it is being removed
		}
		all++
		v := m.Judge()
		if v.Healthy && m.Store.State != pd.StateUp && !member.IsReady(m.Instance) {
			// Disconnected and without a ready pod: it has not only been
			// forgotten by a new PD leader.
			v = storestate.Health{Joined: true, Reason: v1alpha1.ReasonMemberUnhealthy, Message: fmt.Sprintf("store %s is %s", m.Store.ID, m.Store.State)}
		}
		if v.Healthy {
			up++
			continue
		}
		worse := v1alpha1.ReasonStoresUnhealthy
		switch {
		case v.Reason == v1alpha1.ReasonStoreMismatch:
			worse = v1alpha1.ReasonStoreMismatch
		case v.Reason == v1alpha1.ReasonRegistering, v.Reason == v1alpha1.ReasonMemberNotListed && m.Recorded == "":
			worse = v1alpha1.ReasonRegistering
		}
		if rankReason(worse) > rankReason(reason) {
			reason, first = worse, fmt.Sprintf(": Instance %s: %s", m.Instance.Name, v.Message)
		}
	}
	return reason, fmt.Sprintf("%d of %d stores are Up%s", up, all, first)
}

// rankReason orders the reasons of StoresHealthy by how much they tell.
func rankReason(reason string) int {
	switch reason {
	case v1alpha1.ReasonRegistering:
		return 1
	case v1alpha1.ReasonStoresUnhealthy:
		return 2
	case v1alpha1.ReasonStoreMismatch:
		return 3
	}
	return 0
}

// IsServing reports whether the group may be depended on and, if PD does not say,
// why and when to look again. It serves with all Instances but one Ready, and a
// group that was Ready goes on serving while it grows. set holds StoresHealthy.
func IsServing(g v1alpha1.Group, s observation.Snapshot, set *conditions.Set, now time.Time) (bool, step.Outcome) {
	ready := rollout.Count(s, "").Ready
	enough := ready >= max(1, g.GetReplicas()-1)
	if !enough && set.Was(v1alpha1.ConditionReady) {
		enough = ready >= 1 && countLostMembers(s) <= 1
	}
	enough = enough && storestate.DescribeOutage(g, s) == ""
	if set.Get(v1alpha1.ConditionStoresHealthy).Status != metav1.ConditionUnknown {
		return enough, step.Done()
	}
	tolerated, outcome := groupstatus.ToleratesPDOutage(set, v1alpha1.ConditionStoresHealthy, now)
	return enough && tolerated, outcome
}

// countLostMembers counts the members that were part of the database and do not serve now.
// Those on their way into it do not count.
func countLostMembers(s observation.Snapshot) int {
	n := 0
	for _, i := range s.Instances {
		healthy := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionHealthy)
		switch {
		case storestate.RecordedID(i) == "", member.IsReady(i), i.Spec.Retire:
		case s.Lease.Covers(i) && !s.Lease.IsHeldBy(i): // the holder counts for its batch
		case healthy != nil && healthy.Reason == v1alpha1.ReasonRegistering:
		case healthy == nil, healthy.Status != metav1.ConditionTrue, !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady):
			n++
		}
	}
	return n
}

// PutHolding sets HoldsRegions of a group whose entry is gone from its TidbCluster,
// which keeps it for them. Other groups do not report how many there are: the number
// would have their status written all the time.
func PutHolding(g v1alpha1.Group, s observation.Snapshot, matches []storestate.Match, set *conditions.Set) {
	if !storestate.TrustPD(g, s).IsAllowed() || g.GetAnnotations()[v1alpha1.AnnotationEntryRemoved] == "" {
		return
	}
	regions, stores := 0, 0
	for _, m := range matches {
		if m.Store != nil && m.Own.IsAllowed() {
			regions += m.Store.Regions
			stores++
		}
	}
	if regions > 0 {
		set.MarkTrue(v1alpha1.ConditionHoldsRegions, v1alpha1.ReasonRegionsLeft, fmt.Sprintf("its %d stores hold %s region peers", stores, storestate.RoundCount(regions)))
	}
}
