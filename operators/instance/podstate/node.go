package podstate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// WaitForRecreation says that the pod has ended and comes back, and what a user can do if it
// does so again.
func WaitForRecreation(s *observation.Snapshot) step.Outcome {
	pod := s.Pod
	end := fmt.Sprintf("pod %s has ended (%s) and is recreated", pod.Name, DescribeEnd(pod))
	switch {
	case pod.Status.Reason != evicted:
		return planning.Wait("pod", v1alpha1.ReasonPodFailed, "%s", end)
	case strings.Contains(pod.Status.Message, "exceed") && strings.Contains(pod.Status.Message, "limit"):
		// No other node would have kept it either.
		return planning.Wait("pod", v1alpha1.ReasonPodFailed, "%s: it wrote more to the disk of its node than it may: raise the limit, such as ephemeral-storage in %s, or what a LimitRange gives it: kubectl -n %s get limitrange",
			end, observation.OriginOf(s).DescribeField("resources"), pod.Namespace)
	}
	return planning.Wait("pod", v1alpha1.ReasonPodFailed, "%s: node %s is short of something, such as room on its disk: make room there: kubectl describe node %s",
		end, pod.Spec.NodeName, pod.Spec.NodeName)
}

// DescribeEnd says how a pod ended.
func DescribeEnd(pod *corev1.Pod) string {
	switch {
	case pod.Status.Reason != "" && pod.Status.Message != "":
		return pod.Status.Reason + ": " + strings.TrimRight(pod.Status.Message, ". ")
	case pod.Status.Reason != "":
		return pod.Status.Reason
	}
	return string(pod.Status.Phase)
}

// nodeGrace is for how long a node may fail to answer before it may be gone for good:
// after so long Kubernetes deletes its pods (defaultUnreachableTolerationSeconds).
const nodeGrace = 5 * time.Minute

// AskedNode returns the node that a message will be about, empty if there is none: that
// of a pod that ought to have stopped by now, or the one that a pod which finds no place
// has its volume on.
func AskedNode(s *observation.Snapshot) string {
	switch pod := s.Pod; {
	case pod == nil:
		return ""
	case isOverdue(pod, s.Now):
		return pod.Spec.NodeName
	case pod.DeletionTimestamp == nil && IsUnschedulable(pod):
		if at := observation.IndexPinnedVolume(s); at >= 0 && len(s.Volumes[at].Place.Nodes) == 1 {
			return s.Volumes[at].Place.Nodes[0]
		}
	}
	return ""
}

// isOverdue reports whether a pod is there although its grace period has passed.
func isOverdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" && !now.Before(pod.DeletionTimestamp.Time)
}

