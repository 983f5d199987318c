package store

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// unsteady says why a store that PD calls Up does not count when a member that
// stands so is stopped; empty if it does. Of members that stand no better than each
// other either may be restarted: what is pending may be what makes them ready.
func (c Component) unsteady(store pd.Store, than member.PodState) string {
	name := podName(store)
	other := c.Snapshot.Find(name)
	switch {
	case other == nil:
		return ""
	case member.IsStopping(other):
		return fmt.Sprintf("the pod of Instance %s is being stopped or made anew, and PD still takes store %s for Up", name, store.ID)
	case member.PodStateOf(other) > than:
		return fmt.Sprintf("the pod of Instance %s is not ready, or stops again and again, and PD still takes store %s for Up: kubectl -n %s describe instance %s", name, store.ID, c.Group.GetNamespace(), name)
	}
	return ""
}
