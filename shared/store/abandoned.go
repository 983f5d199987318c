package store

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// A group that is deleted takes nothing out of PD: its stores stay there as they
// are when their pods have stopped. As long as they do no other one of their kind is
// restarted, and no operator is left whose they are. So whoever is left names them.

// abandoned reports whether PD lists a store that it does not hear of and that no
// Instance of the cluster is. An Instance that is being made anew is there.
func abandoned(s group.Snapshot, store pd.Store) bool {
	if store.State != pd.StateDown && store.State != pd.StateDisconnected {
		return false
	}
	name := podName(store)
	return s.Lease.Holder.Instance != name && s.Anyone(name) == nil
}

// Orphans are the calls that take back what was begun with a member whose Instance
// has gone meanwhile, with its group or because a person took its finalizer off: its
// leaders are kept away from its store (KV-15), also from one of that name that comes
// later. The Lease alone still tells that it was the operators who did it, so that it
// is not to be given on before. unknown says that PD cannot be asked.
func (c Component) Orphans() (calls []group.Call, unknown bool) {
	held := c.Snapshot.Lease
	if !c.Snapshot.HolderLost || held.Holder.Kind != c.Group.GroupKind() {
		return nil, false
	}
	calls = slices.DeleteFunc(group.Leftovers(c.Snapshot.PD, held), func(call group.Call) bool {
		s, _ := c.Snapshot.PD.Store(call.Target)
		return c.marked(call.Instance) || isTiFlash(s) == c.HasLeaders
	})
	return calls, c.Silence != ""
}

// marked reports whether a companion of the Lease's holder is there to be taken care
// of: something was done to it, by its mark.
func (c Component) marked(name string) bool {
	i := c.Snapshot.Anyone(name)
	return name != c.Snapshot.Lease.Holder.Instance && i != nil && mark(i) != ""
}

// asleep says that a member's group is suspended, and how to resume it; empty if it
// is not.
func (c Component) asleep(store pd.Store) string {
	i := c.Snapshot.Anyone(podName(store))
	if i == nil {
		return ""
	}
	for _, g := range c.Snapshot.Groups {
		if g.GroupKind() == c.Group.GroupKind() && g.GetName() == i.Spec.Group.Name && g.GetComponentSpec().Suspended {
			return fmt.Sprintf("%s %s is suspended: to resume it, set its spec.suspended to false", g.GroupKind(), g.GetName())
		}
	}
	return ""
}

// leftBehind names an abandoned store and what a person may do.
func leftBehind(g v1alpha1.Group, store pd.Store) string {
	return fmt.Sprintf("store %s (%s) does not run and its group is gone: have PD remove it: %s store delete %s; or make the group again, with its claims, and scale it to 0", store.ID, podName(store), ctl(g), store.ID)
}

// ctl is the command that begins an order to the PD of a group.
func ctl(g v1alpha1.Group) string {
	return fmt.Sprintf("kubectl -n %s exec svc/%s -- /pd-ctl", g.GetNamespace(), g.PDGroupName())
}

// ruins names the first abandoned store of a group's kind, and how many there are;
// empty if there is none.
func ruins(g v1alpha1.Group, s group.Snapshot) string {
	var all []pd.Store
	for _, store := range s.PD.Stores {
		if isTiFlash(store) == (g.GroupKind() == v1alpha1.KindTiFlashGroup) && abandoned(s, store) {
			all = append(all, store)
		}
	}
	switch len(all) {
	case 0:
		return ""
	case 1:
		return "; " + leftBehind(g, all[0])
	}
	return fmt.Sprintf("; %s; and %d more", leftBehind(g, all[0]), len(all)-1)
}
