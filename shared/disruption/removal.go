package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// beginsWith names a member that serves and that this plan removes; empty if there
// is none.
func beginsWith(out *planning.Removal, r component.Rendering) string {
	for _, i := range slices.SortedFunc(planning.InstancesOf(out.Candidates), member.BySlot) {
		if i.DeletionTimestamp == nil && !i.Spec.Retire && !r.Component.NeedsLease(out.Candidates[i.Name]) && !r.Component.IsNotServing(i) {
			return i.Name
		}
	}
	return ""
}

// continueRemovals continues the removals that need no Lease, and releases the Instances
// of members that have left.
func continueRemovals(task planner, out planning.Removal) {
	for _, i := range slices.SortedFunc(planning.InstancesOf(out.Candidates), member.BySlot) {
		d := out.Candidates[i.Name]
		if task.Rendering.Component.NeedsLease(d) {
			continue
		}
		p := task.Rendering.Component.Prepare(d, zeroTime)
		recheckPreparation(task, d, zeroTime, p)
		if p.Ready && p.Stays && task.Group.GetComponentSpec().Suspended && !task.Rendering.MaySuspend.IsAllowed() && !task.Rendering.Component.IsNotServing(d.Instance) {
			// Other groups still need it, and it would stop without the Lease: it stops with the rest.
			p.Ready, p.Wait = false, step.Wait("group", member.WaitDeadline, v1alpha1.ReasonSuspended, fmt.Sprintf("Instance %s (%s) stays for now: %s", d.Instance.Name, d.Why, task.Rendering.MaySuspend.Reason()))
			task.Waiting[d.Instance.Name] = p.Wait.Message
		}
		continueRemoval(task.Result, p, d)
	}
}

// continueRemoval takes over how far a removal is.
func continueRemoval(plan *Result, p component.Preparation, d component.Disruption) {
	plan.Disrupted[d.Instance.Name] = d.Verb
	if p.Stays {
		// It comes back with the same data.
		plan.Disrupted[d.Instance.Name] = member.Restart
	}
	plan.Suspended[d.Instance.Name] = p.Suspend
	if !p.Ready {
		plan.Calls = append(plan.Calls, p.Calls...)
		plan.Outcome = step.Worst(plan.Outcome, p.Wait)
		return
	}
	if p.Stays {
		plan.Released[d.Instance.Name] = d.Instance.DeletionTimestamp != nil
		plan.Outcome = step.Worst(plan.Outcome, member.AwaitRecreation(d.Instance))
		return
	}
	plan.Drained[d.Instance.Name] = true
	if !member.IsDrained(d.Instance) {
		// It is reported first, and done when the report can be seen.
		plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonDraining, "the member of Instance "+d.Instance.Name+" has left"))
		return
	}
	if d.Instance.DeletionTimestamp == nil {
		plan.Deletes = append(plan.Deletes, d.Instance)
	} else {
		plan.Released[d.Instance.Name] = true
	}
	plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonDraining, "Instance "+d.Instance.Name+" is being deleted: its member has left"))
}

var zeroTime time.Time

// replaceDead deletes the Instance of a member that never comes back, one at a time, so
// that it is replaced. A member whose Instance a user has deleted may be waiting for
// exactly that.
func replaceDead(task planner, leaving planning.Removal) {
	if leaving.ScalesIn() || len(task.Deletes) > 0 {
		return
	}
	for _, i := range task.Snapshot.Instances {
		if i.DeletionTimestamp != nil || task.StopPermitted[i.Name] {
			continue // it is just being restarted
		}
		if why := task.Rendering.Component.ReasonDead(i); why.IsGiven() {
			task.Deletes = append(task.Deletes, i)
			recheckDead(task, i)
			task.Notes = append(task.Notes, fmt.Sprintf("replace Instance %s: %s", i.Name, why.Text()))
			task.Outcome = step.Worst(task.Outcome, step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonReplacing, fmt.Sprintf("Instance %s is replaced: %s", i.Name, why.Text())))
			return
		}
	}
}
