package member

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
)

// A member that was permitted to stop may not be stopped all the same: the instance
// operator lets no pod go that would not come back. It says so of the Instance as it is
// now, and what it says has seen every stop that an earlier version of the Instance led
// to, so that nobody waits for a restart that does not come.

// WhyNotUpToDate is the reason for which an Instance is not what its spec asks for, as it is now;
// empty if nobody says so.
func WhyNotUpToDate(i *v1alpha1.Instance) string {
	said := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionUpToDate)
	if said == nil || said.Status == metav1.ConditionTrue {
		return ""
	}
	return said.Reason
}

// IsClaimTerminating reports whether an Instance is not Ready for nothing but a claim that is being
// deleted: that is there for as long as its pod.
func IsClaimTerminating(i *v1alpha1.Instance) bool {
	pod := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady)
	closed := slices.ContainsFunc(i.Spec.ReadinessGates, func(kind string) bool { return !meta.IsStatusConditionTrue(i.Status.Conditions, kind) })
	return pod != nil && pod.Status == metav1.ConditionTrue && !closed && WhyNotUpToDate(i) == v1alpha1.ReasonClaimTerminating
}

// IsStopBlocked reports whether an Instance's pod works and is never stopped although it is
// permitted: a claim that was deleted since would go with it, and one that comes in its
// place is not taken for it.
func IsStopBlocked(i *v1alpha1.Instance) bool {
	return i.Spec.ClaimLoss != v1alpha1.RecreateLostClaim && i.Status.PodUID != "" && IsStopPending(i) && IsClaimTerminating(i)
}

// IsSettled reports whether an Instance is Ready with the pod that its spec asks
// for.
func IsSettled(i *v1alpha1.Instance) bool {
	return IsReady(i) && i.Status.Revision == i.Spec.Revision && i.Status.PodUID != "" && i.Status.PodUID != i.Spec.StopPod
}

// HasRestarted reports whether an Instance runs what its spec asks for, and its pod is
// none that is to stop, or none that ever does.
func HasRestarted(i *v1alpha1.Instance) bool {
	return (IsReady(i) || IsClaimTerminating(i)) && !IsStopPending(i) || IsStopBlocked(i)
}

// IsStopPending reports whether an Instance's pod is still to stop.
func IsStopPending(i *v1alpha1.Instance) bool {
	return i.Status.Revision != i.Spec.Revision || IsStopPermitted(i)
}

// IsStopPermitted reports whether an Instance's pod is permitted to stop as it is.
func IsStopPermitted(i *v1alpha1.Instance) bool {
	return i.Spec.StopPod != "" && i.Spec.StopPod == i.Status.PodUID
}
