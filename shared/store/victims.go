package store

import (
	"cmp"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
)

// Rank implements group.Component: members leave first where their group has most,
// so that zones stay balanced. The n-th member of a zone with k ranks n-k, counted
// in the order in which they would leave: the fullest zone gives first, and then
// as many as the next fullest.
func (c Component) Rank(d group.Disruption) int {
	labels := c.Snapshot.PD.LocationLabels
	if d.Verb != group.Remove || len(labels) == 0 {
		return 0
	}
	zone := c.zone(d.Instance, labels[0])
	var same []*v1alpha1.Instance
	for _, m := range c.Stores {
		if m.Instance.DeletionTimestamp == nil && c.zone(m.Instance, labels[0]) == zone {
			same = append(same, m.Instance)
		}
	}
	slices.SortFunc(same, func(a, b *v1alpha1.Instance) int {
		return cmp.Or(cmp.Compare(c.favour(a), c.favour(b)), cmp.Compare(b.Spec.Slot, a.Spec.Slot))
	})
	return slices.IndexFunc(same, func(i *v1alpha1.Instance) bool { return i.Name == d.Instance.Name }) - len(same)
}

// favour is who leaves before others of the same zone whatever its slot: whoever
// is on the way out, named by a person, or of no use.
func (c Component) favour(i *v1alpha1.Instance) int {
	_, named := i.Annotations[v1alpha1.AnnotationRemoveFirst]
	switch {
	case i.Spec.Retire:
		return 0
	case named:
		return 1
	case c.Spare(i):
		return 2
	}
	return 3
}

// zone is where an Instance's store is, by a label of PD's.
func (c Component) zone(i *v1alpha1.Instance, key string) string {
	if m := c.of(i); m.Store != nil {
		return label(*m.Store, key)
	}
	return ""
}

// Replaced implements group.Component: a member that PD has ever listed is missed
// until another one has come.
func (c Component) Replaced(i *v1alpha1.Instance) bool { return recorded(i) != "" }
