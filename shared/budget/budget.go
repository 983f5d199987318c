package budget

import (
	"slices"
	"strings"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// ComponentBudget returns the PodDisruptionBudget of all members of one component in a
// cluster, of whatever group, which lets a drain take one of them at a time, and
// none while the operators disrupt one themselves: the holder of the Lease is the
// one. It counts pods, because Kubernetes cannot count those of an owner without
// /scale in any other way.
func ComponentBudget(g v1alpha1.Group, s observation.Snapshot, owner metav1.OwnerReference, members int32) *policyv1.PodDisruptionBudget {
	if isDisrupted(g, s) {
		members++
	}
	out := budgetOf(g, owner, members, map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCluster: g.PDGroupName(), v1alpha1.LabelComponent: g.Component(),
	})
	// Of a group that comes up nothing is lost yet.
	if g.GetGroupStatus().CurrentRevision != "" && countUnready(s) > 1 {
		out.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.IfHealthyBudget)
	}
	return out
}

// countUnready counts the members whose pods run and are not ready. They may serve the others all the same: a proxy that
// others have put into the pods has lost its way, or the kubelets get no answers in time.
func countUnready(s observation.Snapshot) int {
	n := 0
	for _, i := range s.WithSiblings() {
		pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
		if pod != nil && pod.Status == metav1.ConditionFalse && pod.Reason == v1alpha1.ReasonPodNotReady && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionJoined) {
			n++
		}
	}
	return n
}

// isDisrupted reports whether the operators disrupt a member of a group's component.
func isDisrupted(g v1alpha1.Group, s observation.Snapshot) bool {
	return s.Lease.Holder.Kind == g.GroupKind() && !s.HolderLost
}

// OwnBudget returns the PodDisruptionBudget of one group whose members have
// nothing to do with those of others: a drain takes one of them at a time. It goes
// with the group.
func OwnBudget(g v1alpha1.Group) *policyv1.PodDisruptionBudget {
	return budgetOf(g, workload.Owner(g), g.GetReplicas(), workload.Selector(g))
}

// budgetOf returns the PodDisruptionBudget by which all members but one have to
// stay: a single member never keeps a drain from ending.
func budgetOf(g v1alpha1.Group, owner metav1.OwnerReference, members int32, selector map[string]string) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: g.GetNamespace(), Name: observation.BudgetName(g),
			Labels: map[string]string{
				v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelName: "tidb",
				v1alpha1.LabelCluster: g.PDGroupName(), v1alpha1.LabelComponent: g.Component(),
			},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(max(members-1, 0))),
			Selector:     &metav1.LabelSelector{MatchLabels: selector},
			// One pod that is not ready protects nothing by staying.
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
		},
	}
}

// CountWanted is how many members a group is to have that has some: none is added to one that is
// paused or suspended, and a drain would wait for pods that do not come.
func CountWanted(g v1alpha1.Group, have int32) int32 {
	if spec := g.GetComponentSpec(); spec.Paused || spec.Suspended {
		return have
	}
	return max(g.GetReplicas(), have)
}

// countMembers counts the members of a group: one that leaves, or that stands in for another,
// has regions like all. A member that has no regions and whose pod is not ready does not
// count: on a lost node its pod stays indefinitely, and would keep every other one from being
// evicted. One without a pod counts for as long as it has regions: they lack its peers. That of a
// suspended group does not if these are learners, on which no majority depends.
func countMembers(s observation.Snapshot, g v1alpha1.Group) int32 {
	n := int32(0)
	info, _ := v1alpha1.LookupComponent(g.GroupKind())
	learners := g.GetComponentSpec().Suspended && info.LearnerEngine != ""
	for _, i := range s.WithSiblings() {
		if i.Spec.Group.Name == g.GetName() && !isIdle(s, i) && (!learners || i.Status.PodUID != "") {
			n++
		}
	}
	return n
}

// countOrphans counts the Instances with pods whose group is gone, or about to go, and
// that were not deleted with it: they run on, and the budget selects them. No majority
// depends on a store that has learners only, and one that is not ready does not count.
func countOrphans(s observation.Snapshot, g v1alpha1.Group) int32 {
	n := int32(0)
	info, _ := v1alpha1.LookupComponent(g.GroupKind())
	for _, i := range s.WithSiblings() {
		stays := slices.ContainsFunc(s.Groups, func(other v1alpha1.Group) bool {
			return other.GroupKind() == g.GroupKind() && other.GetName() == i.Spec.Group.Name && other.GetDeletionTimestamp() == nil
		})
		ready := meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) || info.LearnerEngine == ""
		if !stays && ready && i.DeletionTimestamp == nil && i.Status.PodUID != "" && !isIdle(s, i) {
			n++
		}
	}
	return n
}

