package group

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/disruption"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/scaling"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// planMembers decides for every slot: create, keep, change in place, restart, remove, or
// say what is pending. Each step decides from its parameters alone, and returns what it has
// decided. Only change writes into what it gets: the Instances of the diffs become what is
// applied, and are not copied for it.
func planMembers(in planning.Inputs) (planning.Plan, error) {
	diffs, err := compareInstances(in) // how does each Instance differ from the spec?
	if err != nil {
		return planning.Plan{}, err
	}
	members := planMembership(in, diffs) // how many members are there to be, and who leaves?
	in.Rendering.Extra = members.extra
	stops := disruption.PlanDisruptions(in, pendingDisruptions(in, diffs, members.leaving), members.leaving) // who may be stopped now, and why do others wait?
	stops = disruption.PlanRemovals(in, members.leaving, stops)                                              // who has left the database, or never comes back?
	stops = disruption.PlanSuspension(in, diffs, stops)                                                      // whose pod stops because the group is suspended?
	stops = disruption.PlanRelease(in, stops)                                                                // is the Lease free of a holder that is gone?
	changed := planChanges(in, diffs, members, stops)                                                        // what is written into each Instance?
	created, err := planCreations(in, diffs, members, stops)                                                 // which slots are filled?
	if err != nil {
		return planning.Plan{}, err
	}
	outcome := explainOutcome(in, members, stops, changed, created) // why is the group not what its spec asks for?
	return assemblePlan(diffs, stops, changed, created, outcome), nil
}

// membership is how many members there are to be, and who leaves.
type membership struct {
	// extra is how many there are to be beyond spec.replicas: in place of others that come
	// back or are replaced, and the added one.
	extra int32
	// added is how many there are to be so that another one may leave a fuller place,
	// keepMark that the one which was added keeps its annotation, and rebalancing what is
	// waited for.
	added       int32
	keepMark    bool
	rebalancing step.Outcome
	// surge is how many there are to be beyond all these so that none is missed in a roll.
	surge int32
	// leaving are the members that leave.
	leaving planning.Removal
}

// desiredMembers is how many members there are to be.
func (m membership) desiredMembers(g v1alpha1.Group) int32 {
	return g.GetReplicas() + m.extra + m.surge
}

// planMembership decides how many members there are to be beyond spec.replicas, and who leaves.
func planMembership(in planning.Inputs, diffs []planning.InstanceDiff) membership {
	var m membership
	g, s := in.Group, in.Snapshot
	in.Rendering.Extra += scaling.PlanReplacements(g, s, in.Rendering)
	m.added, m.keepMark, m.rebalancing = scaling.PlanRebalance(g, s, in.Rendering, diffs, in.Target.Hash)
	in.Rendering.Extra += m.added
	m.extra = in.Rendering.Extra
	m.surge = scaling.PlanSurge(in, diffs)
	m.leaving = scaling.PlanRemoval(g, s, in.Rendering, m.surge, in.Target.Hash)
	return m
}

// changes are what becomes of the Instances that there are.
type changes struct {
	planning.LeaderEvictions

	instances []planning.InstanceChange
	// calls and rechecks undo what was prepared for members that are not disrupted any
	// more.
	calls    []component.Call
	rechecks []planning.Recheck
	outcome  step.Outcome
	notes    []string
}

// planChanges decides what is written into every Instance, and undoes what was prepared for
// those that are not disrupted any more.
func planChanges(in planning.Inputs, diffs []planning.InstanceDiff, m membership, stops disruption.Result) changes {
	out := changes{LeaderEvictions: planning.LeaderEvictions{EvictionOutcome: step.Done()}, outcome: step.Done()}
	surge := scaling.SurgeMembers(in.Group, in.Snapshot, in.Rendering, m.surge, m.leaving)
	for _, diff := range diffs {
		c := out.instanceChange(in, diff, m.leaving, stops)
		if surge[diff.Live.Name] {
			member.SetAnnotation(c.Desired, v1alpha1.AnnotationSurge, member.SurgeValue)
		}
		if by := diff.Live.Annotations[v1alpha1.AnnotationRebalance]; by != "" && m.keepMark {
			member.SetAnnotation(c.Desired, v1alpha1.AnnotationRebalance, by)
		}
		out.instances = append(out.instances, c)
		switch _, under := stops.Disrupted[diff.Live.Name]; {
		case under:
		case member.HasStartedPreparation(diff.Live):
			out.calls = append(out.calls, in.Rendering.Component.UndoPreparation(diff.Live)...)
		default:
			out.Evictions = append(out.Evictions, in.Rendering.Component.UndoPreparation(diff.Live)...)
		}
	}
	return out
}

// creations are the Instances that are created.
type creations struct {
	instances []planning.InstanceChange
	// progress says which are being created; empty if none are.
	progress string
	outcome  step.Outcome
	notes    []string
}

