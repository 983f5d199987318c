package controller

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// proven is for how long a container has to run that has stopped more than once
// before it is believed to go on. A kubelet waits that long at most before it starts
// one again.
const proven = 5 * time.Minute

// looping finds a container of a ready pod that has stopped again and again, and
// for how long yet that may count against it; empty if there is none. One that ran
// for long before it stopped is no such container.
func looping(pod *corev1.Pod, now time.Time) (container string, left time.Duration) {
	if pod == nil {
		return "", 0
	}
	for _, c := range pod.Status.ContainerStatuses {
		last := c.LastTerminationState.Terminated
		if c.RestartCount < 2 || last == nil || c.State.Running == nil || last.FinishedAt.Sub(last.StartedAt.Time) >= proven {
			continue
		}
		if rest := proven - now.Sub(c.State.Running.StartedAt.Time); rest > left {
			container, left = c.Name, rest
		}
	}
	return container, left
}

// readiness returns the reason and message of a pod that is ready, and when to look
// again whether they are still true; zero for never.
func readiness(s *snapshot, now time.Time) (reason, message string, again time.Duration) {
	container, left := looping(s.pod, now)
	if left <= 0 {
		return v1alpha1.ReasonPodReady, podSummary(s), 0
	}
	return v1alpha1.ReasonContainerCrashing, fmt.Sprintf("%s; its container %s has stopped again and again and is not believed to go on before it has run for %s: kubectl logs %s -c %s -n %s --previous",
		podSummary(s), container, proven, s.pod.Name, container, s.pod.Namespace), left
}

// lookAgain is when an Instance has to be looked at although nothing happens: its
// pod is ready, and not yet believed to stay so.
func (f finding) lookAgain() time.Duration {
	if !meta.IsStatusConditionTrue(f.after.Conditions, v1alpha1.ConditionPodReady) {
		return 0
	}
	return f.again
}
