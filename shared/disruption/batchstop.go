package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// stopBatch stops those of the batch that are due, all at once, when all are ready for it.
// back says whether those that have been stopped are back.
func stopBatch(plan *planning.Plan, g v1alpha1.Group, s observation.Snapshot, r component.Rendering, holder *v1alpha1.Instance, all []*v1alpha1.Instance, due []component.Disruption, back step.Outcome) step.Outcome {
	t, able := r.Component.(component.BatchRestarter)
	if !able || holder.DeletionTimestamp != nil {
		return shrinkBatch(plan, s, r, holder, due, back, "Instance "+holder.Name+" was deleted")
	}
	for _, d := range due {
		if reason := whyNotComingBack(g, s, d); reason != "" {
			return shrinkBatch(plan, s, r, holder, due, back, reason)
		}
	}
	if reason := whyOutOfTurn(g, s, r, due...); reason != "" {
		return abandonBatch(plan, s, r, holder, all, due, back, reason)
	}
	if reason := t.WhyBatchUnsafe(all); reason != "" {
		return shrinkBatch(plan, s, r, holder, due, back, reason)
	}
	waits, ready := step.Done(), true
	for _, d := range due {
		plan.Disrupted[d.Instance.Name] = member.Restart
		if r.Component.NotServing(d.Instance) {
			plan.PermitStop(d.Instance)
			recheckNotServing(plan, r, d.Instance)
			continue
		}
		p := r.Component.Prepare(d, s.Lease.Since)
		plan.Calls = append(plan.Calls, p.Calls...)
		if !p.Ready && ready || waits.Kind == step.KindDone && p.Wait.Kind != "" {
			waits = p.Wait
		}
		ready = ready && p.Ready
	}
	if !ready {
		return waits
	}
	if reason := t.WhyBatchNotYet(all); reason != "" {
		if !mayWaitLonger(plan, s, due[0]) {
			return shrinkBatch(plan, s, r, holder, due, back, reason)
		}
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s and its batch are ready to be stopped (%s), and wait: %s", holder.Name, due[0].Why, reason))
	}
	switch reason, known := askAboutBatch(plan, s, t, all); {
	case !known:
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is being prepared", holder.Name))
	case reason != "":
		return shrinkBatch(plan, s, r, holder, due, back, reason)
	}
	var named []string
	for _, d := range due {
		plan.PermitStop(d.Instance)
		named = append(named, d.Instance.Name)
	}
	recheckBatch(plan, r, all, due, s.Lease.Since)
	plan.Notes = append(plan.Notes, fmt.Sprintf("restart Instances %s together: %s", strings.Join(named, ", "), due[0].Why))
	if waits.Kind != step.KindDone {
		return waits
	}
	return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instances %s are being restarted together: %s", strings.Join(named, ", "), due[0].Why))
}

// abandonBatch releases the Lease if none has been stopped yet. Otherwise the holder goes
// on alone.
func abandonBatch(plan *planning.Plan, s observation.Snapshot, r component.Rendering, holder *v1alpha1.Instance, all []*v1alpha1.Instance, due []component.Disruption, back step.Outcome, why string) step.Outcome {
	o := shrinkBatch(plan, s, r, holder, due, back, why)
	notServing := func(d component.Disruption) bool { return r.Component.NotServing(d.Instance) }
	if len(due) < len(all) || back.Kind != step.KindDone || slices.ContainsFunc(due, notServing) {
		return o
	}
	delete(plan.Disrupted, holder.Name)
	plan.Lease = planning.LeaseChange{Release: true, Why: why}
	return step.Wait("PD", time.Second, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s and its batch are not disrupted (%s): %s", holder.Name, due[0].Why, why))
}

// shrinkBatch lets the holder go on alone, once those that have been stopped are back. The
// others are not stopped for now.
func shrinkBatch(plan *planning.Plan, s observation.Snapshot, r component.Rendering, holder *v1alpha1.Instance, due []component.Disruption, back step.Outcome, why string) step.Outcome {
	plan.Calls = slices.DeleteFunc(plan.Calls, func(c component.Call) bool {
		return slices.ContainsFunc(due, func(d component.Disruption) bool { return d.Instance.Name == c.Instance })
	})
	for _, d := range due {
		delete(plan.Disrupted, d.Instance.Name)
		if d.Instance.Name == holder.Name {
			plan.Disrupted[holder.Name] = member.Restart
		}
		if r.Component.NotServing(d.Instance) {
			// It does not serve, and is restarted in any case.
			plan.Disrupted[d.Instance.Name] = member.Restart
			plan.PermitStop(d.Instance)
			recheckNotServing(plan, r, d.Instance)
		}
	}
	if back.Kind != step.KindDone {
		return back
	}
	d := component.Disruption{Instance: holder, Verb: member.Restart, Why: why}
	plan.Lease = planning.LeaseChange{Take: &d, Leaders: s.Lease.Leaders, Since: s.Lease.Since, Recreating: s.Lease.Recreating, BatchBlocked: why, Why: why}
	return step.Wait("Lease", member.WaitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s goes on alone: %s", holder.Name, why))
}