// planCreations fills slots, as many at once as the component allows. A suspended group fills
// only the slot for which the Lease is kept.
func planCreations(in planning.Inputs, diffs []planning.InstanceDiff, m membership, stops disruption.Result) (creations, error) {
	out := creations{outcome: step.Done()}
	slots, surge := scaling.PlanSlots(in.Group, in.Snapshot, in.Rendering, m.surge)
	if in.Group.GetComponentSpec().Suspended {
		if slot, awaited := in.Snapshot.RecreatedSlot(in.Group); awaited && slices.Contains(slots, slot) {
			return createWhileSuspended(in, slot)
		}
		return out, nil
	}
	all := slices.Concat(slots, surge)
	if len(all) == 0 {
		return out, nil
	}
	out.progress = fmt.Sprintf("creating %d of %d Instances", len(all), m.desiredMembers(in.Group))
	if !in.Rendering.Gate.Open {
		return out, nil
	}
	if in.Rendering.CreateLimit != nil {
		if limit, limited := in.Rendering.CreateLimit(); limit < len(all) {
			all, out.progress = all[:limit], out.progress+": "+limited
		}
	}
	old, err := rollout.CurrentTarget(in)
	if err != nil {
		return out, err
	}
	applying := slices.ContainsFunc(diffs, func(d planning.InstanceDiff) bool { return d.ApplyingConfig })
	ahead := in
	ahead.Snapshot = stops.WithPlannedRevisions(in.Snapshot, in.Target.Hash)
	for _, slot := range all {
		desired, err := scaling.RenderNewInstance(ahead, old, slot, slices.Contains(surge, slot), applying)
		if err != nil {
			return out, err
		}
		if m.added > 0 && scaling.RebalanceSurplus(in.Group, ahead.Snapshot.Instances) == nil {
			member.SetAnnotation(desired, v1alpha1.AnnotationRebalance, in.Rendering.Spread.By)
		}
		ahead.Snapshot.Instances = append(ahead.Snapshot.Instances, desired)
		out.instances = append(out.instances, planning.InstanceChange{Desired: desired, Rolls: old != nil && desired.Spec.Revision == in.Target.Hash})
		out.notes = append(out.notes, fmt.Sprintf("create Instance %s: %d of %d exist", desired.Name, len(in.Snapshot.Instances), m.desiredMembers(in.Group)))
	}
	return out, nil
}

// createWhileSuspended creates the Instance in place of a deleted one although its group is
// suspended. It has no pod until the group is resumed, and the cluster does not wait for
// it. Without it the slot would be forgotten with the Lease.
func createWhileSuspended(in planning.Inputs, slot int32) (creations, error) {
	recreated, err := component.NewInstance(in.Group, in.Rendering, in.Target, slot)
	if err != nil {
		return creations{}, err
	}
	return creations{
		instances: []planning.InstanceChange{{Desired: recreated}},
		outcome:   step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonCreating, fmt.Sprintf("Instance %s was deleted and is being recreated", recreated.Name)),
		notes:     []string{fmt.Sprintf("create Instance %s, which was deleted and is suspended", recreated.Name)},
	}, nil
}

// explainOutcome says why the group is not what its spec asks for.
func explainOutcome(in planning.Inputs, m membership, stops disruption.Result, changed changes, created creations) step.Outcome {
	pending := step.Worst(stops.Outcome, changed.outcome, created.outcome)
	beside := step.Worst(scaling.VolumeOutcome(in.Group, in.Snapshot, in.Rendering), scaling.ReplacementOutcome(in.Group, in.Snapshot, in.Rendering), m.rebalancing)
	outcome := mostImportant(groupOutcome(in, stops, created.progress), pending, beside)
	if outcome.Kind == step.KindDone && !in.Group.GetComponentSpec().Suspended {
		return awaitDeletedInstance(in, m)
	}
	return outcome
}

// awaitDeletedInstance names an Instance that is being deleted and leaves the group with fewer than it
// is to have. The removal of its member says more, unless nothing is left of it to do.
func awaitDeletedInstance(in planning.Inputs, m membership) step.Outcome {
	var deleted *v1alpha1.Instance
	var there int32
	for _, i := range in.Snapshot.Instances {
		switch {
		case i.DeletionTimestamp == nil:
			there++
		case workload.IsOwned(in.Group, i):
			deleted = i
		}
	}
	if deleted == nil || there >= m.desiredMembers(in.Group) {
		return step.Done()
	}
	return member.AwaitRecreation(deleted)
}

// assemblePlan puts what the steps have decided into a plan.
func assemblePlan(diffs []planning.InstanceDiff, stops disruption.Result, changed changes, created creations, outcome step.Outcome) planning.Plan {
	plan := planning.Plan{
		Disruptions: stops.Disruptions, LeaderEvictions: changed.LeaderEvictions, Outcome: outcome,
		Instances:     slices.Concat(changed.instances, created.instances),
		ConfigChanges: planning.ConfigChanges{ConfigOutcome: step.Done()},
	}
	plan.Calls = slices.Concat(stops.Calls, changed.calls)
	plan.Rechecks = slices.Concat(stops.Rechecks, changed.rechecks)
	for _, diff := range diffs {
		plan.ConfigOutcome = step.Worst(plan.ConfigOutcome, diff.ConfigOutcome)
		if diff.ConfigUpdate != nil {
			plan.ConfigUpdates = append(plan.ConfigUpdates, *diff.ConfigUpdate)
		}
		plan.Notes = append(plan.Notes, diff.Notes...)
	}
	plan.Notes = slices.Concat(plan.Notes, stops.Notes, changed.notes, created.notes)
	return plan
}
