package podstate

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// waitForOperator waits for the operator of a group to say something of a member.
func waitForOperator(s *observation.Snapshot, group, condition string) step.Outcome {
	o := planning.Wait("instance", v1alpha1.ReasonGatesPending, "the operator of %s has not set condition %s yet", group, condition)
	since := s.Now
	if s.Pod != nil {
		if ready := Condition(s.Pod, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionTrue {
			since = ready.LastTransitionTime.Time
		}
	}
	if left := gate.ProcessingTimeout - s.Now.Sub(since); left > 0 {
		o.After = left
		return o
	}
	o.Message += ": is it running?"
	return o
}

// CheckGates says which readiness gate is not open yet. What the group's operator
// last said stands, also if the spec has changed since: it asks the database,
// not the spec.
func CheckGates(s *observation.Snapshot) step.Outcome {
	instance := s.Instance
	group := instance.Spec.Group.Kind + " " + instance.Spec.Group.Name
	for _, gate := range instance.Spec.ReadinessGates {
		c := meta.FindStatusCondition(instance.Status.Conditions, gate)
		switch {
		case c == nil:
			return waitForOperator(s, group, gate)
		case c.Status != metav1.ConditionTrue:
			return planning.Wait("instance", v1alpha1.ReasonGatesPending, "%s is %s for %s: %s", gate, c.Status, group, c.Message)
		}
	}
	return step.Done()
}
