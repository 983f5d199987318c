package disruption

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// continueDisruption continues the disruption of the holder of the Lease. No other member
// of the group is disrupted meanwhile, except those that do not serve.
func continueDisruption(task planner, holder *v1alpha1.Instance, work []component.Disruption, leaving planning.Removal) step.Outcome {
	if len(task.Snapshot.Lease.Batch) > 0 {
		return continueBatch(task, holder, work, leaving)
	}
	at := slices.IndexFunc(work, func(d component.Disruption) bool { return d.Instance.Name == holder.Name })
	// What a removal has begun is undone before anything else begins: the annotation
	// reports that there is something.
	if at < 0 || work[at].Verb == member.Restart && member.Verb(holder.Annotations[v1alpha1.AnnotationDisruption]) == member.Remove {
		_, held := restartNotServing(task, work)
		return step.Worst(held, finishDisruption(task, holder, work, leaving))
	}
	d := work[at]
	task.Disrupted[holder.Name] = d.Verb // it counts for a canary
	restartNotServing(task, slices.Delete(slices.Clone(work), at, at+1))
	if task.Snapshot.Lease.Recreating != recreatingGroup(task.Group, d) {
		return keepLease(task, d)
	}
	if d.Verb == member.Restart && task.Rendering.Component.IsNotServing(holder) {
		task.PermitStop(holder)
		recheckNotServing(task, holder)
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s is being restarted: %s", holder.Name, d.Why))
	}
	p := task.Rendering.Component.Prepare(d, task.Snapshot.Lease.Since)
	if d.Verb == member.Remove && p.Ready {
		continueRemoval(task.Result, p, d)
		return step.Done()
	}
	safe, back := task.Rendering.Component.Allows(d), comesBack(task.Group, task.Snapshot, d)
	if !safe.IsAllowed() && back.IsAllowed() && member.IsStopPending(holder) {
		// By an earlier permission its pod may be stopped at any moment, so no other may.
		return step.Wait("PD", time.Second, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s keeps the Lease: its current restart must finish before the next disruption (%s): %s", holder.Name, d.Why, safe.Reason()))
	}
	if may := verdict.RequireAll(back, inTurn(task.Group, task.Snapshot, task.Rendering, d), safe); !may.IsAllowed() {
		return releaseUnsafe(task.Result, d, may.Reason())
	}
	if p.Ready {
		if may := task.Rendering.Component.AllowsNow(d); !may.IsAllowed() {
			return waitForTransient(task, d, may.Reason())
		}
	}
	task.Calls = append(task.Calls, p.Calls...)
	recheckPreparation(task, d, task.Snapshot.Lease.Since, p)
	if !p.Ready {
		return p.Wait
	}
	task.PermitStop(holder)
	task.Notes = append(task.Notes, fmt.Sprintf("restart Instance %s: %s", holder.Name, d.Why))
	if p.Wait.Kind != "" && p.Wait.Kind != step.KindDone {
		return p.Wait
	}
	return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s is being restarted: %s", holder.Name, d.Why))
}

// releaseUnsafe releases the Lease of a member that is not stopped after all: another member
// may have to be restarted first, to repair what makes it unsafe. What was prepared is undone
// as for every member that is not disrupted.
func releaseUnsafe(plan *Result, d component.Disruption, reason string) step.Outcome {
	delete(plan.Disrupted, d.Instance.Name)
	plan.Lease = planning.LeaseChange{Release: true, Why: reason}
	return step.Wait("PD", time.Second, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not disrupted (%s): %s", d.Instance.Name, d.Why, reason))
}

// waitForTransient keeps the Lease of a member that is ready to be stopped, until what is in the way has passed or
// has taken too long. To prepare it again would cause the same obstacle again. A member that may be stopped at
// any moment keeps it in any case.
func waitForTransient(task planner, d component.Disruption, reason string) step.Outcome {
	if !mayWaitLonger(task, d) && !member.IsStopPending(d.Instance) {
		return releaseUnsafe(task.Result, d, reason)
	}
	return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is ready to be stopped (%s), and waits: %s", d.Instance.Name, d.Why, reason))
}

// finishDisruption waits for a member that holds the Lease and has nothing left to be done
// to it, and releases the Lease. work is what is to be done to others, leaving are the
// members that are removed.
func finishDisruption(task planner, holder *v1alpha1.Instance, work []component.Disruption, leaving planning.Removal) step.Outcome {
	if _, leaves := leaving.Candidates[holder.Name]; leaves {
		return releaseLease(task.Result, work, holder, "it keeps draining without the Lease")
	}
	if holder.DeletionTimestamp != nil && !member.HasMemberFinalizer(holder) {
		if member.IsDrained(holder) {
			// Its pod may never finish stopping, and the member is no longer missed.
			return releaseLease(task.Result, work, holder, "its member has left")
		}
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonDeleting, "Instance "+holder.Name+" is being deleted")
	}
	switch verb := member.Verb(holder.Annotations[v1alpha1.AnnotationDisruption]); {
	case verb == "", verb == member.Evict && !member.IsStopPending(holder):
		// The annotation is written before anything is done. A user's eviction goes on.
		return releaseLease(task.Result, work, holder, "nothing has been done to it")
	case verb == member.Remove:
		return withdrawRemoval(task, holder, work)
	}
	task.Disrupted[holder.Name] = member.Restart
	stays := member.IsStopBlocked(holder)
	if !stays && (!member.IsReady(holder) && !member.IsClaimTerminating(holder) || holder.Status.Revision != holder.Spec.Revision || holder.Status.PodUID == holder.Spec.StopPod) {
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, "Instance "+holder.Name+" is being restarted")
	}
	p := task.Rendering.Component.Recover(holder, task.Snapshot.Lease)
	task.Calls = append(task.Calls, p.Calls...)
	if !p.Ready {
		return p.Wait
	}
	delete(task.Disrupted, holder.Name)
	recheckRecovery(task, holder, task.Snapshot.Lease)
	if stays {
		return releaseLease(task.Result, work, holder, "its pod is not stopped, because a claim of it is being deleted")
	}
	return releaseLease(task.Result, work, holder, "it serves again")
}

