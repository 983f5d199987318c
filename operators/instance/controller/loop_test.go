package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// The kubelet gives no times of a container that it does not find any more, and containerd those up to
// the restart of the node: that is no crash.
func TestAContainerThatWasLostWithItsNodeDoesNotCrash(t *testing.T) {
	for _, reason := range []string{"ContainerStatusUnknown", "Unknown"} {
		i, found := judge(t, step.Done(), func(s *observation.Snapshot) {
			status := corev1.ContainerStatus{Name: "tikv", Ready: true, RestartCount: 2}
			status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(clock().Add(-time.Second))}
			status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 137, Reason: reason}
			s.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
		})
		assert.Equal(t, v1alpha1.ReasonPodReady, meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady).Reason, reason)
		assert.Zero(t, found.lookAgain(), reason)
	}
}

// P1: a pod is ready between two crashes of its container, and others rely on it
// then. That it is not to be relied upon is in the reason.
func TestAPodThatIsReadyBetweenTwoCrashesIsNotReliable(t *testing.T) {
	for name, c := range map[string]struct {
		restarts  int32
		ran, runs time.Duration
		again     time.Duration
	}{
		"it never stopped":                         {0, 0, time.Second, 0},
		"it has stopped once":                      {1, time.Second, time.Second, 0},
		"it has stopped twice":                     {2, time.Second, time.Second, podstate.Proven - time.Second},
		"it has stopped often, and runs by now":    {9, time.Second, podstate.Proven, 0},
		"it has stopped after it had run for long": {2, podstate.Proven, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			i, found := judge(t, step.Done(), func(s *observation.Snapshot) {
				status := corev1.ContainerStatus{Name: "tikv", Ready: true, RestartCount: c.restarts}
				status.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(clock().Add(-c.runs))}
				if c.restarts > 0 {
					ended := clock().Add(-c.runs)
					status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, StartedAt: metav1.NewTime(ended.Add(-c.ran)), FinishedAt: metav1.NewTime(ended)}
				}
				s.Pod.Status.ContainerStatuses = []corev1.ContainerStatus{status}
			})
			pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
			assert.Equal(t, metav1.ConditionTrue, pod.Status)
			assert.True(t, meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady))
			assert.Equal(t, c.again, found.lookAgain())
			assert.Equal(t, c.again > 0, pod.Reason == v1alpha1.ReasonContainerCrashing)
			if c.again > 0 {
				assert.Contains(t, pod.Message, "container tikv keeps crashing")
			}
		})
	}
}
