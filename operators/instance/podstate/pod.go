package podstate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Summary says of a pod that all is well, or that there is none.
func Summary(s *observation.Snapshot) string {
	if s.Pod == nil {
		return fmt.Sprintf("pod %s does not exist", s.Instance.Name)
	}
	return fmt.Sprintf("pod %s is ready on node %s", s.Pod.Name, s.Pod.Spec.NodeName)
}

// Outcome says what is wrong with the pod.
func Outcome(s *observation.Snapshot, p *planning.Plan, acted step.Outcome) step.Outcome {
	pod, name := s.Pod, s.Instance.Name
	switch {
	case pod == nil && s.Instance.Spec.Suspended:
		return planning.Wait("instance", v1alpha1.ReasonSuspended, "pod %s is stopped: the Instance is suspended", name)
	case pod == nil && s.TemplateErr != nil:
		return planning.Wait("instance", v1alpha1.ReasonInvalidSpec, "pod %s is not created: spec.podTemplate is invalid", name)
	case pod == nil && acted.Reason == v1alpha1.ReasonPodRejected:
		return acted
	case pod == nil && s.Instance.Spec.Paused:
		return planning.Wait("instance", v1alpha1.ReasonPodMissing, "pod %s is not created: the Instance is paused", name)
	case pod == nil && p.Outcome.Kind != step.KindDone:
		return planning.Wait("pod", v1alpha1.ReasonPodMissing, "pod %s does not exist: %s", name, p.Outcome.Message)
	case pod == nil:
		return planning.Wait("pod", v1alpha1.ReasonPodMissing, "pod %s does not exist", name)
	case OwnerOf(s.Instance, pod) == ForeignPod:
		return planning.Wait("pod", v1alpha1.ReasonPodOfAnotherOwner, "pod %s belongs to another owner", name)
	case pod.DeletionTimestamp != nil:
		return WaitForStop(s, pod)
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return WaitForRecreation(s)
	case p.DeletePod != nil && acted.Kind == step.KindDone: // just now, which the pod that was seen does not show
		return WaitForStop(s, pod)
	case Is(pod, corev1.PodReady):
		return step.Done()
	}
	if scheduled := Condition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		if IsUnschedulable(pod) {
			return waitForScheduling(s, normalizeMessage(scheduled.Message))
		}
		return planning.Wait("pod", v1alpha1.ReasonPodPending, "pod %s is kept from being scheduled (%s): kubectl describe pod %s -n %s", name, scheduled.Reason, name, pod.Namespace)
	}
	if pod.Spec.NodeName == "" {
		return planning.Wait("pod", v1alpha1.ReasonPodPending, "pod %s waits for the scheduler", name)
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if o := containerOutcome(s, pod, c); o.Kind != step.KindDone {
			return o
		}
	}
	return notReady(s, pod)
}

// containerOutcome says what keeps a container from running; Done if it runs or
// is about to. The messages hold neither counters nor back-off times, and stay
// the same while a container goes round in a crash loop.
func containerOutcome(s *observation.Snapshot, pod *corev1.Pod, c corev1.ContainerStatus) step.Outcome {
	describe := fmt.Sprintf("kubectl describe pod %s -n %s", pod.Name, pod.Namespace)
	if waiting := c.State.Waiting; waiting != nil {
		if workload.IsPullFailure(waiting.Reason) {
			return planning.Wait("pod", v1alpha1.ReasonImagePullFailed, "image %s of container %s in pod %s cannot be pulled: what the registry says: %s; a wrong name or version, or imagePullSecrets: correct %s", c.Image, c.Name, pod.Name, describe, imageField(s, c.Name))
		}
		switch waiting.Reason {
		case "InvalidImageName":
			return planning.Wait("pod", v1alpha1.ReasonImagePullFailed, "image %s of container %s in pod %s is not a valid image name: correct it, or the version: %s", c.Image, c.Name, pod.Name, imageField(s, c.Name))
		case "ErrImageNeverPull":
			return planning.Wait("pod", v1alpha1.ReasonImagePullFailed, "image %s of container %s in pod %s is not on node %s and imagePullPolicy is Never: load it there", c.Image, c.Name, pod.Name, pod.Spec.NodeName)
		case "CreateContainerConfigError":
			if strings.Contains(waiting.Message, "not found") || strings.Contains(waiting.Message, "couldn't find") {
				return planning.Wait("pod", v1alpha1.ReasonMissingReference, "container %s in pod %s cannot start: %s: create it; the kubelet tries again by itself", c.Name, pod.Name, waiting.Message)
			}
			return planning.Wait("pod", v1alpha1.ReasonContainerConfigError, "container %s in pod %s cannot start: %s: %s", c.Name, pod.Name, waiting.Message, describe)
		case "CreateContainerError", "RunContainerError", "StartError", "PreCreateHookError", "PreStartHookError", "PostStartHookError":
			return planning.Wait("pod", v1alpha1.ReasonContainerConfigError, "container %s in pod %s cannot start (%s): %s", c.Name, pod.Name, waiting.Reason, describe)
		}
	}
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	initDone := c.State.Terminated != nil && c.State.Terminated.ExitCode == 0 && isInit(pod, c.Name)
	switch {
	case c.Ready || initDone:
		return step.Done()
	case ended != nil && isLost(ended):
		return planning.Wait("pod", v1alpha1.ReasonContainerCrashing, "container %s in pod %s was lost when node %s or its container runtime restarted (exit code %d, %s), and is not ready since: kubectl describe node %s",
			c.Name, pod.Name, pod.Spec.NodeName, ended.ExitCode, ended.Reason, pod.Spec.NodeName)
	case ended != nil:
		return planning.Wait("pod", v1alpha1.ReasonContainerCrashing, "container %s in pod %s stopped with exit code %d (%s) and is not ready since: kubectl logs %s -c %s -n %s --previous",
			c.Name, pod.Name, ended.ExitCode, cmp.Or(ended.Reason, "Error"), pod.Name, c.Name, pod.Namespace)
	case c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff":
		return planning.Wait("pod", v1alpha1.ReasonContainerCrashing, "container %s in pod %s stops again and again: kubectl logs %s -c %s -n %s --previous", c.Name, pod.Name, pod.Name, c.Name, pod.Namespace)
	}
	return step.Done()
}

