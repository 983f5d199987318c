package storestate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// A group that is deleted takes nothing out of PD: its stores stay there as they
// are when their pods have stopped. As long as they do no other one of their kind is
// restarted, and no operator is left that owns them. So those that are left name them.

// IsAbandoned reports whether PD lists a store that it does not hear of and that no
// Instance of the cluster is. An Instance that is being recreated is there.
func IsAbandoned(s observation.Snapshot, store pd.Store) bool {
	if !store.LacksProcess() {
		return false
	}
	name := store.PodName()
	return s.Lease.Holder.Instance != name && s.Find(name) == nil
}

// IsAnnotated reports whether a member of the Lease holder's batch is there of which an
// annotation reports that its restart has begun.
func IsAnnotated(c State, name string) bool {
	i := c.Snapshot.Find(name)
	return name != c.Snapshot.Lease.Holder.Instance && i != nil && MarkOf(i) != ""
}

// DescribeSuspension says that a member's group is suspended, and how to resume it; empty if it
// is not.
func DescribeSuspension(c State, store pd.Store) string {
	i := c.Snapshot.Find(store.PodName())
	if i == nil {
		return ""
	}
	for _, g := range c.Snapshot.Groups {
		if g.GroupKind() == c.Group.GroupKind() && g.GetName() == i.Spec.Group.Name && g.GetComponentSpec().Suspended {
			return fmt.Sprintf("%s %s is suspended: to resume it, %s", g.GroupKind(), g.GetName(), origin.OfGroup(g).Unset("suspended"))
		}
	}
	return ""
}

// GroupNameOf is what the group of a store was called, by its pod.
func GroupNameOf(store pd.Store) string {
	pod := store.PodName()
	if at := strings.LastIndex(pod, "-"); at > 0 {
		return pod[:at]
	}
	return pod
}

// DescribeOutage says that regions have lost their majority with stores that do not run,
// of whatever owner, and what brings them back; empty if none has. A leader of PD that
// is new misses stores that run.
func DescribeOutage(g v1alpha1.Group, s observation.Snapshot) string {
	if !TrustPD(g, s).IsAllowed() || !isMajorityLost(g, s) || !v1alpha1.LeadsRegions(g.GroupKind()) {
		return ""
	}
	if len(s.PD.ForceRemoved) > 0 {
		return DescribeForceRemoved(g, s.PD)
	}
	var dead []pd.Store
	for _, store := range s.PD.UnreachableStores() {
		if i := s.Find(store.PodName()); i == nil || !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
			dead = append(dead, store)
		}
	}
	if len(dead) < s.PD.FatalStoreCount() {
		return ""
	}
	var named []string
	for _, store := range dead[:min(len(dead), 3)] {
		named = append(named, fmt.Sprintf("%s (%s)", store.ID, store.PodName()))
	}
	if more := len(dead) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	say := "regions have lost their majority and do not serve: these stores have them and do not run: " + strings.Join(named, ", ") + ": "
	if at := slices.IndexFunc(dead, func(store pd.Store) bool { return IsAbandoned(s, store) }); at >= 0 {
		if why := describeMissingInstance(s, dead[at]); why != "" {
			return say + dead[at].PodName() + ": " + why
		}
		return say + fmt.Sprintf("their group is gone: recreate group %s, which takes over its claims", GroupNameOf(dead[at]))
	}
	return say + fmt.Sprintf("kubectl -n %s describe instance %s", g.GetNamespace(), dead[0].PodName())
}

// isMajorityLost reports whether PD lists a region without a majority. Until it has answered for
// the stores that are missed now, the group's last word counts: the operator may have restarted.
func isMajorityLost(g v1alpha1.Group, s observation.Snapshot) bool {
	said := meta.FindStatusCondition(g.GetGroupStatus().Conditions, v1alpha1.ConditionStoresHealthy)
	return s.PD.MajorityLost || s.PD.MajorityUnknown && said != nil && said.Reason == v1alpha1.ReasonRegionsUnavailable
}

// DescribeForceRemoved says that PD was told to remove stores by force that regions have lost their
// majority with, and how to see what comes of it.
func DescribeForceRemoved(g v1alpha1.Group, view pd.View) string {
	return fmt.Sprintf("regions have lost their majority and do not serve: PD was told to remove stores %s by force, which had them: to see how far it is: %s unsafe remove-failed-stores show",
		strings.Join(view.ForceRemoved, ", "), PDCtl(g))
}

// WaitForMajority waits while regions are without a majority: nothing that depends on them
// should go on.
func WaitForMajority(g v1alpha1.Group, s observation.Snapshot) step.Outcome {
	why := DescribeOutage(g, s)
	if why == "" || g.GetComponentSpec().Suspended || len(s.Instances) == 0 {
		return step.Done()
	}
	return step.Wait("PD", outageDeadline, v1alpha1.ReasonRegionsUnavailable, why)
}

// outageDeadline is after how long a group looks again whether regions are back.
const outageDeadline = time.Minute

// DescribeLeftBehind names an abandoned store and what a user may do.
func DescribeLeftBehind(s observation.Snapshot, store pd.Store) string {
	name := fmt.Sprintf("store %s (%s) does not run", store.ID, store.PodName())
	if why := describeMissingInstance(s, store); why != "" {
		return name + " and " + why
	}
	return fmt.Sprintf("%s and its group is gone: recreate group %s, which takes over its claims, and scale it to 0 to remove it; if its claims are gone for good: see docs/tasks/delete.md",
		name, GroupNameOf(store))
}

// describeMissingInstance says that the group of an abandoned store is there, and only its
// Instance is not; empty if the group is gone.
func describeMissingInstance(s observation.Snapshot, store pd.Store) string {
	for _, g := range s.Groups {
		kind, name := g.GroupKind(), g.GetName()
		info, _ := v1alpha1.LookupComponent(kind)
		alike := info.LearnerEngine != "" && store.HasLearnersOnly() || info.LeadsRegions() && !store.HasLearnersOnly()
		switch {
		case name != GroupNameOf(store) || !alike || g.GetDeletionTimestamp() != nil:
		case g.GetComponentSpec().Suspended:
			return fmt.Sprintf("its Instance is gone, which %s %s creates again when it is resumed: to resume it, %s", kind, name, origin.OfGroup(g).Unset("suspended"))
		default:
			return fmt.Sprintf("its Instance is gone, which %s %s creates again: kubectl -n %s describe %s %s", kind, name, g.GetNamespace(), strings.ToLower(kind), name)
		}
	}
	return ""
}

// DescribeAbandoned names the first abandoned store of a group's kind, and how many there are;
// empty if there is none.
func DescribeAbandoned(g v1alpha1.Group, s observation.Snapshot) string {
	var all []pd.Store
	leading := v1alpha1.LeadsRegions(g.GroupKind())
	for _, store := range s.PD.Stores {
		if store.HasLearnersOnly() != leading && IsAbandoned(s, store) {
			all = append(all, store)
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "; " + DescribeLeftBehind(s, all[0])
	}
	return fmt.Sprintf("; %s; and %d more", DescribeLeftBehind(s, all[0]), len(all)-1)
}