// WaitForStop waits for a pod to stop. Only of a node that does not answer, and of a pod
// whose grace period has passed, is it worth a thought whether the node is gone: the pod
// of a node that is deleted by mistake is stopped at once.
func WaitForStop(s *observation.Snapshot, pod *corev1.Pod) step.Outcome {
	if pod.Spec.NodeName == "" {
		return planning.Wait("pod", v1alpha1.ReasonPodTerminating, "pod %s is being stopped", pod.Name)
	}
	o := planning.Wait("pod", v1alpha1.ReasonPodTerminating, "pod %s is being stopped on node %s", pod.Name, pod.Spec.NodeName)
	if !isOverdue(pod, s.Now) {
		if pod.DeletionTimestamp != nil {
			o.After = min(o.After-time.Second, pod.DeletionTimestamp.Sub(s.Now)) + time.Second
		}
		return o
	}
	switch {
	case len(pod.Finalizers) > 0 && s.Node.Known && !s.Node.Unreachable:
		o.Message += fmt.Sprintf(", past its grace period: it is kept by finalizers %s: kubectl -n %s get pod %s -o yaml", strings.Join(pod.Finalizers, ", "), pod.Namespace, pod.Name)
	case s.Node.Absent:
		o.Message += ", which is gone: Kubernetes removes the pod soon"
	case s.Node.Unreachable:
		o.Message += fmt.Sprintf(", which does not answer, past its grace period: bring the node back, or if it is gone for good: kubectl delete node %s", pod.Spec.NodeName)
	case !s.Node.Known:
		o.Message += fmt.Sprintf(", past its grace period: does the node answer? kubectl get node %s", pod.Spec.NodeName)
	default:
		o.Message += fmt.Sprintf(", past its grace period: kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
	}
	o.After = planning.Recheck // nodes are not watched
	return o
}

// waitForScheduling says what a user can do for a pod that the scheduler finds no
// node for. The scheduler's own words do not name the taints that it means, nor the
// node of a volume.
func waitForScheduling(s *observation.Snapshot, why string) step.Outcome {
	pod := s.Pod
	remedy := fmt.Sprintf("see kubectl -n %s describe pod %s; add nodes, or ask for less, or for other nodes, beside %s", pod.Namespace, pod.Name, observation.OriginOf(s).DescribeField("resources"))
	at, after := observation.IndexPinnedVolume(s), planning.Deadline
	zonal := slices.IndexFunc(s.Volumes, func(v observation.Volume) bool { return len(v.Place.NodeSelectors) > 0 })
	switch {
	case at >= 0 && len(s.Volumes[at].Place.Nodes) == 1:
		remedy, after = fmt.Sprintf("its claim %s has its volume on node %s: %s", s.Volumes[at].Name, s.Volumes[at].Place.Nodes[0], describeNodeRemedy(s, s.Volumes[at].Place.Nodes[0])), planning.Recheck
	case at >= 0:
		remedy = fmt.Sprintf("its claim %s can be used on nodes %s only: make room there; if all are gone for good, delete those that are left (kubectl get nodes), then have the member replaced: kubectl -n %s delete instance %s",
			s.Volumes[at].Name, strings.Join(s.Volumes[at].Place.Nodes, ", "), pod.Namespace, pod.Name)
	case zonal >= 0 && strings.Contains(strings.ToLower(why), "volume"):
		remedy = fmt.Sprintf("its claim %s can be used only on nodes with %s: add such nodes, or make room there: kubectl -n %s describe pod %s",
			s.Volumes[zonal].Name, strings.Join(s.Volumes[zonal].Place.NodeSelectors, " or "), pod.Namespace, pod.Name)
	case strings.Contains(why, "untolerated taint"):
		remedy = "fix what taints the node, such as a full disk: kubectl get nodes -o custom-columns='NODE:.metadata.name,TAINTS:.spec.taints[*].key'; or add nodes, or set " + observation.OriginOf(s).DescribeField("tolerations")
	}
	o := planning.Wait("pod", v1alpha1.ReasonPodUnschedulable, "pod %s fits on no node: %s: %s", pod.Name, why, remedy)
	o.After = after
	return o
}

// describeNodeRemedy says what to do about the one node that a pod's volume is on.
func describeNodeRemedy(s *observation.Snapshot, node string) string {
	replace := fmt.Sprintf("have the member replaced: kubectl -n %s delete instance %s", s.Pod.Namespace, s.Pod.Name)
	switch state := s.Node; {
	case state.Absent:
		// Volumes name nodes by this label, which need not be the name.
		return fmt.Sprintf("no node has that name: kubectl get nodes -l %s=%s; if that finds one, make room there; if not, bring it back, or if it is gone for good, %s", corev1.LabelHostname, node, replace)
	case state.Unreachable && s.Now.Sub(state.Since) >= nodeGrace:
		return fmt.Sprintf("it does not answer: bring it back, or if it is gone for good: kubectl delete node %s; then %s", node, replace)
	case state.Unreachable:
		return "it does not answer: kubectl describe node " + node
	case state.Cordoned:
		return "it takes no pods: kubectl uncordon " + node
	}
	return "make room there, or let it take pods: kubectl describe node " + node
}

// IsUnschedulable reports whether the scheduler has found no node for a pod.
func IsUnschedulable(pod *corev1.Pod) bool {
	scheduled := Condition(pod, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable
}

// evicted is the reason in the status of a pod that a kubelet has ended, or has not
// let start, because its node is short of disk, memory or process ids.
const evicted = "Evicted"
