package controller

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
)

// safe says why a server must not be stopped now; empty if it may be. One that
// does not serve may always be replaced, so that a mistake can be undone.
func safe(victim *v1alpha1.Instance) string {
	if group.InstanceServes(victim) {
		return "it serves, and this version does not restart servers that do: delete the Instance to restart it"
	}
	return ""
}
