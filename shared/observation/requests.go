package observation

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
)

// IsRestartWithdrawn reports whether an Instance's pod was to be started anew as it is, a policy
// refuses what would take its place, and nobody asks for it any more. The policy may
// change at any moment, and the stop has to be taken back. Who asked by an annotation
// asks for as long as it is there.
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
		return member.HasMemberFinalizer(i) && i.DeletionTimestamp != nil || i.DeletionTimestamp == nil && (target != "" && i.Spec.Revision != target || RestartRequest(s, i) != "" || member.MayRunOtherConfig(i))
	})
}

// RestartRequest says why an Instance's pod is to be started anew although nothing of it
// changes: a person asked for it, or its node is to be left. Empty if it is not.
// A pod whose volumes would not follow it stays where it is. Who has been permitted to
// stop is not asked again: what is safe was decided then, and the Lease is kept until it
// has been restarted or the permission is taken back.
func RestartRequest(s Snapshot, i *v1alpha1.Instance) string {
	if answer := i.Annotations[v1alpha1.AnnotationRestart]; answer != "" && answer != i.Annotations[v1alpha1.AnnotationRestarted] {
		return "annotation " + v1alpha1.AnnotationRestart + "=" + answer
	}
	if mustLeaveNode(s, i) && !member.IsStopPermitted(i) {
		return "node " + i.Status.NodeName + " is cordoned"
	}
	return ""
}

// mustLeaveNode reports whether an Instance's pod is to leave its node, and its volumes
// would follow it.
func mustLeaveNode(s Snapshot, i *v1alpha1.Instance) bool {
	bound := slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.NodeBound || v.PersistentVolume == "" })
	return s.Cordoned[i.Status.NodeName] && !bound
}
