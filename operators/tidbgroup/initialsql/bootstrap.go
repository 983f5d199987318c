package initialsql

import (
	"cmp"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// MayBootstrap says whether a server of this group may make the database, or which other
// group of the PDGroup has to. The first server that starts makes it, and runs the SQL of
// its own group and no other ever again: one without that SQL would leave root without a
// password and users unmade. A group that has none at all, or is suspended, is passed over
// while another one has SQL. Once a server of any group has served, the database is made.
func MayBootstrap(g *v1alpha1.TiDBGroup, groups []v1alpha1.Group) verdict.Verdict {
	first, idle := "", ""
	for _, other := range groups {
		t, ok := other.(*v1alpha1.TiDBGroup)
		if !ok {
			continue
		}
		if t.Status.CurrentRevision != "" || t.Status.ReadyReplicas > 0 {
			return verdict.Allow()
		}
		switch sql := t.Spec.Initialization != nil || t.Spec.BootstrapSQL != nil; {
		case !sql || t.DeletionTimestamp != nil:
		case t.GetReplicas() == 0 || t.Spec.Suspended:
			idle = cmp.Or(idle, t.Name)
		default:
			first = cmp.Or(first, t.Name)
		}
	}
	switch {
	case first == "" && idle != "" && idle != g.Name:
		return verdict.Refusef("TiDBGroup %s has the SQL for the users of the new database and comes first, and it has no replicas or is suspended: resume it with one at least, or take initialization and bootstrapSQL off its spec: kubectl -n %s describe tidbgroup %s",
			idle, g.Namespace, idle)
	case first == "" || first == g.Name:
		return verdict.Allow()
	}
	return verdict.Refusef("TiDBGroup %s comes first, because its first server makes the users and runs the SQL of the new database: kubectl -n %s describe tidbgroup %s", first, g.Namespace, first)
}
