package group

import (
	"cmp"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// removal is what a plan decides about members that leave.
type removal struct {
	// victims that leave now, by Instance.
	victims map[string]Disruption
	// waiting is why others have to wait, or why none leaves.
	waiting step.Outcome
}

// held reports whether the database has to let go of an Instance's member before
// the Instance may be deleted.
func held(i *v1alpha1.Instance) bool {
	return slices.Contains(i.Finalizers, v1alpha1.FinalizerMember)
}

// drained reports whether the Instance's status says that its member has left.
func drained(i *v1alpha1.Instance) bool {
	return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionDrained)
}

// left reports whether a deleted Instance's member is no member any more, though its pod
// may take for ever to stop.
func left(i *v1alpha1.Instance) bool { return i.DeletionTimestamp != nil && drained(i) }

// planRemoval chooses the members that leave: those that are being deleted, and
// as many as there are more than wanted.
func planRemoval(g v1alpha1.Group, s Snapshot, r Rendering, surge int32, revision string) removal {
	out := removal{victims: map[string]Disruption{}, waiting: step.Done()}
	var staying []*v1alpha1.Instance
	for _, i := range s.Instances {
		switch {
		case !Ours(g, i):
		case i.DeletionTimestamp == nil:
			staying = append(staying, i)
		case held(i) && !r.Disrupt.Restarted(i):
			out.take(g, s, r, Disruption{Instance: i, Verb: Remove, Why: wasDeleted, Revision: revision})
		}
	}
	surplus := len(staying) - int(g.GetReplicas()+r.Extra+surge)
	if surplus <= 0 || g.GetComponentSpec().Suspended {
		return out
	}
	why := fmt.Sprintf("spec.replicas is %d", g.GetReplicas())
	slices.SortStableFunc(staying, func(a, b *v1alpha1.Instance) int { return beforeInRemoval(g, r, why, revision, a, b) })
	victims := staying[:surplus]
	fresh := slices.DeleteFunc(slices.Clone(victims), func(i *v1alpha1.Instance) bool { return i.Spec.Retire })
	if refusal := r.Disrupt.Refuse(victims); refusal != "" && len(fresh) > 0 {
		out.waiting = step.Wait("PD", waitDeadline, v1alpha1.ReasonScaleInRefused, refusal)
		victims = slices.DeleteFunc(slices.Clone(victims), func(i *v1alpha1.Instance) bool { return !i.Spec.Retire })
	}
	for _, i := range victims {
		if len(out.victims) >= r.Disrupt.RemoveAtOnce() && !i.Spec.Retire {
			break
		}
		out.take(g, s, r, Disruption{Instance: i, Verb: Remove, Why: cmp.Or(ToReplace(g, i), why), Revision: revision})
	}
	return out
}

// take makes a member a victim. The user's wishes put off what would stop a
// member that serves; for one that needs the Lease they are looked at when it is
// to be taken.
func (out *removal) take(g v1alpha1.Group, s Snapshot, r Rendering, d Disruption) {
	if !r.Disrupt.Leased(d) && !r.Disrupt.Spare(d.Instance) && !d.Instance.Spec.Retire {
		if hold := putOff(g, s, r, d, ""); hold.Kind != step.KindDone {
			out.waiting = step.Worst(out.waiting, hold)
			return
		}
	}
	out.victims[d.Instance.Name] = d
}

// scalesIn reports whether members leave that nobody has deleted.
func (out *removal) scalesIn() bool {
	for i := range instancesOf(out.victims) {
		if i.DeletionTimestamp == nil {
			return true
		}
	}
	return false
}

// begins names a member that serves and is told to leave by this plan, empty if
// there is none.
func (out *removal) begins(r Rendering) string {
	for _, i := range slices.SortedFunc(instancesOf(out.victims), bySlot) {
		if i.DeletionTimestamp == nil && !i.Spec.Retire && !r.Disrupt.Leased(out.victims[i.Name]) && !r.Disrupt.Spare(i) {
			return i.Name
		}
	}
	return ""
}

// LeavesFirst reports whether a person has said that a member is to leave before others
// when some do.
func LeavesFirst(i *v1alpha1.Instance) bool {
	_, asked := i.Annotations[v1alpha1.AnnotationRemoveFirst]
	return asked
}

// beforeInRemoval orders the members of which some are to be removed: who is to be
// replaced for its volumes, who is on the way out already, whom a person named, who
// adds nothing, as the component ranks them, and then the newest.
func beforeInRemoval(g v1alpha1.Group, r Rendering, why, revision string, a, b *v1alpha1.Instance) int {
	first := func(holds func(*v1alpha1.Instance) bool) int {
		switch x, y := holds(a), holds(b); {
		case x && !y:
			return -1
		case y && !x:
			return 1
		}
		return 0
	}
	rank := func(i *v1alpha1.Instance) int {
		return r.Disrupt.Rank(Disruption{Instance: i, Verb: Remove, Why: why, Revision: revision})
	}
	return cmp.Or(
		first(func(i *v1alpha1.Instance) bool { return ReplacedForVolumes(g, i) != "" }),
		first(func(i *v1alpha1.Instance) bool { return i.Spec.Retire }),
		first(named),
		first(LeavesFirst),
		first(r.Disrupt.Spare),
		cmp.Compare(rank(a), rank(b)),
		cmp.Compare(b.Spec.Slot, a.Spec.Slot),
	)
}

// drain carries the removals on that need no Lease, and lets members go that
// have left.
func drain(plan *Plan, r Rendering, out removal) {
	for _, i := range slices.SortedFunc(instancesOf(out.victims), bySlot) {
		d := out.victims[i.Name]
		if r.Disrupt.Leased(d) {
			continue
		}
		p := r.Disrupt.Prepare(d, zeroTime)
		plan.recheck(r, d, zeroTime, p)
		prepareRemoval(plan, p, d)
	}
}

// prepareRemoval takes over how far a removal is.
func prepareRemoval(plan *Plan, p Preparation, d Disruption) {
	plan.disrupted[d.Instance.Name] = d.Verb
	if p.Stays {
		// It comes back with the same data.
		plan.disrupted[d.Instance.Name] = Restart
	}
	plan.suspended[d.Instance.Name] = p.Suspend
	if !p.Ready {
		plan.Calls = append(plan.Calls, p.Calls...)
		plan.Outcome = step.Worst(plan.Outcome, p.Wait)
		return
	}
	if p.Stays {
		plan.released[d.Instance.Name] = d.Instance.DeletionTimestamp != nil
		plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", waitDeadline, v1alpha1.ReasonDeleting, "Instance "+d.Instance.Name+" is being deleted, and made anew then"))
		return
	}
	plan.Drained[d.Instance.Name] = true
	if !drained(d.Instance) {
		// It is said first, and done when everybody can see it.
		plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", waitDeadline, v1alpha1.ReasonDraining, "the member of Instance "+d.Instance.Name+" has left"))
		return
	}
	if d.Instance.DeletionTimestamp == nil {
		plan.Deletes = append(plan.Deletes, d.Instance)
	} else {
		plan.released[d.Instance.Name] = true
	}
	plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", waitDeadline, v1alpha1.ReasonDraining, "Instance "+d.Instance.Name+" is being deleted: its member has left"))
}