// countLeftStores counts the stores by the names of their groups that have no Instance any more and
// do not run, such as those of a group that was deleted: their regions lack their peers, and no
// pod is there that Kubernetes could count.
func countLeftStores(s observation.Snapshot, kind string) map[string]int32 {
	out := map[string]int32{}
	if !v1alpha1.LeadsRegions(kind) {
		return out
	}
	for _, store := range s.PD.Stores {
		pod := store.PodName()
		if !store.HasLearnersOnly() && store.State != pd.StateUp && store.Regions > 0 && pod != "" && s.Find(pod) == nil {
			out[pod[:max(strings.LastIndex(pod, "-"), 0)]]++
		}
	}
	return out
}

// isIdle reports whether the pod of a member is not ready and PD counts no regions on
// its store, if it lists it. One whose pod is ready is counted by Kubernetes.
func isIdle(s observation.Snapshot, i *v1alpha1.Instance) bool {
	if s.PD.Err != nil || meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
		return false
	}
	if i.Status.Member == nil {
		return true
	}
	store, listed := s.PD.Store(i.Status.Member.ID)
	return (!listed || store.Regions == 0) && hasCountedRegions(s)
}

// hasCountedRegions reports whether PD has heard of the regions of all members that are ready: a
// leader of PD that is new counts none at first.
func hasCountedRegions(s observation.Snapshot) bool {
	return !hasReadyStore(s, func(store pd.Store, listed bool) bool { return !listed || store.Regions == 0 })
}

// isReadyButNotUp reports whether a member is ready for its kubelet, which is all that a
// PodDisruptionBudget counts, while its store is not Up for PD. No other member may be
// evicted then. A PD with a new leader counts no regions on a store that it has not heard
// of yet.
func isReadyButNotUp(s observation.Snapshot) bool {
	return hasReadyStore(s, func(store pd.Store, listed bool) bool {
		return listed && store.Regions > 0 && store.IsUnreachable()
	})
}

// closedFor is for how long a budget that let no member go does so still while PD says nothing. PD
// whose leader is on the node that is drained has another one within some seconds.
const closedFor = 70 * time.Second

// staysClosed reports whether the budget let none of so many members go when PD was last heard of,
// which has not been for long.
func staysClosed(g v1alpha1.Group, s observation.Snapshot, members int32) bool {
	if s.PD.Err == nil || s.Budget == nil || s.Budget.Spec.MinAvailable == nil || s.Budget.Spec.MinAvailable.IntValue() < int(members) {
		return false
	}
	unknown := meta.FindStatusCondition(g.GetGroupStatus().Conditions, v1alpha1.ConditionStoresHealthy)
	return unknown == nil || unknown.Status != metav1.ConditionUnknown || s.Now.Sub(unknown.LastTransitionTime.Time) < closedFor
}

// hasReadyStore reports whether something holds for the store of a member of the cluster
// whose pod is ready; listed is whether PD lists that.
func hasReadyStore(s observation.Snapshot, holds func(store pd.Store, listed bool) bool) bool {
	return slices.ContainsFunc(s.WithSiblings(), func(i *v1alpha1.Instance) bool {
		if i.Status.Member == nil || !meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady) {
			return false
		}
		return holds(s.PD.Store(i.Status.Member.ID))
	})
}

// SharedBudget returns the Budget of a component that several groups of a cluster
// may have members of; nil without a PDGroup to own it.
func SharedBudget(g v1alpha1.Group, s observation.Snapshot) *policyv1.PodDisruptionBudget {
	if s.PDGroup == nil {
		return nil
	}
	members := countOrphans(s, g)
	missed, left := int32(0), countLeftStores(s, g.GroupKind())
	for _, other := range s.Groups {
		if other.GroupKind() == g.GroupKind() && other.GetDeletionTimestamp() == nil {
			exist := countMembers(s, other)
			there := CountWanted(other, exist)
			missed += max(exist+left[other.GetName()]-there, 0)
			members += there
			delete(left, other.GetName())
		}
	}
	for _, n := range left {
		missed += n
	}
	if members > 1 {
		members += missed
	}
	if members > 1 && (isReadyButNotUp(s) || !isDisrupted(g, s) && (s.CatchesUp(g) || staysClosed(g, s, members))) {
		members++
	}
	return ComponentBudget(g, s, metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion().String(), Kind: v1alpha1.KindPDGroup, Name: s.PDGroup.Name, UID: s.PDGroup.UID,
	}, members)
}
