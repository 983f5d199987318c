package group

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

// lacking is the reason for which an Instance is not what its spec asks for, as it is now;
// empty if nobody says so.
func lacking(i *v1alpha1.Instance) string {
	said := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionUpToDate)
	if said == nil || said.Status == metav1.ConditionTrue {
		return ""
	}
	return said.Reason
}

// forgone reports whether an Instance's pod was to be started anew as it is, a policy
// refuses what would take its place, and nobody asks for it any more. The policy may
// change at any moment, and the stop has to be taken back. Who asked by an annotation
// asks for as long as it is there.
func forgone(s Snapshot, i *v1alpha1.Instance) bool {
	return condemned(i) && lacking(i) == v1alpha1.ReasonPodRejected &&
		i.Annotations[v1alpha1.AnnotationRestart] == "" && !evacuates(s, i)
}

// losing reports whether an Instance is not Ready for nothing but a claim that is being
// deleted: that is there for as long as its pod.
func losing(i *v1alpha1.Instance) bool {
	pod := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionPodReady)
	closed := slices.ContainsFunc(i.Spec.ReadinessGates, func(kind string) bool { return !meta.IsStatusConditionTrue(i.Status.Conditions, kind) })
	return pod != nil && pod.Status == metav1.ConditionTrue && !closed && lacking(i) == v1alpha1.ReasonClaimTerminating
}

// pinned reports whether an Instance's pod works and is never stopped although it is
// permitted: a claim that was deleted since would go with it, and one that comes in its
// place is not taken for it.
func pinned(i *v1alpha1.Instance) bool {
	return i.Spec.ClaimLoss != v1alpha1.RecreateLostClaim && i.Status.PodUID != "" && stale(i) && losing(i)
}
