package controller

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// countForBudget is how many members a drain takes for there: while one is replaced there is
// one more, and none more may go. Nor may one beside a member whose pod is ready and
// which PD calls unhealthy, such as one that is cut off from the others. The Instances
// keep PD's word while it has no leader. A member that has no Instance votes and has no
// pod that Kubernetes could count.
func countForBudget(g *v1alpha1.PDGroup, s observation.Snapshot) int32 {
	voting := len(s.Instances)
	if voting > 1 {
		for _, m := range g.Status.Members {
			if m.Name != "" && s.Instance(m.Name) == nil {
				voting++
			}
		}
	}
	members := budget.CountWanted(g, int32(voting)) //nolint:gosec // a few
	missed := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		said := i.Status.Conditions
		return meta.IsStatusConditionTrue(said, v1alpha1.ConditionPodReady) && meta.IsStatusConditionTrue(said, v1alpha1.ConditionJoined) &&
			meta.IsStatusConditionFalse(said, v1alpha1.ConditionHealthy)
	})
	if members > 1 && missed {
		members++
	}
	return members
}
