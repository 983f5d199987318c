package member

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// PodState is how far a member can be relied upon, by what its kubelet reports of its pod.
// PD is late: it calls a store Up for 20 s after its last heartbeat, and a member of its
// own healthy for as long as that answers; both also right after the start of one that
// keeps crashing.
type PodState int

const (
	// PodReady runs and is ready.
	PodReady PodState = iota
	// PodFlapping is not ready, or has been for a short time only after several crashes.
	PodFlapping
	// PodDown does not run, or is being stopped.
	PodDown
)

// PodStateOf returns the state of a member's pod.
func PodStateOf(i *v1alpha1.Instance) PodState {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	switch {
	case IsStopping(i), IsBroken(i):
		return PodDown
	case pod == nil || pod.Status != metav1.ConditionTrue || pod.Reason == v1alpha1.ReasonContainerCrashing:
		return PodFlapping
	}
	return PodReady
}

// HasStopped reports whether a suspended Instance has no pod, and will have none: its operator
// has seen that it is suspended, and could read what there is.
func HasStopped(i *v1alpha1.Instance) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return i.Spec.Suspended && i.Status.ObservedGeneration == i.Generation && i.Status.PodUID == "" &&
		(pod == nil || pod.Status != metav1.ConditionUnknown)
}

// IsStoppedOnPurpose reports whether an Instance was suspended when its operator last saw it:
// since it was resumed it has had no time to be ready.
func IsStoppedOnPurpose(i *v1alpha1.Instance) bool {
	ready := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonSuspended
}

// IsAtRest reports whether an Instance has stopped and no other owner's pod has its name: that of
// an Instance whose finalizers were taken away may run on, as the same member of the database.
func IsAtRest(i *v1alpha1.Instance) bool { return HasStopped(i) && !IsUsurped(i) }

// IsUsurped reports whether the pod of an Instance's name belongs to another owner.
func IsUsurped(i *v1alpha1.Instance) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return pod != nil && pod.Reason == v1alpha1.ReasonPodOfAnotherOwner
}

// IsStopping reports whether an Instance has no pod that keeps running.
func IsStopping(i *v1alpha1.Instance) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonPodTerminating, v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodPending, v1alpha1.ReasonPodUnschedulable, v1alpha1.ReasonPodFailed,
	}, OutcomeOf(i).Reason)
}

// longestGrace is the longest grace of a component's pods whose spec names none: that of TiKV.
const longestGrace = 120

// CanStop refuses for a pod that nothing stops now: its node does not answer, or it is being stopped
// already and its grace is long over. The Lease would be held until the node is back.
func CanStop(i *v1alpha1.Instance, g v1alpha1.Group, now time.Time) verdict.Verdict {
	switch {
	case IsUnreachable(i):
		return verdict.Refusef("its node does not answer, and does not stop its pod: kubectl get node %s", i.Status.NodeName)
	case isStopOverdue(i, g, now):
		return RefuseStopping(i)
	}
	return verdict.Allow()
}

// RefuseStopping refuses because the pod of an Instance is being stopped already.
func RefuseStopping(i *v1alpha1.Instance) verdict.Verdict {
	return verdict.Refusef("its pod is being stopped already: kubectl -n %s describe instance %s", i.Namespace, i.Name)
}

// isStopOverdue reports whether the pod of an Instance has been stopping for a minute longer than its
// grace: where the kubelet has ended, containers run on until the node is back.
func isStopOverdue(i *v1alpha1.Instance, g v1alpha1.Group, now time.Time) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	grace := time.Duration(ptr.Deref(g.GetComponentSpec().TerminationGracePeriodSeconds, longestGrace)) * time.Second
	return pod != nil && pod.Reason == v1alpha1.ReasonPodTerminating && now.Sub(pod.LastTransitionTime.Time) > grace+time.Minute
}

// IsBroken reports whether the kubelet says that the member's process does not
// run.
func IsBroken(i *v1alpha1.Instance) bool {
	c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return c != nil && c.Status != metav1.ConditionTrue && slices.Contains([]string{
		v1alpha1.ReasonContainerCrashing, v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerConfigError, v1alpha1.ReasonMissingReference, v1alpha1.ReasonPodFailed,
	}, c.Reason)
}

// IsUnreachable reports whether the pod of an Instance is on a node that does not answer.
// The member adds nothing now, and nothing of it can be changed until the node is back.
func IsUnreachable(i *v1alpha1.Instance) bool {
	c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonNodeUnreachable
}
