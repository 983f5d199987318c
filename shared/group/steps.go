package group

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/scaling"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// members is what the steps of a plan for the members of a group share.
type members struct {
	plan      *planning.Plan
	group     v1alpha1.Group
	snapshot  observation.Snapshot
	rendering component.Rendering

	// diffs are the Instances that the group has a say in, by compare.
	diffs []planning.InstanceDiff
	// added is how many members there are to be so that another one may leave a fuller
	// place, keepMark that the one which was added keeps its annotation, and rebalancing
	// what is waited for; by size.
	added       int32
	keepMark    bool
	rebalancing step.Outcome
	// surge is how many there are to be so that none is missed in a roll, by size.
	surge int32
	// leaving are the members that leave, by size.
	leaving planning.Removal
	// creating says which Instances are being created; empty if none are. By create.
	creating string
}

// steps are those of a plan for the members of a group, in their order. Each uses what
// the ones before it have found out.
func (m *members) steps() []func() error {
	return []func() error{
		m.compare, // how does each Instance differ from the spec?
		m.size,    // how many members are there to be, and who leaves?
		m.disrupt, // who may be stopped now, and why do others wait?
		m.remove,  // who has left the database, or never comes back?
		m.suspend, // whose pod stops because the group is suspended?
		m.change,  // what is written into each Instance?
		m.release, // is the Lease free of a holder that is gone?
		m.create,  // which slots are filled?
		m.explain, // why is the group not what its spec asks for?
	}
}