// imageField returns the field that the image of a container is set in, and the command
// that edits it: of a sidecar that has none, that of overlays. What an admission webhook has put into
// the pod is in no field.
func imageField(s *observation.Snapshot, container string) string {
	if s.Template != nil && !slices.ContainsFunc(slices.Concat(s.Template.Spec.InitContainers, s.Template.Spec.Containers), func(c corev1.Container) bool { return c.Name == container }) {
		return "it in what has put the container into the pod, such as a service mesh"
	}
	switch container {
	case s.Pod.Labels[v1alpha1.LabelComponent]:
		return observation.OriginOf(s).DescribeField("image")
	case "slowlog":
		return observation.OriginOf(s).DescribeField("slowLog.image")
	case "serverlog", "errorlog":
		return observation.OriginOf(s).DescribeField("logTailer.image")
	}
	return observation.OriginOf(s).DescribeField("overlay")
}

// isInit reports whether a container is to end before the others start. A sidecar among
// the init containers runs beside them: the kubelet counts it for the pod's readiness.
func isInit(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container && ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways
	})
}

// notReady tells a pod that starts from one that runs and is not ready.
func notReady(s *observation.Snapshot, pod *corev1.Pod) step.Outcome {
	var waiting []string
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.Ready || isInit(pod, c.Name) {
			continue
		}
		// A container that has ended and restarts keeps a pod from being ready as well.
		if c.State.Running != nil || pod.Status.Phase == corev1.PodRunning {
			waiting = append(waiting, c.Name)
		}
	}
	switch {
	case len(waiting) > 0:
		slices.Sort(waiting)
		return planning.Wait("pod", v1alpha1.ReasonPodNotReady, "container %s in pod %s on node %s is not ready yet: kubectl logs %s -c %s -n %s",
			strings.Join(waiting, ", "), pod.Name, pod.Spec.NodeName, pod.Name, waiting[0], pod.Namespace)
	case waitsForGate(pod):
		return planning.Wait("pod", v1alpha1.ReasonPodNotReady, "pod %s on node %s waits for its own readiness gate: kubectl describe pod %s -n %s", pod.Name, pod.Spec.NodeName, pod.Name, pod.Namespace)
	case pod.Status.Phase == corev1.PodRunning:
		// Its containers are ready: only the node controller calls it not Ready.
		return planning.Wait("pod", v1alpha1.ReasonNodeUnreachable, "pod %s on node %s is not ready: does the node answer? kubectl get node %s",
			pod.Name, pod.Spec.NodeName, pod.Spec.NodeName)
	}
	return waitForStart(s, pod)
}

// waitsForGate reports whether a readiness gate of a pod keeps it from being Ready.
func waitsForGate(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return !Is(pod, g.ConditionType) })
}

// normalizeMessage takes out of the scheduler's message what changes by itself: how many
// nodes there are, and what preemption would do.
func normalizeMessage(message string) string {
	if _, rest, ok := strings.Cut(message, "available: "); ok {
		message = rest
	}
	// What follows the first sentence is about preemption.
	message, _, _ = strings.Cut(message, ". ")
	var reasons []string
	for reason := range strings.SplitSeq(strings.TrimRight(message, ". "), ", ") {
		reasons = append(reasons, strings.TrimLeft(reason, "0123456789 "))
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), ", ")
}

// Condition returns a condition of a pod, nil if it has none of the kind.
func Condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &pod.Status.Conditions[at]
}

// Is reports whether a condition of a pod is True.
func Is(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := Condition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Proven is for how long a container has to run that has stopped more than once
// before it is believed to go on. A kubelet waits that long at most before it starts
// one again.
const Proven = 5 * time.Minute
