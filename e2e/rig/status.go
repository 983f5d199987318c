package rig

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// waitingPod returns the pod with containers that do not run.
func waitingPod(pod *corev1.Pod, reason, message string) *corev1.Pod {
	out := pod.DeepCopy()
	out.Status.Phase = corev1.PodPending
	setPodCondition(out, corev1.PodScheduled, corev1.ConditionTrue, "", "")
	setPodCondition(out, corev1.PodReady, corev1.ConditionFalse, "ContainersNotReady", "")
	out.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		status := corev1.ContainerStatus{Name: c.Name, Image: c.Image}
		status.State.Waiting = &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}
		if reason != "ImagePullBackOff" || strings.Contains(c.Image, badImage) {
			status.State.Waiting = &corev1.ContainerStateWaiting{Reason: reason, Message: message}
		}
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, status)
	}
	return out
}

// facts are what a kubelet knows about a pod whose containers were started.
type facts struct {
	ip    string
	ready bool
	// restarts of the main container.
	restarts int32
	// crashed says that the main container does not run at the moment.
	crashed bool
}

// runningPod returns the pod with containers that were started.
func runningPod(pod *corev1.Pod, f facts) *corev1.Pod {
	out := pod.DeepCopy()
	out.Status.Phase = corev1.PodRunning
	out.Status.PodIP, out.Status.PodIPs = f.ip, []corev1.PodIP{{IP: f.ip}}
	setPodCondition(out, corev1.PodScheduled, corev1.ConditionTrue, "", "")
	status, reason := corev1.ConditionTrue, ""
	if !f.ready {
		status, reason = corev1.ConditionFalse, "ContainersNotReady"
	}
	setPodCondition(out, corev1.PodReady, status, reason, "")
	out.Status.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		out.Status.ContainerStatuses = append(out.Status.ContainerStatuses, containerStatus(pod, &pod.Spec.Containers[i], f))
	}
	return out
}

// containerStatus is the status of one container of a pod that was started.
func containerStatus(pod *corev1.Pod, c *corev1.Container, f facts) corev1.ContainerStatus {
	out := corev1.ContainerStatus{Name: c.Name, Image: c.Image, ImageID: c.Image, ContainerID: "rig://" + string(pod.UID) + "/" + c.Name, Ready: f.ready}
	var before corev1.ContainerStatus
	if at := slices.IndexFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == c.Name }); at >= 0 {
		before = pod.Status.ContainerStatuses[at]
	}
	if c.Name == pod.Labels[v1alpha1.LabelComponent] {
		out.RestartCount = f.restarts
		if f.restarts > 0 {
			out.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1, Reason: "Error"}
			out.ContainerID = fmt.Sprintf("%s/%d", out.ContainerID, f.restarts)
		}
		if f.crashed {
			out.Ready = false
			out.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off restarting failed container"}
			return out
		}
	}
	out.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
	if before.State.Running != nil && before.RestartCount == out.RestartCount {
		out.State.Running = before.State.Running
	}
	return out
}

func setPodCondition(pod *corev1.Pod, kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) {
	condition := corev1.PodCondition{Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.Now()}
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		pod.Status.Conditions = append(pod.Status.Conditions, condition)
		return
	}
	if pod.Status.Conditions[at].Status == status {
		condition.LastTransitionTime = pod.Status.Conditions[at].LastTransitionTime
	}
	pod.Status.Conditions[at] = condition
}

// patchStatus writes a pod's status if it has changed.
func (a *actor) patchStatus(ctx context.Context, before, after *corev1.Pod) error {
	if equality.Semantic.DeepEqual(before.Status, after.Status) {
		return nil
	}
	if err := a.client.Status().Patch(ctx, after, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status of pod %s: %w", before.Name, err)
	}
	return nil
}
