package disruption

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// chooseDisruption decides which member may be stopped now. work are the members that are to be restarted or
// removed and need the Lease for it, in no order; leaving are all that are removed. It fills the Lease, the calls
// and the permissions, and returns why the rest has to wait.
func chooseDisruption(task planner, work []component.Disruption, leaving planning.Removal) step.Outcome {
	if holder := observation.HolderOf(task.Snapshot); holder != nil {
		return continueDisruption(task, holder, work, leaving)
	}
	serving, held := restartNotServing(task, work)
	if task.Snapshot.AwaitsRecreation(task.Group) {
		return step.Worst(held, resumeForRecreated(task))
	}
	return step.Worst(held, beginDisruption(task, serving, leaving))
}

// restartNotServing permits members that do not serve to stop at once. It returns the work
// that is left, and why some of it has to wait.
func restartNotServing(task planner, work []component.Disruption) ([]component.Disruption, step.Outcome) {
	var serving []component.Disruption
	held := step.Done()
	for _, d := range work {
		if d.Verb != member.Restart || !task.Rendering.Component.IsNotServing(d.Instance) {
			serving = append(serving, d)
			continue
		}
		if hold := rollout.HoldForStart(task.Group, task.plannedSnapshot(), task.Rendering, d, task.Target.Hash); hold.Kind != step.KindDone {
			held = step.Worst(held, hold)
			continue
		}
		task.StopPermitted[d.Instance.Name] = true
		recheckNotServing(task, d.Instance)
		task.Notes = append(task.Notes, fmt.Sprintf("replace the pod of Instance %s, which does not serve: %s", d.Instance.Name, d.Why))
	}
	return serving, held
}

// beginDisruption chooses which member is disrupted next and takes the Lease for it. A
// restart without the Lease is never planned together with a removal: what is safe is
// judged by the members that stay.
func beginDisruption(task planner, work []component.Disruption, leaving planning.Removal) step.Outcome {
	slices.SortStableFunc(work, func(a, b component.Disruption) int {
		return cmp.Or(cmp.Compare(task.Rendering.Component.Rank(a), task.Rendering.Component.Rank(b)), member.BySlot(a.Instance, b.Instance))
	})
	blocked := step.Done()
	for _, d := range work {
		if o := checkStart(task, d); o.Kind != step.KindDone {
			blocked = step.Worst(blocked, o)
			continue
		}
		if other := beginsWith(&leaving, task.Rendering); other != "" && !task.Rendering.Component.NeedsLease(d) {
			return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestartPending, fmt.Sprintf("Instance %s (%s) is restarted when Instance %s is known to leave", d.Instance.Name, d.Why, other))
		}
		if !task.Rendering.Component.NeedsLease(d) {
			task.StopPermitted[d.Instance.Name] = true
			task.Notes = append(task.Notes, fmt.Sprintf("restart Instance %s: %s", d.Instance.Name, d.Why))
			return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s is being restarted: %s", d.Instance.Name, d.Why))
		}
		if o := checkLease(task.Group, task.Snapshot, d); o.Kind != step.KindDone {
			return o
		}
		if o := undoForLostHolder(task, d); o.Kind != step.KindDone {
			return o
		}
		with, alone, wait := chooseBatch(task, d, work)
		if wait.Kind != step.KindDone {
			return wait
		}
		task.Lease = planning.LeaseChange{Take: &d, Leaders: task.Rendering.Component.LeaderCount(d.Instance), Batch: with, BatchBlocked: alone.Text(), Recreating: recreatingGroup(task.Group, d), Why: d.Why}
		task.Notes = append(task.Notes, fmt.Sprintf("take the disruption Lease for Instance %s: %s", d.Instance.Name, d.Why))
		return step.Wait("Lease", member.WaitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is next: %s", d.Instance.Name, d.Why))
	}
	return blocked
}
