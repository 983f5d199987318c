package disruption

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Result is what the steps that stop or remove members have decided so far. A step takes the
// Result of the one before it, and returns one of its own.
type Result struct {
	planning.Disruptions

	// Outcome is what the steps wait for.
	Outcome step.Outcome
	// Notes say why, one for each decision.
	Notes []string
}

// EmptyResult is the Result when nothing has been decided.
func EmptyResult() Result { return Result{Disruptions: planning.NoDisruptions()} }

// planner is a step at work: what it decides from, and its Result.
type planner struct {
	planning.Inputs
	*Result
}

// newPlanner starts a step.
func newPlanner(in planning.Inputs, before Result) planner {
	before.Disruptions, before.Notes = before.Clone(), slices.Clone(before.Notes)
	return planner{Inputs: in, Result: &before}
}

// plannedSnapshot is the Snapshot as it will be when the Result has been carried out.
func (task planner) plannedSnapshot() observation.Snapshot {
	return task.WithPlannedRevisions(task.Snapshot, task.Target.Hash)
}

// PlanDisruptions chooses who is restarted or removed under the Lease, continues what has begun, and
// says why others wait. due are the members that are to be restarted or removed and need the
// Lease for it, in no order; leaving are all that are removed. No member is stopped by the
// Lease while the group is suspended.
func PlanDisruptions(in planning.Inputs, due []component.Disruption, leaving planning.Removal) Result {
	task := newPlanner(in, EmptyResult())
	if in.Group.GetComponentSpec().Suspended {
		return *task.Result
	}
	o := chooseDisruption(task, due, leaving)
	task.Outcome = step.Worst(task.Outcome, withSingleRestartReason(task, o), leaving.Waiting)
	explainWaiting(task, due)
	return *task.Result
}

// PlanRemovals continues the removals that need no Lease and, unless the group is suspended, gives
// up a member that never comes back.
func PlanRemovals(in planning.Inputs, leaving planning.Removal, before Result) Result {
	task := newPlanner(in, before)
	continueRemovals(task, leaving)
	if !in.Group.GetComponentSpec().Suspended {
		replaceDead(task, leaving)
	}
	return *task.Result
}

// PlanSuspension changes the members of a suspended group that have stopped: they would wait
// indefinitely for a restart. It releases the Lease for one that has.
func PlanSuspension(in planning.Inputs, diffs []planning.InstanceDiff, before Result) Result {
	if !in.Group.GetComponentSpec().Suspended {
		return before
	}
	task := newPlanner(in, before)
	for _, m := range diffs {
		if !m.RestartReason.IsGiven() || !m.Live.Spec.Suspended || m.Live.Status.PodUID != "" {
			continue
		}
		task.PermitStop(m.Live)
		task.Notes = append(task.Notes, fmt.Sprintf("change Instance %s, which is suspended: %s", m.Live.Name, m.RestartReason.Text()))
	}
	releaseWhileSuspended(task)
	return *task.Result
}

// PlanRelease releases the Lease of a holder that is gone, unless another member takes it.
func PlanRelease(in planning.Inputs, before Result) Result {
	s := in.Snapshot
	if !s.HolderLost || s.Lease.Holder.Kind != in.Group.GroupKind() || before.Lease.Take != nil || s.UnfinishedBatchMember(nil) != "" {
		return before
	}
	task := newPlanner(in, before)
	task.Lease = planning.LeaseChange{Release: true, Why: "its holder is gone"}
	recheckLostHolder(task)
	return *task.Result
}
