package observation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
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

// CheckNames says which object of another owner has one of the group's names; Done if none has. The Service of
// a group that is gone stays until a cloud has removed its load balancer, which takes minutes.
func CheckNames(g v1alpha1.Group, s Snapshot) step.Outcome {
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		service, namespace := s.Services[name], g.GetNamespace()
		switch {
		case workload.IsOwned(g, service):
		case service.DeletionTimestamp != nil:
			return step.Wait("Service", RetryPeriod, v1alpha1.ReasonDeleting, fmt.Sprintf("Service %s of another owner is being deleted, and waits for %s: kubectl -n %s describe service %s",
				name, strings.Join(service.Finalizers, ", "), namespace, name))
		default:
			o := step.Stall(v1alpha1.ReasonNameConflict, fmt.Sprintf("Service %s exists and belongs to another owner: delete it (kubectl -n %s delete service %s) or give the group another name", name, namespace, name))
			o.After = RetryPeriod
			return o
		}
	}
	return step.Done()
}
