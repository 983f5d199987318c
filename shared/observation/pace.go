package observation

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
)

// IsProgressing reports whether a group is on its way to its spec, so that PD is worth
// asking often. A paused or suspended group stays where it is.
func IsProgressing(g v1alpha1.Group) bool {
	wanted := []string{v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate}
	switch spec := g.GetComponentSpec(); {
	case spec.Paused:
		return false
	case spec.Suspended:
		wanted = wanted[1:]
	}
	for _, t := range wanted {
		c := gate.FindCurrentCondition(g.GetGroupStatus().Conditions, g.GetGeneration(), t)
		if c == nil || c.Status != metav1.ConditionTrue {
			return true
		}
	}
	return false
}
