package member

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
)

// The instance operator does not stop a pod that would not come back, even if that is
// permitted. It reports so for the current generation of the Instance, after every stop
// that an earlier generation led to, so that no wait is for a restart that never comes.

// WhyNotUpToDate is the reason for which an Instance is not what its spec asks for now;
// empty if none is reported.
func WhyNotUpToDate(i *v1alpha1.Instance) string {
	said := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionUpToDate)
	if said == nil || said.Status == metav1.ConditionTrue {
		return ""
	}
	return said.Reason
}

// IsClaimTerminating reports whether the only reason for an Instance not to be Ready is a
// claim that is being deleted. The claim exists for as long as the pod.
func IsClaimTerminating(i *v1alpha1.Instance) bool {
	pod := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady)
	closed := slices.ContainsFunc(i.Spec.ReadinessGates, func(kind string) bool { return !meta.IsStatusConditionTrue(i.Status.Conditions, kind) })
	return pod != nil && pod.Status == metav1.ConditionTrue && !closed && WhyNotUpToDate(i) == v1alpha1.ReasonClaimTerminating
}

// LosesClaim reports whether the pod of an Instance works while a claim of it is being deleted,
// also if the Instance is: it is never Ready again, and its member works for as long as its pod.
func LosesClaim(i *v1alpha1.Instance) bool {
	volumes := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionVolumesReady)
	return volumes != nil && volumes.Reason == v1alpha1.ReasonClaimTerminating && PodStateOf(i) == PodReady
}

// IsStopBlocked reports whether the pod of an Instance works and is never stopped although
// that is permitted: a claim that was deleted since would go with it, and a claim that is
// created in its place does not count as the same.
func IsStopBlocked(i *v1alpha1.Instance) bool {
	return i.Spec.ClaimLoss != v1alpha1.RecreateLostClaim && i.Status.PodUID != "" && IsStopPending(i) && IsClaimTerminating(i)
}

// IsSettled reports whether an Instance is Ready with the pod that its spec asks for.
func IsSettled(i *v1alpha1.Instance) bool {
	return IsReady(i) && i.Status.Revision == i.Spec.Revision && i.Status.PodUID != "" && i.Status.PodUID != i.Spec.StopPod
}

// HasRestarted reports whether an Instance runs what its spec asks for and its pod is not
// to stop, or whether that pod never stops.
func HasRestarted(i *v1alpha1.Instance) bool {
	return (IsReady(i) || IsClaimTerminating(i)) && !IsStopPending(i) || IsStopBlocked(i)
}

// IsStopPending reports whether the pod of an Instance is still to stop.
func IsStopPending(i *v1alpha1.Instance) bool {
	return i.Status.Revision != i.Spec.Revision || IsStopPermitted(i)
}

// IsStopPermitted reports whether the pod of an Instance may be stopped as it is.
func IsStopPermitted(i *v1alpha1.Instance) bool {
	return i.Spec.StopPod != "" && i.Spec.StopPod == i.Status.PodUID
}
