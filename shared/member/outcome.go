package member

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// WaitDeadline is how long an operator waits for a watch before it looks again by itself.
const WaitDeadline = time.Minute

// AwaitRecreation waits until an Instance that is being deleted has gone and is recreated.
func AwaitRecreation(i *v1alpha1.Instance) step.Outcome {
	return step.Wait("Instance", WaitDeadline, v1alpha1.ReasonDeleting, "Instance "+i.Name+" is being deleted and will be recreated when it is gone: kubectl -n "+i.Namespace+" describe instance "+i.Name)
}

// OutcomeOf tells by the conditions of an Instance whether it is what its spec asks for,
// and if not, why.
func OutcomeOf(i *v1alpha1.Instance) step.Outcome {
	if stalled := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionStalled); stalled != nil {
		return step.Wait("Instance", WaitDeadline, stalled.Reason, "Instance "+i.Name+": "+stalled.Message)
	}
	ready := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady)
	if ready == nil {
		return step.Wait("Instance", WaitDeadline, v1alpha1.ReasonWaitingForInstances, "Instance "+i.Name+" has no current condition Ready: the instance operator has not processed it yet")
	}
	serves := ready.Status == metav1.ConditionTrue
	if serves || ready.Reason == v1alpha1.ReasonSuspended {
		upToDate := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionUpToDate)
		switch {
		case upToDate != nil && upToDate.Status != metav1.ConditionTrue:
			ready = upToDate // of one that is to stop, what keeps it from that
		case serves:
			return step.Done()
		}
	}
	return step.Wait("Instance", WaitDeadline, ready.Reason, "Instance "+i.Name+": "+ready.Message)
}

// SpecificityOfStarting is the specificity of what every member reports while it starts.
const SpecificityOfStarting = 2

// Specificity ranks reasons by how much they tell a user.
func Specificity(o step.Outcome) int {
	switch {
	case o.Kind == step.KindDone:
		return 0
	case o.Reason == v1alpha1.ReasonWaitingForInstances:
		return 1
	case o.Reason == v1alpha1.ReasonPodMissing, o.Reason == v1alpha1.ReasonPodPending, o.Reason == v1alpha1.ReasonPodNotReady,
		o.Reason == v1alpha1.ReasonGatesPending, o.Reason == v1alpha1.ReasonProgressing, o.Reason == v1alpha1.ReasonClaimPending:
		return SpecificityOfStarting
	default:
		return SpecificityOfStarting + 1
	}
}

// WasReady reports whether an Instance was Ready when its operator last looked, also at an
// older generation. A change of its spec alone stops no pod; what follows from the change
// is reported when it happens.
func WasReady(i *v1alpha1.Instance) bool {
	return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady)
}

// IsReady reports whether an Instance is Ready at its current generation.
func IsReady(i *v1alpha1.Instance) bool {
	c := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue
}
