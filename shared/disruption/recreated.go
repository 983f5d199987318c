package disruption

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// recreatingGroup is the group that creates a member's Instance again when it has gone;
// empty if none does.
//
// A member whose Instance is deleted and which is to stay is restarted like any other. The
// permission to stop is that the Instance may go, and another Instance of its name comes
// back. The Lease records that before the Instance goes. It belongs to the new Instance
// from when that carries the annotation of the restart until it has recovered.
func recreatingGroup(g v1alpha1.Group, d component.Disruption) string {
	if d.Verb == member.Restart && d.Instance.DeletionTimestamp != nil {
		return g.GetName()
	}
	return ""
}

// resumeForRecreated hands the Lease to the Instance that was created in its holder's
// place. The annotation comes first: by it the store of the new Instance may lead again.
func resumeForRecreated(task planner) step.Outcome {
	recreated := task.Snapshot.Instance(task.Snapshot.Lease.Holder.Instance)
	if slot, _ := task.Snapshot.RecreatedSlot(task.Group); task.Snapshot.RetiredSlots[slot] {
		task.Lease = planning.LeaseChange{Release: true, Why: "its claim is retired; no replacement will be created"}
		return step.Done()
	}
	if recreated == nil || recreated.DeletionTimestamp != nil && !member.HasMemberFinalizer(recreated) {
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s was deleted and is being recreated", task.Snapshot.Lease.Holder.Instance))
	}
	d := component.Disruption{Instance: recreated, Verb: member.Restart, Why: planning.ReasonDeleted, Revision: task.Target.Hash}
	task.Disrupted[recreated.Name] = member.Restart
	if !member.HasStartedPreparation(recreated) {
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s has been recreated", recreated.Name))
	}
	return keepLease(task, d)
}

// keepLease has the Lease record what is done now and to which member, without releasing
// it in between.
func keepLease(task planner, d component.Disruption) step.Outcome {
	task.Lease = planning.LeaseChange{Take: &d, Leaders: task.Snapshot.Lease.Leaders, Since: task.Snapshot.Lease.Since, Batch: task.Snapshot.Lease.Batch, BatchBlocked: task.Snapshot.Lease.BatchBlocked, Recreating: recreatingGroup(task.Group, d), Why: d.Why}
	return step.Wait("Lease", member.WaitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s keeps the Lease %s: %s", d.Instance.Name, lease.Name(task.Group.PDGroupName()), d.Why))
}

// explainWaiting records why deleted members that need the Lease have not been released
// yet.
func explainWaiting(task planner, work []component.Disruption) {
	for _, d := range work {
		i := d.Instance
		if i.DeletionTimestamp == nil || task.Released[i.Name] {
			continue
		}
		o := checkStart(task, d)
		switch {
		case task.Snapshot.Lease.IsHeldBy(i):
			o = task.Rendering.Component.Prepare(d, task.Snapshot.Lease.Since).Wait
		case o.Kind == step.KindDone:
			o = checkLease(task.Group, task.Snapshot, d)
		}
		if o.Message == "" {
			o.Message = fmt.Sprintf("Instance %s is next (%s)", i.Name, d.Why)
		}
		task.Waiting[i.Name] = o.Message
	}
}