// withdrawRemoval ends a removal that is not wanted any more. Nothing has been stopped, so
// the Lease is released as soon as nothing of the removal is left in the database,
// whatever state the member is in. One that had left before is replaced.
func withdrawRemoval(task planner, holder *v1alpha1.Instance, work []component.Disruption) step.Outcome {
	if calls := task.Rendering.Component.UndoPreparation(holder); task.Rendering.DatabaseUnknown || len(calls) > 0 {
		task.Disrupted[holder.Name] = member.Remove
		task.Calls = append(task.Calls, calls...)
		return step.Wait("PD", member.WaitDeadline, v1alpha1.ReasonRecovering, fmt.Sprintf("the removal of Instance %s is being taken back", holder.Name))
	}
	if !task.Rendering.Component.ReasonDead(holder).IsGiven() {
		recheckWithdrawnRemoval(task, holder)
	}
	return releaseLease(task.Result, work, holder, "its removal has been taken back")
}

// releaseWhileSuspended releases the Lease for a member of a suspended group that has stopped, or whose Instance
// was deleted and created again without a pod. Others may be restarted meanwhile, and PD has to be when it is
// rebuilt. The annotation of the member stays and reports what was begun.
func releaseWhileSuspended(task planner) {
	i := observation.HolderOf(task.Snapshot)
	if task.Snapshot.AwaitsRecreation(task.Group) {
		if slot, ok := names.Slot(task.Group.GetName(), task.Snapshot.Lease.Holder.Instance); ok && task.Snapshot.RetiredSlots[slot] {
			task.Lease = planning.LeaseChange{Release: true, Why: "its holder's claim is retired; no replacement will be created"}
			return
		}
		i = task.Snapshot.Instance(task.Snapshot.Lease.Holder.Instance)
		if i != nil && i.Annotations[v1alpha1.AnnotationDisruption] == "" {
			// The annotation reports what is to be undone. If it was deleted too, and goes without
			// the annotation, the one that comes next gets it.
			task.Disrupted[i.Name] = member.Restart
			return
		}
	}
	if i != nil && i.Status.PodUID == "" && !task.Rendering.DatabaseUnknown && len(task.Rendering.Component.UndoPreparation(i)) == 0 {
		task.Lease = planning.LeaseChange{Release: true, Why: "its group is suspended"}
	}
}

// releaseLease releases the Lease. work is what is to be done to others.
func releaseLease(plan *Result, work []component.Disruption, holder *v1alpha1.Instance, why string) step.Outcome {
	plan.Lease = planning.LeaseChange{Release: true, Why: why}
	if len(work) > 0 {
		return step.Wait("Lease", member.WaitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is done; the next member follows", holder.Name))
	}
	return step.Done()
}
