package podstate

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// longStart is after how long a pod that has a node and runs nothing may be held up: the volume
// of a node that is gone is detached after six minutes only, and nothing but Events says so.
const longStart = 2 * time.Minute

// waitForStart waits for a pod to run. What it mounts of a user's is named when that takes
// long, for the kubelet does not say in a pod's status which of it is missing.
func waitForStart(s *observation.Snapshot, pod *corev1.Pod) step.Outcome {
	o := planning.Wait("pod", v1alpha1.ReasonPodPending, "pod %s is being started on node %s", pod.Name, pod.Spec.NodeName)
	needs, since, long := listRequiredMounts(s, pod), pod.CreationTimestamp.Time, gate.ProcessingTimeout
	if len(needs) == 0 {
		if scheduled := Condition(pod, corev1.PodScheduled); scheduled != nil && !scheduled.LastTransitionTime.IsZero() {
			since = scheduled.LastTransitionTime.Time
		}
		long = longStart
	}
	if left := long - s.Now.Sub(since); left > 0 && left <= long {
		o.After = min(left, planning.Deadline)
		return o
	}
	if len(needs) == 0 {
		o.Message += fmt.Sprintf(", which takes long: a large image, or a volume that is still attached to another node? kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
		return o
	}
	o.Message += fmt.Sprintf(", which needs %s: if one is missing, create it: kubectl -n %s describe pod %s", strings.Join(needs, ", "), pod.Namespace, pod.Name)
	return o
}

// listRequiredMounts names what must exist for a pod's volumes to be mounted and is not the
// operators' own.
func listRequiredMounts(s *observation.Snapshot, pod *corev1.Pod) []string {
	var out []string
	required := func(optional *bool) bool { return optional == nil || !*optional }
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil && required(v.Secret.Optional):
			out = append(out, "Secret "+v.Secret.SecretName)
		case v.ConfigMap != nil && required(v.ConfigMap.Optional) && !strings.HasPrefix(v.ConfigMap.Name, s.Instance.Spec.Group.Name+"-config-"):
			out = append(out, "ConfigMap "+v.ConfigMap.Name)
		}
	}
	return out
}
