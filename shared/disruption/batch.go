package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// askAboutBatch says whether members may be stopped at the same time, by their regions. If PD
// was not asked about exactly these, the plan asks and goes no further.
func askAboutBatch(task planner, t component.BatchRestarter, all []*v1alpha1.Instance) (may verdict.Verdict, known bool) {
	q := t.BatchQuestion(all)
	if task.Snapshot.Answer == nil || !slices.Equal(task.Snapshot.Answer.Stores, q.Stores) {
		task.Question = &q
		return verdict.Verdict{}, false
	}
	return t.AllowsByRegions(*task.Snapshot.Answer), true
}

// chooseBatch chooses the members that are restarted together with the one that is next.
// If there are none, alone says why; wait says what is waited for first.
func chooseBatch(task planner, first component.Disruption, work []component.Disruption) (with []lease.BatchMember, alone verdict.Reason, wait step.Outcome) {
	t, able := task.Rendering.Component.(component.BatchRestarter)
	if !able || !canJoinBatch(task.Snapshot, first) {
		return nil, verdict.Reason{}, step.Done()
	}
	var others []*v1alpha1.Instance
	for _, d := range work {
		if d.Instance.Name != first.Instance.Name && canJoinBatch(task.Snapshot, d) && checkStart(task, d).Kind == step.KindDone {
			others = append(others, d.Instance)
		}
	}
	chosen, alone := t.ChooseBatch(first.Instance, others)
	chosen = limitToCanary(task.Group, task.plannedSnapshot(), first, chosen)
	if len(chosen) == 0 {
		return nil, alone, step.Done()
	}
	all := append([]*v1alpha1.Instance{first.Instance}, chosen...)
	if may := t.AllowsBatch(all); !may.IsAllowed() {
		return nil, may.WhyNot(), step.Done()
	}
	if may := t.AllowsBatchNow(all); !may.IsAllowed() {
		if !mayWaitLonger(task, first) {
			return nil, may.WhyNot(), step.Done()
		}
		return nil, verdict.Reason{}, step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is next (%s), and waits: %s", first.Instance.Name, first.Why, may.Reason()))
	}
	switch may, known := askAboutBatch(task, t, all); {
	case !known:
		return nil, verdict.Reason{}, step.Wait("PD", unsafeDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is next: %s", first.Instance.Name, first.Why))
	case !may.IsAllowed():
		return nil, may.WhyNot(), step.Done()
	}
	for _, i := range chosen {
		with = append(with, lease.BatchMember{Instance: i.Name, Leaders: task.Rendering.Component.LeaderCount(i)})
	}
	return with, verdict.Reason{}, step.Done()
}

// canJoinBatch reports whether a disruption may be part of a batch: a restart that keeps
// its Instance and its node.
func canJoinBatch(s observation.Snapshot, d component.Disruption) bool {
	moves := s.Cordoned[d.Instance.Status.NodeName] && d.Instance.Spec.Revision == d.Revision
	return d.Verb == member.Restart && d.Instance.DeletionTimestamp == nil && !moves
}

// limitToCanary leaves out members that would get a new revision beyond what
// spec.disruption.updateAtMost allows.
func limitToCanary(g v1alpha1.Group, s observation.Snapshot, first component.Disruption, chosen []*v1alpha1.Instance) []*v1alpha1.Instance {
	if !rollout.IsCanaryLimited(g, first.Revision) {
		return chosen
	}
	left := *g.GetComponentSpec().Disruption.UpdateAtMost - rollout.CountUpdated(s, first.Revision)
	fits := func(i *v1alpha1.Instance) bool {
		if i.Spec.Revision == first.Revision {
			return true
		}
		left--
		return left >= 0
	}
	fits(first.Instance)
	return slices.DeleteFunc(slices.Clone(chosen), func(i *v1alpha1.Instance) bool { return !fits(i) })
}

// continueBatch continues the restart of the holder of the Lease and its batch until all
// serve again.
func continueBatch(task planner, holder *v1alpha1.Instance, work []component.Disruption, leaving planning.Removal) step.Outcome {
	var due, others []component.Disruption
	for _, d := range work {
		if task.Snapshot.Lease.Covers(d.Instance) && d.Verb == member.Restart && d.Instance.DeletionTimestamp == nil {
			due = append(due, d)
		} else {
			others = append(others, d)
		}
	}
	for _, d := range due {
		task.Disrupted[d.Instance.Name] = member.Restart // they count for a canary
	}
	_, held := restartNotServing(task, slices.DeleteFunc(others, func(d component.Disruption) bool { return task.Snapshot.Lease.Covers(d.Instance) }))
	all := slices.DeleteFunc(slices.Clone(task.Snapshot.Instances), func(i *v1alpha1.Instance) bool { return !task.Snapshot.Lease.Covers(i) })
	back := awaitReturn(task, all, due, leaving)
	if lost := releaseHolder(task, holder, due); lost.Kind != step.KindDone {
		return step.Worst(held, lost)
	}
	if len(due) > 0 {
		return step.Worst(held, stopBatch(task, batch{holder: holder, all: all, due: due, back: back}))
	}
	if back.Kind != step.KindDone {
		return step.Worst(held, back)
	}
	for _, i := range all {
		if _, under := task.Disrupted[i.Name]; under {
			delete(task.Disrupted, i.Name)
			recheckRecovery(task, i, task.Snapshot.Lease.ForMember(i))
		}
	}
	return step.Worst(held, releaseLease(task.Result, work, holder, "it and its batch serve again"))
}

// releaseHolder lets the Instance of a holder go that was deleted and does not serve, so that it is created again,
// whether or not the others of its batch are back. The Lease records that first, and stays with the Instance that
// is created. No other member stops meanwhile.
func releaseHolder(task planner, holder *v1alpha1.Instance, due []component.Disruption) step.Outcome {
	if holder.DeletionTimestamp == nil || !member.HasMemberFinalizer(holder) || !task.Rendering.Component.RestartsWhenDeleted(holder) || !task.Rendering.Component.IsNotServing(holder) {
		return step.Done()
	}
	for _, d := range due {
		task.Disrupted[d.Instance.Name] = member.Restart
		if task.Rendering.Component.IsNotServing(d.Instance) {
			task.PermitStop(d.Instance)
			recheckNotServing(task, d.Instance)
		}
	}
	d := component.Disruption{Instance: holder, Verb: member.Restart, Why: planning.ReasonDeleted, Revision: task.Target.Hash}
	task.Disrupted[holder.Name] = member.Restart
	if task.Snapshot.Lease.Recreating != recreatingGroup(task.Group, d) {
		return keepLease(task, d)
	}
	task.PermitStop(holder)
	recheckNotServing(task, holder)
	return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s was deleted and is being recreated", holder.Name))
}

// awaitReturn waits for those of all that have been stopped and are not due any more.
func awaitReturn(task planner, all []*v1alpha1.Instance, due []component.Disruption, leaving planning.Removal) step.Outcome {
	worst := step.Done()
	wait := func(o step.Outcome) {
		if worst.Kind == step.KindDone {
			worst = o
		}
	}
	for _, c := range task.Snapshot.Lease.Batch {
		// A member whose Instance has gone comes back under its name, or leaves. PD may
		// call its store Up for a while.
		up := func(st pd.Store) bool { return st.State == pd.StateUp && strings.HasPrefix(st.Address, c.Instance+".") }
		if task.Snapshot.Instance(c.Instance) == nil && slices.ContainsFunc(task.Snapshot.PD.Stores, up) {
			wait(step.Wait("PD", time.Second, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s has gone, and PD still takes its store for Up", c.Instance)))
		}
	}
	for _, i := range all {
		_, leaves := leaving.Candidates[i.Name]
		if leaves || slices.ContainsFunc(due, func(d component.Disruption) bool { return d.Instance.Name == i.Name }) {
			continue
		}
		here := member.HasRestarted(i)
		if !member.HasStartedPreparation(i) && here {
			if isRecreatedMember(task.Snapshot, task.Rendering, i) {
				// The annotation comes first: by it the store may lead again.
				task.Disrupted[i.Name] = member.Restart
				wait(step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRecovering, "Instance "+i.Name+" has been recreated"))
			}
			continue // nothing has been done to it
		}
		task.Disrupted[i.Name] = member.Restart
		if !here {
			wait(step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRestarting, "Instance "+i.Name+" is being restarted"))
			continue
		}
		p := task.Rendering.Component.Recover(i, task.Snapshot.Lease.ForMember(i))
		task.Calls = append(task.Calls, p.Calls...)
		if !p.Ready {
			wait(p.Wait)
		}
	}
	return worst
}

// isRecreatedMember reports whether something was done to the member of an Instance before
// the Instance was created. Creation times are in full seconds.
func isRecreatedMember(s observation.Snapshot, r component.Rendering, i *v1alpha1.Instance) bool {
	recreated := i.DeepCopy()
	delete(recreated.Annotations, v1alpha1.AnnotationEvictLeaders)
	member.SetAnnotation(recreated, v1alpha1.AnnotationDisruption, string(member.Restart))
	return !i.CreationTimestamp.Time.Before(s.Lease.Since.Truncate(time.Second)) && len(r.Component.UndoPreparation(recreated)) > 0
}

// withSingleRestartReason adds to an outcome why the holder of the Lease is restarted
// alone although its group asks for batches.
func withSingleRestartReason(task planner, o step.Outcome) step.Outcome {
	alone := cmp.Or(task.Lease.BatchBlocked, task.Snapshot.Lease.BatchBlocked)
	if alone != "" && o.Kind == step.KindWait && (task.Lease.Take != nil || observation.HolderOf(task.Snapshot) != nil && !task.Lease.Release) && !strings.Contains(o.Message, alone) {
		o.Message += "; one at a time: " + alone
	}
	return o
}
