package membership

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// HasReturned reports whether the member of an Instance that was reported as having left,
// or to be leaving, is there after all: it is no longer to be removed, and PD
// lists it or has never known it. While it is to go PD is not believed: a member
// that was removed may still answer.
func HasReturned(g *v1alpha1.PDGroup, s observation.Snapshot, i *v1alpha1.Instance) bool {
	if i.Spec.Retire || i.DeletionTimestamp != nil || !bootstrap.IsPDUsable(g, s) {
		return false
	}
	_, listed := FindMember(g, s, i)
	return listed || i.Status.Member == nil
}
