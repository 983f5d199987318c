package group

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Inputs returns the part of a group's spec that its members are rendered from:
// the shared part without what changes no pod, and the component's own extras.
func Inputs(g v1alpha1.Group, extra map[string]any) any {
	spec := g.GetComponentSpec().DeepCopy()
	spec.Paused, spec.Suspended = false, false
	spec.PersistentVolumeClaimRetentionPolicy = v1alpha1.ClaimRetention{}
	spec.Disruption, spec.RevisionHistoryLimit, spec.VolumeReplacement = nil, nil, ""
	for i := range spec.Volumes {
		// Only where volumes are mounted stands in the template; sizes and
		// classes are the claims' own.
		spec.Volumes[i].Storage = resource.Quantity{}
		spec.Volumes[i].StorageClassName, spec.Volumes[i].VolumeAttributesClassName = nil, nil
	}
	return map[string]any{"spec": spec, "extra": extra}
}
