package controller

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// safe says why a member must not be stopped now; empty if it may be. A member
// that serves no region may always be replaced, so that a mistake can be undone
// whatever it broke.
func safe(g *v1alpha1.TiKVGroup, s group.Snapshot, victim *v1alpha1.Instance) string {
	for _, m := range matches(g, s) {
		if m.Instance.Name == victim.Name && m.Store != nil && m.Store.State == pd.StateUp {
			return "its store is Up, and this version does not restart healthy stores: delete the Instance to restart it"
		}
	}
	if group.InstanceServes(victim) {
		return "it is Ready, and this version does not restart members that serve: delete the Instance to restart it"
	}
	return ""
}
