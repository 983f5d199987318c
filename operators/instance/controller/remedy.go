package controller

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// nodeGrace is for how long a node may fail to answer before it may be gone for good:
// after so long Kubernetes deletes its pods (defaultUnreachableTolerationSeconds).
const nodeGrace = 5 * time.Minute

// nodeState is what is known of a node that a message is about.
type nodeState struct {
	// known says that it was looked at; absent that it does not exist.
	known, absent bool
	// cordoned says that nothing new is to start on it.
	cordoned bool
	// silent says that it does not answer, since when.
	silent bool
	since  time.Time
}

// stateOf reads a node.
func stateOf(node *corev1.Node) nodeState {
	out := nodeState{known: true, cordoned: node.Spec.Unschedulable, silent: true}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.silent, out.since = c.Status != corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return out
}

// askedNode returns the node that a message will be about, empty if there is none: that
// of a pod that ought to have stopped by now, or the one that a pod which finds no place
// has its volume on.
func askedNode(s *snapshot) string {
	switch pod := s.pod; {
	case pod == nil:
		return ""
	case overdue(pod, s.now):
		return pod.Spec.NodeName
	case pod.DeletionTimestamp == nil && findsNoNode(pod):
		if at := tied(s); at >= 0 && len(s.volumes[at].place.nodes) == 1 {
			return s.volumes[at].place.nodes[0]
		}
	}
	return ""
}

// from is the object that a person edits to change the Instance.
func from(s *snapshot) origin.Origin { return origin.OfInstance(s.instance) }

// overdue reports whether a pod is there although its grace period has passed.
func overdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" && !now.Before(pod.DeletionTimestamp.Time)
}

// terminating waits for a pod to stop. Only of a node that does not answer, and of a pod
// whose grace period has passed, is it worth a thought whether the node is gone: the pod
// of a node that is deleted by mistake is stopped at once.
func terminating(s *snapshot, pod *corev1.Pod) step.Outcome {
	if pod.Spec.NodeName == "" {
		return wait("pod", v1alpha1.ReasonPodTerminating, "pod %s is being stopped", pod.Name)
	}
	o := wait("pod", v1alpha1.ReasonPodTerminating, "pod %s is being stopped on node %s", pod.Name, pod.Spec.NodeName)
	if !overdue(pod, s.now) {
		if pod.DeletionTimestamp != nil {
			o.After = min(o.After-time.Second, pod.DeletionTimestamp.Sub(s.now)) + time.Second
		}
		return o
	}
	switch {
	case s.node.absent:
		o.Message += ", which is gone: Kubernetes removes the pod soon"
	case s.node.silent:
		o.Message += fmt.Sprintf(", which does not answer, past its grace period: bring the node back, or if it is gone for good: kubectl delete node %s", pod.Spec.NodeName)
	case !s.node.known:
		o.Message += fmt.Sprintf(", past its grace period: does the node answer? kubectl get node %s", pod.Spec.NodeName)
	default:
		o.Message += fmt.Sprintf(", past its grace period: kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
	}
	o.After = recheck // nodes are not watched
	return o
}

// starting waits for a pod to run. What it mounts of a person's is named when that takes
// long, for the kubelet does not say in a pod's status which of it is missing.
func starting(s *snapshot, pod *corev1.Pod) step.Outcome {
	o := wait("pod", v1alpha1.ReasonPodPending, "pod %s is being started on node %s", pod.Name, pod.Spec.NodeName)
	needs := mounted(s, pod)
	if len(needs) == 0 {
		return o
	}
	if left := gate.Patience - s.now.Sub(pod.CreationTimestamp.Time); left > 0 && left <= gate.Patience {
		o.After = left
		return o
	}
	o.Message += fmt.Sprintf(", which needs %s: if one is missing, create it: kubectl -n %s describe pod %s", strings.Join(needs, ", "), pod.Namespace, pod.Name)
	return o
}

// mounted names what must exist for a pod's volumes to be mounted and is not the
// operators' own.
func mounted(s *snapshot, pod *corev1.Pod) []string {
	var out []string
	required := func(optional *bool) bool { return optional == nil || !*optional }
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil && required(v.Secret.Optional):
			out = append(out, "Secret "+v.Secret.SecretName)
		case v.ConfigMap != nil && required(v.ConfigMap.Optional) && !strings.HasPrefix(v.ConfigMap.Name, s.instance.Spec.Group.Name+"-config-"):
			out = append(out, "ConfigMap "+v.ConfigMap.Name)
		}
	}
	return out
}

