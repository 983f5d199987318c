package planning

import (
	"iter"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Removal is what a plan decides about members that leave.
type Removal struct {
	// Candidates leave now, by Instance.
	Candidates map[string]component.Disruption
	// Waiting is why others have to wait, or why none leaves.
	Waiting step.Outcome
}

// ScalesIn reports whether members leave whose Instance was not deleted.
func (out *Removal) ScalesIn() bool {
	for i := range InstancesOf(out.Candidates) {
		if i.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// InstancesOf ranges over the Instances of disruptions, in no order.
func InstancesOf(work map[string]component.Disruption) iter.Seq[*v1alpha1.Instance] {
	return func(yield func(*v1alpha1.Instance) bool) {
		for _, d := range work {
			if !yield(d.Instance) {
				return
			}
		}
	}
}
