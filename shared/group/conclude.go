package group

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// Once says that the status holds what is written once: it is planned anew if
	// it was not made from the newest version of the group, so that a cache which
	// does not know it yet does not take it back.
	Once bool
}

// Conclude ends a reconcile: it writes what it has found out, the members' part
// into their Instances and the rest into the group's status, which g carries
// afterwards.
func Conclude[Status any](ctx context.Context, env operator.Env, g v1alpha1.Group, status *Status, found Findings[Status]) (ctrl.Result, error) {
	end := step.Worst(found.End, env.Outcomes.Count("report", WriteMembers(ctx, env, found.Members)))
	write := env.Status.Write
	if found.Once {
		write = env.Status.WriteSeen
	}
	switch err := write(ctx, g, *status, found.Status, found.Set.Transitions()); {
	case apierrors.IsConflict(err): // so it may be of a group that is being deleted, too
		return ctrl.Result{RequeueAfter: step.ConflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	}
	*status = found.Status
	return end.Result()
}
