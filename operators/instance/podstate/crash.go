package podstate

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
)

// findCrashingContainer finds a container of a ready pod that has stopped again and again, and
// for how long yet that may count against it; empty if there is none. One that ran
// for long before it stopped, or was lost with its node, is no such container.
func findCrashingContainer(pod *corev1.Pod, now time.Time) (container string, left time.Duration) {
	if pod == nil {
		return "", 0
	}
	for _, c := range pod.Status.ContainerStatuses {
		last := c.LastTerminationState.Terminated
		if c.RestartCount < 2 || last == nil || isLost(last) || c.State.Running == nil || last.FinishedAt.Sub(last.StartedAt.Time) >= Proven {
			continue
		}
		if rest := Proven - now.Sub(c.State.Running.StartedAt.Time); rest > left {
			container, left = c.Name, rest
		}
	}
	return container, left
}

// isLost reports whether it is not known how a container ended, nor that it failed: containerd says so after its
// node was restarted, the kubelet where it finds no container any more.
func isLost(ended *corev1.ContainerStateTerminated) bool {
	return ended.Reason == "Unknown" || ended.Reason == "ContainerStatusUnknown"
}

// Readiness returns the reason and message of a pod that is ready, and when to look
// again whether they are still true; zero for never.
func Readiness(s *observation.Snapshot, now time.Time) (reason, message string, again time.Duration) {
	container, left := findCrashingContainer(s.Pod, now)
	if left <= 0 {
		return v1alpha1.ReasonPodReady, Summary(s), 0
	}
	return v1alpha1.ReasonContainerCrashing, fmt.Sprintf("%s; its container %s keeps crashing and counts as running only after it has run for %s: kubectl logs %s -c %s -n %s --previous",
		Summary(s), container, Proven, s.Pod.Name, container, s.Pod.Namespace), left
}
