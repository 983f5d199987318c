package controller

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// founder says which other group of the PDGroup has to make the database, empty if
// none has. The first server that starts makes it, runs the SQL of its own group
// and nobody's ever again: one without that SQL would leave root without a password
// and users unmade. Once a server of any group has served it is made.
func founder(g *v1alpha1.TiDBGroup, s snapshot) string {
	first := ""
	for _, other := range s.Groups {
		t, ok := other.(*v1alpha1.TiDBGroup)
		if !ok {
			continue
		}
		if t.Status.CurrentRevision != "" || t.Status.ReadyReplicas > 0 {
			return ""
		}
		if first == "" && t.DeletionTimestamp == nil && (t.Spec.Initialization != nil || t.Spec.BootstrapSQL != nil) {
			first = t.Name
		}
	}
	if first == "" || first == g.Name {
		return ""
	}
	return fmt.Sprintf("TiDBGroup %s comes first, for its first server makes the users and runs the SQL of the new database: kubectl -n %s describe tidbgroup %s", first, g.Namespace, first)
}
