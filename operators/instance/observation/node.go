package observation

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// NodeState is what is known of a node that a message is about.
type NodeState struct {
	// Known says that it was looked at; Absent that it does not exist.
	Known, Absent bool
	// Cordoned says that nothing new is to start on it.
	Cordoned bool
	// Unreachable says that it does not answer, since when.
	Unreachable bool
	Since       time.Time
}

// StateOf reads a node.
func StateOf(node *corev1.Node) NodeState {
	out := NodeState{Known: true, Cordoned: node.Spec.Unschedulable, Unreachable: true}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.Unreachable, out.Since = c.Status != corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return out
}
