package registry

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// Group is a TiDBGroup whose registrations are looked at.
type Group struct {
	// Name of the group, and PD the PDGroup that its servers register with.
	Name, PD types.NamespacedName
	// Members are the names of its Instances.
	Members map[string]bool
}

// hasSameMembers reports whether a group has the same members at the same PD.
func (g Group) hasSameMembers(other Group) bool {
	return g.PD == other.PD && maps.Equal(g.Members, other.Members)
}

// FindStale returns the registrations of servers of the group that it has no Instance
// of. Those of other groups, and of servers elsewhere, are not its business.
func (g Group) FindStale(servers []pd.Server) []pd.Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s pd.Server) bool {
		pod, own := names.PodOfHost(s.Address, g.Name.Name, g.Name.Namespace)
		if !own || g.Members[pod] {
			return true
		}
		_, slot := names.Slot(g.Name.Name, pod)
		return !slot
	})
}

// IsDead reports whether a server had no lease before and has none now, and has not
// registered in between: one that starts registers first and gets its lease then.
func IsDead(now pd.Server, before []pd.Server) bool {
	return !now.Alive && slices.Contains(before, now)
}