// planMembers decides for every slot: create, keep, change in place, restart, remove, or
// say what is pending.
func planMembers(plan *planning.Plan, g v1alpha1.Group, s observation.Snapshot, r component.Rendering) error {
	m := &members{plan: plan, group: g, snapshot: s, rendering: r}
	for _, run := range m.steps() {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

func (m *members) suspended() bool { return m.group.GetComponentSpec().Suspended }

// wanted is how many members there are to be.
func (m *members) wanted() int32 { return m.group.GetReplicas() + m.rendering.Extra + m.surge }

// compare compares every Instance with what the spec asks for.
func (m *members) compare() error {
	var err error
	m.diffs, err = compareInstances(m.plan, m.group, m.snapshot, m.rendering)
	return err
}

// size decides how many members there are to be beyond spec.replicas, and who leaves.
func (m *members) size() error {
	m.rendering.Extra += scaling.PlanReplacements(m.group, m.snapshot, m.rendering)
	m.added, m.keepMark, m.rebalancing = scaling.PlanRebalance(m.group, m.snapshot, m.rendering, m.diffs, m.plan.Target.Hash)
	m.rendering.Extra += m.added
	m.surge = scaling.PlanSurge(m.plan, m.group, m.snapshot, m.rendering, m.diffs)
	m.leaving = scaling.PlanRemoval(m.group, m.snapshot, m.rendering, m.surge, m.plan.Target.Hash)
	return nil
}

// disrupt chooses who is restarted or removed under the Lease, and carries on what has
// begun. Nobody is stopped by the Lease while the group is suspended.
func (m *members) disrupt() error {
	if m.suspended() {
		return nil
	}
	due := pendingDisruptions(m.plan, m.rendering, m.diffs, m.leaving)
	o := disruption.PlanDisruptions(m.plan, m.group, m.snapshot, m.rendering, due, m.leaving)
	m.plan.Outcome = step.Worst(m.plan.Outcome, disruption.WithSingleRestartReason(m.plan, m.snapshot, o), m.leaving.Waiting)
	disruption.ExplainWaiting(m.plan, m.group, m.snapshot, m.rendering, due)
	return nil
}

// remove carries on the removals that need no Lease, and gives up a member that never
// comes back.
func (m *members) remove() error {
	disruption.ContinueRemovals(m.plan, m.rendering, m.leaving)
	if !m.suspended() {
		disruption.ReplaceDead(m.plan, m.snapshot, m.rendering, m.leaving)
	}
	return nil
}

// suspend changes the members of a suspended group that have stopped, and releases the
// Lease for one that has.
func (m *members) suspend() error {
	if m.suspended() {
		updateSuspended(m.plan, m.diffs)
		disruption.ReleaseWhileSuspended(m.plan, m.group, m.snapshot, m.rendering)
	}
	return nil
}

// change writes down what becomes of every Instance, and takes back what was prepared for
// those that are not disrupted any more.
func (m *members) change() error {
	surge := scaling.SurgeMembers(m.group, m.snapshot, m.rendering, m.surge, m.leaving)
	for _, diff := range m.diffs {
		change := instanceChange(diff, m.plan, m.group, m.rendering, m.leaving, surge)
		if by := diff.Live.Annotations[v1alpha1.AnnotationRebalance]; by != "" && m.keepMark {
			member.SetAnnotation(change.Desired, v1alpha1.AnnotationRebalance, by)
		}
		m.plan.Instances = append(m.plan.Instances, change)
		switch _, under := m.plan.Disrupted[diff.Live.Name]; {
		case under:
		case member.PreparationStarted(diff.Live):
			m.plan.Calls = append(m.plan.Calls, m.rendering.Component.UndoPreparation(diff.Live)...)
		default:
			m.plan.Evictions = append(m.plan.Evictions, m.rendering.Component.UndoPreparation(diff.Live)...)
		}
	}
	return nil
}

// release gives back the Lease of a holder that is gone, unless another member takes it.
func (m *members) release() error {
	s := m.snapshot
	if s.HolderLost && s.Lease.Holder.Kind == m.group.GroupKind() && m.plan.Lease.Take == nil && s.UnfinishedBatchMember(nil) == "" {
		m.plan.Lease = planning.LeaseChange{Release: true, Why: "its holder is gone"}
		disruption.RecheckLostHolder(m.plan, s)
	}
	return nil
}

// create fills slots, as many at once as the component allows. A suspended group fills
// only the slot for which the Lease is kept.
func (m *members) create() error {
	slots, surge := scaling.PlanSlots(m.group, m.snapshot, m.rendering, m.surge)
	if m.suspended() {
		if slot, awaited := m.snapshot.RecreatedSlot(m.group); awaited && slices.Contains(slots, slot) {
			return disruption.PlanRecreated(m.plan, m.group, m.rendering, slot)
		}
		return nil
	}
	all := slices.Concat(slots, surge)
	if len(all) == 0 {
		return nil
	}
	m.creating = fmt.Sprintf("creating %d of %d Instances", len(all), m.wanted())
	if !m.rendering.Gate.Open {
		return nil
	}
	if m.rendering.CreateLimit != nil {
		if limit, limited := m.rendering.CreateLimit(); limit < len(all) {
			all, m.creating = all[:limit], m.creating+": "+limited
		}
	}
	return m.render(all, surge)
}

// render renders the Instances of slots, of which some are for a surge.
func (m *members) render(slots, surge []int32) error {
	old, err := rollout.CurrentTarget(m.plan, m.group, m.snapshot)
	if err != nil {
		return err
	}
	ahead := m.plan.WithPlannedRevisions(m.snapshot)
	for _, slot := range slots {
		desired, err := scaling.RenderNewInstance(m.plan, m.group, ahead, m.rendering, old, slot, slices.Contains(surge, slot))
		if err != nil {
			return err
		}
		if m.added > 0 && scaling.RebalanceSurplus(m.group, ahead.Instances) == nil {
			member.SetAnnotation(desired, v1alpha1.AnnotationRebalance, m.rendering.Spread.By)
		}
		ahead.Instances = append(ahead.Instances, desired)
		m.plan.Instances = append(m.plan.Instances, planning.InstanceChange{Desired: desired, Rolls: old != nil && desired.Spec.Revision == m.plan.Target.Hash})
		m.plan.Notes = append(m.plan.Notes, fmt.Sprintf("create Instance %s: %d of %d exist", desired.Name, len(m.snapshot.Instances), m.wanted()))
	}
	return nil
}

// explain says why the group is not what its spec asks for.
func (m *members) explain() error {
	beside := step.Worst(scaling.VolumeOutcome(m.group, m.snapshot, m.rendering), scaling.ReplacementOutcome(m.group, m.snapshot, m.rendering), m.rebalancing)
	m.plan.Outcome = mostImportant(groupOutcome(m.plan, m.group, m.snapshot, m.rendering, m.creating), m.plan.Outcome, beside)
	return nil
}