// tied finds a volume that can be used on some nodes only; -1 if there is none.
func tied(s *snapshot) int {
	return slices.IndexFunc(s.volumes, func(v volume) bool { return len(v.place.nodes) > 0 })
}

// unschedulable says what a person can do for a pod that the scheduler finds no
// node for. The scheduler's own words do not name the taints that it means, nor the
// node of a volume.
func unschedulable(s *snapshot, why string) step.Outcome {
	pod := s.pod
	remedy := fmt.Sprintf("add nodes, or change resources or placement: kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
	at, after := tied(s), deadline
	switch {
	case at >= 0 && len(s.volumes[at].place.nodes) == 1:
		remedy, after = fmt.Sprintf("its claim %s has its volume on node %s: %s", s.volumes[at].name, s.volumes[at].place.nodes[0], homeless(s, s.volumes[at].place.nodes[0])), recheck
	case at >= 0:
		remedy = fmt.Sprintf("its claim %s can be used on nodes %s only: make room there; if they are gone for good, have the member replaced: kubectl -n %s delete instance %s",
			s.volumes[at].name, strings.Join(s.volumes[at].place.nodes, ", "), pod.Namespace, pod.Name)
	case strings.Contains(why, "untolerated taint"):
		remedy = "add nodes, change resources or placement, or mend what a node is tainted for, such as a full disk: kubectl get nodes -o custom-columns='NODE:.metadata.name,TAINTS:.spec.taints[*].key'"
	}
	o := wait("pod", v1alpha1.ReasonPodUnschedulable, "pod %s fits on no node: %s: %s", pod.Name, why, remedy)
	o.After = after
	return o
}

// homeless says what to do about the one node that a pod's volume is on.
func homeless(s *snapshot, node string) string {
	replace := fmt.Sprintf("have the member replaced: kubectl -n %s delete instance %s", s.pod.Namespace, s.pod.Name)
	switch state := s.node; {
	case state.absent:
		return "there is none of that name: bring it back, or if it is gone for good, " + replace
	case state.silent && s.now.Sub(state.since) >= nodeGrace:
		return fmt.Sprintf("it does not answer: bring it back, or if it is gone for good: kubectl delete node %s; then %s", node, replace)
	case state.silent:
		return "it does not answer: kubectl describe node " + node
	case state.cordoned:
		return "it takes no pods: kubectl uncordon " + node
	}
	return "make room there, or let it take pods: kubectl describe node " + node
}

// resume tells how the pod of a suspended Instance comes back.
func resume(s *snapshot) string {
	if s.instance.Spec.Retire {
		return "its member has left, and the Instance is about to go"
	}
	return from(s).Unset("suspended")
}

// mendDelay is for how long what only a person can mend may look as if it went by
// itself: an image that a registry has just not delivered, a crash that is the only one.
const mendDelay = 30 * time.Second

// mendable returns how long it takes until a wait counts as one for a person; zero if
// it does, negative if it never will.
func mendable(set *conditions.Set, o step.Outcome, now time.Time) time.Duration {
	part := v1alpha1.ConditionPodReady
	switch o.Reason {
	case v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerCrashing, v1alpha1.ReasonContainerConfig, v1alpha1.ReasonMissingReference, v1alpha1.ReasonPodRejected:
	case v1alpha1.ReasonStorageClassAbsent, v1alpha1.ReasonClaimRejected, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded:
		part = v1alpha1.ConditionVolumesReady
	default:
		return -1
	}
	c := set.Get(part)
	if c.Status != metav1.ConditionFalse || c.Reason != o.Reason || o.Kind != step.KindWait && o.Kind != step.KindFail {
		return -1
	}
	return max(mendDelay-now.Sub(c.LastTransitionTime.Time), 0)
}

// mend makes a wait that has lasted a stall, which is what a pipeline goes by.
func mend(set *conditions.Set, o step.Outcome, now time.Time) step.Outcome {
	if mendable(set, o, now) == 0 {
		o.Kind = step.KindStall
	}
	return o
}

// unanswered waits for the operator of a group to say something of a member.
func unanswered(s *snapshot, group, condition string) step.Outcome {
	o := wait("instance", v1alpha1.ReasonGatesPending, "the operator of %s has not set condition %s yet", group, condition)
	since := s.now
	if s.pod != nil {
		if ready := podCondition(s.pod, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionTrue {
			since = ready.LastTransitionTime.Time
		}
	}
	if left := gate.Patience - s.now.Sub(since); left > 0 {
		o.After = left
		return o
	}
	o.Message += ": is it running?"
	return o
}
