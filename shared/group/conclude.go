package group

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Findings are what a reconcile has found out about a group.
type Findings[Status any] struct {
	// Status of the group, and the conditions in it.
	Status Status
	Set    *conditions.Set
	// Members of the group.
	Members []Member
	// End of the reconcile.
	End step.Outcome
}

// Conclude ends a reconcile: it writes what it has found out, the members' part
// into their Instances and the rest into the group's status, which g carries
// afterwards.
func Conclude[Status any](ctx context.Context, env operator.Env, g v1alpha1.Group, status *Status, found Findings[Status]) (ctrl.Result, error) {
	end := step.Worst(found.End, env.Outcomes.Count("report", WriteMembers(ctx, env, found.Members)))
	if err := env.Status.Write(ctx, g, *status, found.Status, found.Set.Transitions()); err != nil {
		return ctrl.Result{}, err
	}
	*status = found.Status
	return end.Result()
}
