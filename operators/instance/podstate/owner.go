package podstate

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// PodOwner says whose a pod is.
type PodOwner string

const (
	// OwnPod is controlled by the Instance.
	OwnPod PodOwner = "own"
	// OrphanPod is ours by its labels and has no controller.
	OrphanPod PodOwner = "orphan"
	// ForeignPod belongs to another owner.
	ForeignPod PodOwner = "foreign"
)

// OwnerOf reports whose a pod of the Instance's name is.
func OwnerOf(instance *v1alpha1.Instance, pod *corev1.Pod) PodOwner {
	controller := metav1.GetControllerOf(pod)
	switch {
	case controller != nil && controller.UID == instance.UID:
		return OwnPod
	case controller == nil && pod.Labels[v1alpha1.LabelInstance] == instance.Name && pod.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy:
		return OrphanPod
	}
	return ForeignPod
}
