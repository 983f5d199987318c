package volumeclaim

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// defaultClassAnnotation marks the StorageClass that claims without one get.
const defaultClassAnnotation = "storageclass.kubernetes.io/is-default-class"

// waitForVolume says why a claim has no volume yet.
func waitForVolume(s *observation.Snapshot, v observation.Volume) step.Outcome {
	namespace := s.Instance.Namespace
	if s.Classes == nil {
		return planning.Wait("claim", v1alpha1.ReasonClaimPending, "claim %s has no volume yet: kubectl describe pvc %s -n %s", v.Name, v.Name, namespace)
	}
	if v.Claim.Spec.StorageClassName == nil {
		if !slices.ContainsFunc(classesOf(s), isDefault) {
			return planning.Wait("storageclass", v1alpha1.ReasonStorageClassMissing, "claim %s names no StorageClass and none is the default: name one in %s, or annotate one with %s=true", v.Name, observation.OriginOf(s).DescribeField("volumes"), defaultClassAnnotation)
		}
		return planning.Wait("claim", v1alpha1.ReasonClaimPending, "claim %s waits to be assigned the default StorageClass: kubectl describe pvc %s -n %s", v.Name, v.Name, namespace)
	}
	name := *v.Claim.Spec.StorageClassName
	if name == "" {
		return planning.Wait("claim", v1alpha1.ReasonClaimPending, "claim %s waits for a PersistentVolume without StorageClass: create one that fits: kubectl describe pvc %s -n %s", v.Name, v.Name, namespace)
	}
	class := s.Classes[name]
	if class == nil {
		return planning.Wait("storageclass", v1alpha1.ReasonStorageClassMissing, "StorageClass %s of claim %s does not exist: create it, or name another in %s; there are: kubectl get storageclass", name, v.Name, observation.OriginOf(s).DescribeField("volumes"))
	}
	if waitsForPod(class) && (s.Pod == nil || s.Pod.Spec.NodeName == "") {
		return planning.Wait("claim", v1alpha1.ReasonClaimPending, "claim %s gets its volume from StorageClass %s when its pod is scheduled", v.Name, name)
	}
	return planning.Wait("claim", v1alpha1.ReasonClaimPending, "claim %s waits for provisioner %s of StorageClass %s: is it running? kubectl describe pvc %s -n %s", v.Name, class.Provisioner, name, v.Name, namespace)
}

func classesOf(s *observation.Snapshot) []*storagev1.StorageClass {
	out := make([]*storagev1.StorageClass, 0, len(s.Classes))
	for _, c := range s.Classes {
		out = append(out, c)
	}
	return out
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[defaultClassAnnotation] == "true"
}

func waitsForPod(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// IsPodScheduledFirst says whether the claims wait for the pod, rather than the pod
// for the claims.
func IsPodScheduledFirst(s *observation.Snapshot) bool {
	for _, v := range s.Volumes {
		if v.Claim == nil {
			return false
		}
		if v.Claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if s.Classes == nil {
			// It is unknown which waits for which: the scheduler's message says more.
			continue
		}
		if v.Claim.Spec.StorageClassName == nil {
			return false
		}
		if class := s.Classes[*v.Claim.Spec.StorageClassName]; class == nil || !waitsForPod(class) {
			return false
		}
	}
	return s.Pod != nil
}
