package removal

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/safety"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Rank implements component.Component: members leave where their group has most, so
// that zones stay balanced, and before others are restarted.
func Rank(c storestate.State, d component.Disruption) int {
	if d.Verb != member.Remove {
		return 0
	}
	return c.Order[d.Instance.Name] - len(c.Order)
}

// Order returns the order in which the members of the group would leave:
// those first that leave anyway, that a user has named, that are of no use or
// do not serve (KV-09), and then one after the other from the fullest zone, in it
// from the fullest host, and the newest of those. Zones and hosts are what PD's
// location-labels say, and those of the nodes where there are none (KV-19).
func Order(c storestate.State) map[string]int {
	var left []candidate
	full := map[string]int{} // how many members a place has
	for _, m := range c.Stores {
		if m.Instance.DeletionTimestamp == nil && workload.IsOwned(c.Group, m.Instance) {
			next := candidate{instance: m.Instance, priority: removalPriority(c, m), places: placement.PlacesOf(c, m)}
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
			if left[n].leavesBefore(left[first], full) {
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
	priority int
	places   []string
}

// leavesBefore reports whether a member leaves before another one.
func (a candidate) leavesBefore(b candidate, full map[string]int) bool {
	if a.priority != b.priority {
		return a.priority < b.priority
	}
	for level := range min(len(a.places), len(b.places)) {
		if x, y := full[a.places[level]], full[b.places[level]]; x != y {
			return x > y
		}
	}
	return a.instance.Spec.Slot > b.instance.Spec.Slot
}

// removalPriority is who leaves before others wherever it is, as the planner of removals
// sorts them.
func removalPriority(c storestate.State, m storestate.Match) int {
	switch {
	case m.Instance.Spec.Retire:
		return 0
	case member.IsRemovedFirst(m.Instance), member.ReplacementReason(c.Group, m.Instance).IsGiven():
		return 1
	case safety.IsNotServing(c, m.Instance):
		return 2
	case m.IsAbsent():
		return 3
	}
	return 4
}
