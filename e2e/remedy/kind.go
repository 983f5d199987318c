package remedy

import (
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Kind returns the kind of a resource as messages name it to kubectl, empty if it is
// none that they name.
func Kind(resource string) string {
	resource = strings.ToLower(resource)
	for _, kind := range append(v1alpha1.Kinds(), listKubernetesKinds()...) {
		if lower := strings.ToLower(kind); resource == lower || resource == lower+"s" {
			return kind
		}
	}
	switch resource {
	case "pvc":
		return "PersistentVolumeClaim"
	case "svc":
		return "Service"
	}
	return ""
}

// listKubernetesKinds are the kinds of Kubernetes that messages name.
func listKubernetesKinds() []string {
	return []string{
		"ConfigMap", "ControllerRevision", "Job", "Lease", "LimitRange", "Node", "Pod", "PodDisruptionBudget", "PersistentVolumeClaim", "ResourceQuota", "Secret", "Service",
		"StorageClass", "VolumeAttributesClass", v1alpha1.KindCertificate,
	}
}
