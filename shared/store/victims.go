package store

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/topology"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Rank implements group.Component: members leave where their group has most, so
// that zones stay balanced, and before others are restarted.
func (c Component) Rank(d component.Disruption) int {
	if d.Verb != member.Remove {
		return 0
	}
	return c.order[d.Instance.Name] - len(c.order)
}

// removalOrder returns the order in which the members of the group would leave:
// those first that leave anyway, that a person has named, that are of no use or
// do not serve (KV-09), and then one after the other from the fullest zone, in it
// from the fullest host, and the newest of those. Zones and hosts are what PD's
// location-labels say, and those of the nodes where there are none (KV-19).
func (c Component) removalOrder() map[string]int {
	var left []candidate
	full := map[string]int{} // how many members a place has
	for _, m := range c.Stores {
		if m.Instance.DeletionTimestamp == nil && workload.IsOwned(c.Group, m.Instance) {
			next := candidate{instance: m.Instance, favour: c.favour(m), places: c.whereabouts(m)}
			left = append(left, next)
			for _, place := range next.places {
				full[place]++
			}
		}
	}
	out := make(map[string]int, len(left))
	for len(left) > 0 {
		first := 0
		for n := range left {
			if left[n].before(left[first], full) {
				first = n
			}
		}
		out[left[first].instance.Name] = len(out)
		for _, place := range left[first].places {
			full[place]--
		}
		left = slices.Delete(left, first, first+1)
	}
	return out
}

// candidate is a member that may have to leave.
type candidate struct {
	instance *v1alpha1.Instance
	favour   int
	places   []string
}

// before reports whether a member leaves before another one.
func (a candidate) before(b candidate, full map[string]int) bool {
	if a.favour != b.favour {
		return a.favour < b.favour
	}
	for level := range min(len(a.places), len(b.places)) {
		if x, y := full[a.places[level]], full[b.places[level]]; x != y {
			return x > y
		}
	}
	return a.instance.Spec.Slot > b.instance.Spec.Slot
}

// favour is who leaves before others wherever it is, as the planner of removals
// sorts them.
func (c Component) favour(m Match) int {
	switch {
	case m.Instance.Spec.Retire:
		return 0
	case member.IsRemovedFirst(m.Instance), member.ReplacementReason(c.Group, m.Instance) != "":
		return 1
	case c.NotServing(m.Instance):
		return 2
	case m.absent():
		return 3
	}
	return 4
}

// absent reports whether a member's store does not serve. One that PD has only lost
// sight of for a moment has a pod that is ready.
func (m Match) absent() bool {
	if m.Store == nil || m.Store.State == pd.StateDown {
		return true
	}
	return m.Store.State == pd.StateDisconnected && member.PodStateOf(m.Instance) != member.PodReady
}

// nodePlaces are the location labels of members whose PD has none.
func nodePlaces() []string { return []string{"zone", "host"} }

// whereabouts names where a member is, as places does.
func (c Component) whereabouts(m Match) []string {
	labels := c.Snapshot.PD.LocationLabels
	if len(labels) > 0 {
		return places(m.Store, labels)
	}
	node := topology.StoreLabels(c.Snapshot.Nodes[m.Instance.Status.NodeName], nodePlaces(), nil)
	return places(&pd.Store{Labels: node}, nodePlaces())
}

// places names where a store is, from the largest place to the smallest, each by
// all its labels: hosts of two zones may have the same name. A label that the
// store lacks is a place as well, unlike any that has a name.
func places(s *pd.Store, labels []string) []string {
	out := make([]string, 0, len(labels))
	path := ""
	for _, key := range labels {
		value := ""
		if s != nil {
			value = label(*s, key)
		}
		path += "/" + value
		out = append(out, path)
	}
	return out
}

// RestartsWhenDeleted implements group.Component: a member that is to stay is let go when its
// leaders are elsewhere and no other one is missing, unless it adds nothing anyway.
// Nobody can say that of a store which is not the one it should be, and deleting its
// Instance is what mends it.
func (c Component) RestartsWhenDeleted(i *v1alpha1.Instance) bool {
	if i.DeletionTimestamp == nil || c.Group.GetComponentSpec().Suspended || c.departs(i) {
		return false
	}
	return c.Snapshot.Lease.HeldBy(i) || !c.NotServing(i) && c.of(i).Problem == ""
}

// ReplacedWhenDeleted implements group.Component: a member that leaves for good and that PD
// has ever listed is missed until another one has come, which takes another slot:
// the claims of this one are not used again.
func (c Component) ReplacedWhenDeleted(i *v1alpha1.Instance) bool {
	return recorded(i) != "" && c.departs(i)
}
