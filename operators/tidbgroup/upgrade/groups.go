package upgrade

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// FindOngoing names a group of the list, other than the one named, whose servers are
// in the middle of an upgrade by what its status and its Instances say; empty if there is none.
// A notification holds for all servers of a PDGroup, so it is not over before.
// A group that is held back before its first server is not in the middle.
func FindOngoing(groups []v1alpha1.Group, instances []*v1alpha1.Instance, but string) string {
	for _, other := range groups {
		if g, ok := other.(*v1alpha1.TiDBGroup); ok && g.Name != but && isUpgrading(g, instances) {
			return g.Name
		}
	}
	return ""
}

// isUpgrading reports whether some servers of a group have the version that it is to
// have, and others may not. Its status counts a server as updated as soon as it may be
// restarted, and none that is being deleted: both run the old version until they have stopped.
func isUpgrading(g *v1alpha1.TiDBGroup, instances []*v1alpha1.Instance) bool {
	s := g.Status
	if g.DeletionTimestamp != nil || g.Spec.Suspended {
		return false
	}
	if s.Upgrade == nil && (s.Version == "" || s.Version == g.Spec.Version || s.UpdatedReplicas == 0) {
		return false
	}
	return s.Replicas > 0 && (s.UpdatedReplicas != s.Replicas || s.ObservedGeneration != g.Generation) ||
		slices.ContainsFunc(instances, func(i *v1alpha1.Instance) bool {
			return i.Spec.Group.Kind == g.GroupKind() && i.Spec.Group.Name == g.Name && i.Status.PodUID != "" && i.Status.Revision != s.UpdateRevision
		})
}
