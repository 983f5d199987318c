package observation

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// IsRestartWithdrawn reports whether a restart was permitted that is not asked for any
// more, while a policy refuses the new pod. The policy may change at any moment, so the
// permission has to be withdrawn. A request by an annotation counts for as long as the
// annotation is there.
func IsRestartWithdrawn(s Snapshot, i *v1alpha1.Instance) bool {
	return member.IsStopPermitted(i) && member.WhyNotUpToDate(i) == v1alpha1.ReasonPodRejected &&
		i.Annotations[v1alpha1.AnnotationRestart] == "" && !mustLeaveNode(s, i)
}

// IsRestartDue reports whether a member of the group may have to be restarted: it
// has another revision than the group had last time, is asked for it, was deleted,
// or may run with another configuration than its revision's.
func IsRestartDue(g v1alpha1.Group, s Snapshot) bool {
	target := g.GetGroupStatus().UpdateRevision
	return slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		return member.HasMemberFinalizer(i) && i.DeletionTimestamp != nil || i.DeletionTimestamp == nil && (target != "" && i.Spec.Revision != target || RestartRequest(s, i).IsGiven() || member.MayRunOtherConfig(i))
	})
}

// RestartRequest says why a pod is to be restarted although nothing of it changes: a user
// asked, or its node is to be left. A pod whose volumes would not
// follow it stays. A member that was permitted to stop is not asked again: its safety was
// decided then, and it keeps the Lease until it has restarted or the permission is
// withdrawn.
func RestartRequest(s Snapshot, i *v1alpha1.Instance) verdict.Reason {
	if answer := i.Annotations[v1alpha1.AnnotationRestart]; answer != "" && answer != i.Annotations[v1alpha1.AnnotationRestarted] {
		return verdict.NewReason("annotation " + v1alpha1.AnnotationRestart + "=" + answer)
	}
	if mustLeaveNode(s, i) && !member.IsStopPermitted(i) {
		return verdict.NewReason("node " + i.Status.NodeName + " is cordoned")
	}
	return verdict.Reason{}
}

// mustLeaveNode reports whether the pod of an Instance is to leave its node, and its
// volumes would follow it.
func mustLeaveNode(s Snapshot, i *v1alpha1.Instance) bool {
	bound := slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.NodeBound || v.PersistentVolume == "" })
	return s.Cordoned[i.Status.NodeName] && !bound
}
