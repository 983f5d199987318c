package group

import (
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
)

// Inputs returns the part of a group's spec that its members are rendered from:
// the shared part without what changes no pod, and the component's own extras. What
// is empty in it counts for no hash but where it means something.
func Inputs(g v1alpha1.Group, extra map[string]any) any {
	spec := g.GetComponentSpec().DeepCopy()
	spec.Paused, spec.Suspended = false, false
	spec.PersistentVolumeClaimRetentionPolicy = v1alpha1.ClaimRetention{}
	spec.Disruption, spec.RevisionHistoryLimit, spec.VolumeReplacement, spec.PeerService = nil, nil, "", nil
	for i := range spec.Volumes {
		// Only where volumes are mounted stands in the template; sizes and
		// classes are the claims' own.
		spec.Volumes[i].Storage = resource.Quantity{}
		spec.Volumes[i].StorageClassName, spec.Volumes[i].VolumeAttributesClassName = nil, nil
	}
	inputs := map[string]any{"spec": spec, "extra": extra}
	if empties := apply.Empties(spec); len(empties) > 0 {
		inputs["empties"] = empties
	}
	return inputs
}
