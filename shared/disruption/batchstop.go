package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// batch is a batch under way.
type batch struct {
	// holder of the Lease, and all members of the batch, the holder among them.
	holder *v1alpha1.Instance
	all    []*v1alpha1.Instance
	// due are those that are still to be stopped.
	due []component.Disruption
	// back says whether those that have been stopped are back.
	back step.Outcome
}

// stopBatch stops those of the batch that are due, all at once, when all are ready for it.
func stopBatch(task planner, b batch) step.Outcome {
	holder, due := b.holder, b.due
	t, able := task.Rendering.Component.(component.BatchRestarter)
	if !able || holder.DeletionTimestamp != nil {
		return shrinkBatch(task, b, "Instance "+holder.Name+" was deleted")
	}
	if may := inTurn(task.Group, task.Snapshot, task.Rendering, due...); !may.IsAllowed() {
		return abandonBatch(task, b, may.Reason())
	}
	for _, d := range due {
		if may := comesBack(task.Group, task.Snapshot, d); !may.IsAllowed() {
			return shrinkBatch(task, b, may.Reason())
		}
	}
	if may := t.AllowsBatch(b.all); !may.IsAllowed() {
		return shrinkBatch(task, b, may.Reason())
	}
	waits, ready := step.Done(), true
	for _, d := range due {
		task.Disrupted[d.Instance.Name] = member.Restart
		if task.Rendering.Component.IsNotServing(d.Instance) {
			task.PermitStop(d.Instance)
			recheckNotServing(task, d.Instance)
			continue
		}
		p := task.Rendering.Component.Prepare(d, task.Snapshot.Lease.Since)
		task.Calls = append(task.Calls, p.Calls...)
		if !p.Ready && ready || waits.Kind == step.KindDone && p.Wait.Kind != "" {
			waits = p.Wait
		}
		ready = ready && p.Ready
	}
	if !ready {
		return waits
	}
	if may := t.AllowsBatchNow(b.all); !may.IsAllowed() {
		if !mayWaitLonger(task, due[0]) {
			return shrinkBatch(task, b, may.Reason())
		}
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s and its batch are ready to be stopped (%s), and wait: %s", holder.Name, due[0].Why, may.Reason()))
	}
	switch may, known := askAboutBatch(task, t, b.all); {
	case !known:
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is being prepared", holder.Name))
	case !may.IsAllowed():
		return shrinkBatch(task, b, may.Reason())
	}
	var named []string
	for _, d := range due {
		task.PermitStop(d.Instance)
		named = append(named, d.Instance.Name)
	}
	recheckBatch(task, b.all, due, task.Snapshot.Lease.Since)
	task.Notes = append(task.Notes, fmt.Sprintf("restart Instances %s together: %s", strings.Join(named, ", "), due[0].Why))
	if waits.Kind != step.KindDone {
		return waits
	}
	return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instances %s are being restarted together: %s", strings.Join(named, ", "), due[0].Why))
}

// abandonBatch releases the Lease if none has been stopped yet. Otherwise the holder goes
// on alone.
func abandonBatch(task planner, b batch, why string) step.Outcome {
	o := shrinkBatch(task, b, why)
	notServing := func(d component.Disruption) bool { return task.Rendering.Component.IsNotServing(d.Instance) }
	if len(b.due) < len(b.all) || b.back.Kind != step.KindDone || slices.ContainsFunc(b.due, notServing) {
		return o
	}
	delete(task.Disrupted, b.holder.Name)
	task.Lease = planning.LeaseChange{Release: true, Why: why}
	return step.Wait("PD", time.Second, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s and its batch are not disrupted (%s): %s", b.holder.Name, b.due[0].Why, why))
}

// shrinkBatch lets the holder go on alone, once those that have been stopped are back. The
// others are not stopped for now.
func shrinkBatch(task planner, b batch, why string) step.Outcome {
	task.Calls = slices.DeleteFunc(task.Calls, func(c component.Call) bool {
		return slices.ContainsFunc(b.due, func(d component.Disruption) bool { return d.Instance.Name == c.Instance })
	})
	for _, d := range b.due {
		delete(task.Disrupted, d.Instance.Name)
		if d.Instance.Name == b.holder.Name {
			task.Disrupted[b.holder.Name] = member.Restart
		}
		if task.Rendering.Component.IsNotServing(d.Instance) {
			// It does not serve, and is restarted in any case.
			task.Disrupted[d.Instance.Name] = member.Restart
			task.PermitStop(d.Instance)
			recheckNotServing(task, d.Instance)
		}
	}
	if b.back.Kind != step.KindDone {
		return b.back
	}
	d := component.Disruption{Instance: b.holder, Verb: member.Restart, Why: why}
	task.Lease = planning.LeaseChange{Take: &d, Leaders: task.Snapshot.Lease.Leaders, Since: task.Snapshot.Lease.Since, Recreating: task.Snapshot.Lease.Recreating, BatchBlocked: why, Why: why}
	return step.Wait("Lease", member.WaitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s goes on alone: %s", b.holder.Name, why))
}
