package upgrade

import "github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"

// FindOngoing names a group of the list, other than the one named, whose servers are
// in the middle of an upgrade by what its status says; empty if there is none.
// A notification holds for all servers of a PDGroup, so it is not over before.
// A group that is held back before its first server is not in the middle.
func FindOngoing(groups []v1alpha1.Group, but string) string {
	for _, other := range groups {
		if g, ok := other.(*v1alpha1.TiDBGroup); ok && g.Name != but && isUpgrading(g) {
			return g.Name
		}
	}
	return ""
}

// isUpgrading reports whether some servers of a group have the version that it is to
// have, and others may not.
func isUpgrading(g *v1alpha1.TiDBGroup) bool {
	s := g.Status
	if g.DeletionTimestamp != nil || g.Spec.Suspended || s.Replicas == 0 || s.UpdatedReplicas == s.Replicas && s.ObservedGeneration == g.Generation {
		return false
	}
	return s.Upgrade != nil || s.Version != "" && s.Version != g.Spec.Version && s.UpdatedReplicas > 0
}
