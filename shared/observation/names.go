package observation

import (
	"maps"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// RetryPeriod is how soon a name that another owner holds is looked at again: no watch
// reports when it becomes free.
const RetryPeriod = time.Minute

// BudgetName is the name of the PodDisruptionBudget of a group's component in its
// cluster. A group of stateless members has one of its own.
func BudgetName(g v1alpha1.Group) string {
	if info, _ := v1alpha1.LookupComponent(g.GroupKind()); info.Stateless {
		return g.GetName() + "-" + g.Component()
	}
	return g.PDGroupName() + "-" + g.Component()
}

// NamesFree says whether no object of another owner has one of the group's names.
func NamesFree(g v1alpha1.Group, s Snapshot) verdict.Verdict {
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service := s.Services[name]
		if !workload.IsOwned(g, service) {
			return verdict.Refusef("Service %s exists and belongs to another owner: delete it (kubectl -n %s delete service %s) or give the group another name", name, g.GetNamespace(), name)
		}
	}
	return verdict.Allow()
}
