package group

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/scaling"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// members is what the steps of a plan for the members of a group share.
type members struct {
	task planning.Task
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
func planMembers(task planning.Task) error {
	m := &members{task: task}
	for _, run := range m.steps() {
		if err := run(); err != nil {
			return err
		}
	}
	return nil
}

func (m *members) suspended() bool { return m.task.Group.GetComponentSpec().Suspended }

// wanted is how many members there are to be.
func (m *members) wanted() int32 {
	return m.task.Group.GetReplicas() + m.task.Rendering.Extra + m.surge
}

// compare compares every Instance with what the spec asks for.
func (m *members) compare() error {
	var err error
	m.diffs, err = compareInstances(m.task)
	return err
}

// size decides how many members there are to be beyond spec.replicas, and who leaves.
func (m *members) size() error {
	m.task.Rendering.Extra += scaling.PlanReplacements(m.task.Group, m.task.Snapshot, m.task.Rendering)
	m.added, m.keepMark, m.rebalancing = scaling.PlanRebalance(m.task.Group, m.task.Snapshot, m.task.Rendering, m.diffs, m.task.Target.Hash)
	m.task.Rendering.Extra += m.added
	m.surge = scaling.PlanSurge(m.task, m.diffs)
	m.leaving = scaling.PlanRemoval(m.task.Group, m.task.Snapshot, m.task.Rendering, m.surge, m.task.Target.Hash)
	return nil
}

// disrupt chooses who is restarted or removed under the Lease, and carries on what has
// begun. No member is stopped by the Lease while the group is suspended.
func (m *members) disrupt() error {
	if m.suspended() {
		return nil
	}
	due := pendingDisruptions(m.task, m.diffs, m.leaving)
	o := disruption.PlanDisruptions(m.task, due, m.leaving)
	m.task.Outcome = step.Worst(m.task.Outcome, disruption.WithSingleRestartReason(m.task, o), m.leaving.Waiting)
	disruption.ExplainWaiting(m.task, due)
	return nil
}

// remove carries on the removals that need no Lease, and gives up a member that never
// comes back.
func (m *members) remove() error {
	disruption.ContinueRemovals(m.task, m.leaving)
	if !m.suspended() {
		disruption.ReplaceDead(m.task, m.leaving)
	}
	return nil
}

// suspend changes the members of a suspended group that have stopped, and releases the
// Lease for one that has.
func (m *members) suspend() error {
	if m.suspended() {
		updateSuspended(m.task.Plan, m.diffs)
		disruption.ReleaseWhileSuspended(m.task)
	}
	return nil
}

// change writes down what becomes of every Instance, and takes back what was prepared for
// those that are not disrupted any more.
func (m *members) change() error {
	surge := scaling.SurgeMembers(m.task.Group, m.task.Snapshot, m.task.Rendering, m.surge, m.leaving)
	for _, diff := range m.diffs {
		change := instanceChange(diff, m.task, m.leaving, surge)
		if by := diff.Live.Annotations[v1alpha1.AnnotationRebalance]; by != "" && m.keepMark {
			member.SetAnnotation(change.Desired, v1alpha1.AnnotationRebalance, by)
		}
		m.task.Instances = append(m.task.Instances, change)
		switch _, under := m.task.Disrupted[diff.Live.Name]; {
		case under:
		case member.PreparationStarted(diff.Live):
			m.task.Calls = append(m.task.Calls, m.task.Rendering.Component.UndoPreparation(diff.Live)...)
		default:
			m.task.Evictions = append(m.task.Evictions, m.task.Rendering.Component.UndoPreparation(diff.Live)...)
		}
	}
	return nil
}

// release gives back the Lease of a holder that is gone, unless another member takes it.
func (m *members) release() error {
	s := m.task.Snapshot
	if s.HolderLost && s.Lease.Holder.Kind == m.task.Group.GroupKind() && m.task.Lease.Take == nil && s.UnfinishedBatchMember(nil) == "" {
		m.task.Lease = planning.LeaseChange{Release: true, Why: "its holder is gone"}
		disruption.RecheckLostHolder(m.task)
	}
	return nil
}

// create fills slots, as many at once as the component allows. A suspended group fills
// only the slot for which the Lease is kept.
func (m *members) create() error {
	slots, surge := scaling.PlanSlots(m.task.Group, m.task.Snapshot, m.task.Rendering, m.surge)
	if m.suspended() {
		if slot, awaited := m.task.Snapshot.RecreatedSlot(m.task.Group); awaited && slices.Contains(slots, slot) {
			return disruption.PlanRecreated(m.task, slot)
		}
		return nil
	}
	all := slices.Concat(slots, surge)
	if len(all) == 0 {
		return nil
	}
	m.creating = fmt.Sprintf("creating %d of %d Instances", len(all), m.wanted())
	if !m.task.Rendering.Gate.Open {
		return nil
	}
	if m.task.Rendering.CreateLimit != nil {
		if limit, limited := m.task.Rendering.CreateLimit(); limit < len(all) {
			all, m.creating = all[:limit], m.creating+": "+limited
		}
	}
	return m.render(all, surge)
}

// render renders the Instances of slots, of which some are for a surge.
func (m *members) render(slots, surge []int32) error {
	old, err := rollout.CurrentTarget(m.task)
	if err != nil {
		return err
	}
	ahead := m.task.WithPlannedRevisions(m.task.Snapshot)
	for _, slot := range slots {
		desired, err := scaling.RenderNewInstance(m.task.With(ahead), old, slot, slices.Contains(surge, slot))
		if err != nil {
			return err
		}
		if m.added > 0 && scaling.RebalanceSurplus(m.task.Group, ahead.Instances) == nil {
			member.SetAnnotation(desired, v1alpha1.AnnotationRebalance, m.task.Rendering.Spread.By)
		}
		ahead.Instances = append(ahead.Instances, desired)
		m.task.Instances = append(m.task.Instances, planning.InstanceChange{Desired: desired, Rolls: old != nil && desired.Spec.Revision == m.task.Target.Hash})
		m.task.Notes = append(m.task.Notes, fmt.Sprintf("create Instance %s: %d of %d exist", desired.Name, len(m.task.Snapshot.Instances), m.wanted()))
	}
	return nil
}

// explain says why the group is not what its spec asks for.
func (m *members) explain() error {
	beside := step.Worst(scaling.VolumeOutcome(m.task.Group, m.task.Snapshot, m.task.Rendering), scaling.ReplacementOutcome(m.task.Group, m.task.Snapshot, m.task.Rendering), m.rebalancing)
	m.task.Outcome = mostImportant(groupOutcome(m.task, m.creating), m.task.Outcome, beside)
	if m.task.Outcome.Kind == step.KindDone && !m.suspended() {
		m.task.Outcome = m.missing()
	}
	return nil
}

// missing names an Instance that is being deleted and leaves the group with fewer than it
// is to have. The removal of its member says more, unless nothing is left of it to do.
func (m *members) missing() step.Outcome {
	var deleted *v1alpha1.Instance
	var there int32
	for _, i := range m.task.Snapshot.Instances {
		switch {
		case i.DeletionTimestamp == nil:
			there++
		case workload.IsOwned(m.task.Group, i):
			deleted = i
		}
	}
	if deleted == nil || there >= m.wanted() {
		return step.Done()
	}
	return member.AwaitRecreation(deleted)
}
