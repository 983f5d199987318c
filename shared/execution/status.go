package execution

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Findings are what a reconcile has found out about a group.
type Findings[Status any] struct {
	// Status of the group, and the conditions in it.
	Status Status
	Set    *conditions.Set
	// Members of the group.
	Members []groupstatus.Member
	// End of the reconcile.
	End step.Outcome
	// Changes says what a rollout that begins now changes.
	Changes string
	// Once says that the status holds something that is written only once. It is written
	// only if it was made from the newest version of the group, so that an outdated cache
	// cannot take it back.
	Once bool
}

// Conclude ends a reconcile. It writes the members' part into the status of their
// Instances and the rest into the status of the group, which g carries afterwards.
func Conclude[Status any](ctx context.Context, env operator.Env, g v1alpha1.Group, status *Status, found Findings[Status]) (ctrl.Result, error) {
	members, waits := writeMembers(ctx, env, found.Members)
	end := step.Worst(found.End, env.Outcomes.Count("report", members))
	write, was := env.Status.Write, *g.GetGroupStatus()
	if found.Once {
		write = env.Status.WriteSeen
	}
	wait, err := write(ctx, g, status, &found.Status, found.Set.Transitions())
	switch {
	case apierrors.IsConflict(err): // so it may be of a group that is being deleted, too
		return ctrl.Result{RequeueAfter: step.ConflictDelay}, nil
	case err != nil:
		return ctrl.Result{}, err
	case wait == 0:
		*status = found.Status
		tellRollout(env, g, was, found.Changes)
	}
	return queueing.ResultOf(end, append(waits, wait)...)
}

// tellRollout records an Event when a group's members begin to get another revision, and
// when all have it. The condition UpToDate reports that in the same words each time, and
// Events in the same words are counted and not kept.
func tellRollout(env operator.Env, g v1alpha1.Group, was v1alpha1.GroupStatus, changes string) {
	is := g.GetGroupStatus()
	if was.UpdateRevision != "" && is.UpdateRevision != was.UpdateRevision && is.Replicas > 0 {
		if changes != "" {
			changes = ": " + changes
		}
		env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "RolloutBegun", "Rollout", "%d Instances will be updated to revision %s from %s%s", is.Replicas, is.UpdateRevision, was.UpdateRevision, changes)
	}
	if was.CurrentRevision != "" && is.CurrentRevision != was.CurrentRevision {
		env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "RolloutEnded", "Rollout", "every Instance is at revision %s", is.CurrentRevision)
	}
}

// writeMembers writes the members' part of the Instances' status, and returns how soon what it
// has not written yet of each is to be written, 0 for nothing.
func writeMembers(ctx context.Context, env operator.Env, members []groupstatus.Member) (o step.Outcome, waits []time.Duration) {
	var work []func() step.Outcome
	waits = make([]time.Duration, len(members))
	for at, m := range members {
		work = append(work, func() step.Outcome {
			var err error
			waits[at], err = env.Status.WriteMember(ctx, m.Instance, m.Status, m.Conditions)
			switch {
			case apierrors.IsConflict(err):
				return step.Conflict(v1alpha1.ReasonProgressing, "Instance "+m.Instance.Name+" has changed meanwhile")
			case err != nil:
				return step.Fail(v1alpha1.ReasonRequestFailed, err)
			}
			return step.Done()
		})
	}
	return step.RunInParallel(work...), waits
}
