package group

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

var zeroTime time.Time

// LeaseChange is what is to be done with the cluster's disruption Lease.
type LeaseChange struct {
	// Take it for this member; nil for not.
	Take *Disruption
	// Leaders that the member has now, and Since when it is disrupted; zero is now.
	Leaders int
	Since   time.Time
	// Companions are disrupted at the same time; Alone is why there are none although
	// the group asks for it.
	Companions []lease.Companion
	Alone      string
	// Returns is the group if the member is made anew when its Instance has gone.
	Returns string
	// Give it back.
	Give bool
	// Why, for an Event.
	Why string
}

// state is what the Lease is to say once it is taken.
func (c LeaseChange) state() lease.State {
	return lease.State{Holder: lease.Of(c.Take.Instance), Since: c.Since, Leaders: c.Leaders, Returns: c.Returns, Companions: c.Companions, Alone: c.Alone}
}

func instancesOf(work map[string]Disruption) iter.Seq[*v1alpha1.Instance] {
	return func(yield func(*v1alpha1.Instance) bool) {
		for _, d := range work {
			if !yield(d.Instance) {
				return
			}
		}
	}
}

func bySlot(a, b *v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) }

// planDisruptions decides which member may be stopped now. work are all members
// that are to be restarted or removed and need the Lease for it, in no order,
// leaving are all that are removed. It fills the plan's Lease, Calls and grants
// and returns why the rest has to wait.
func planDisruptions(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, work []Disruption, leaving removal) step.Outcome {
	if holder := holderOf(s); holder != nil {
		return carryOn(plan, g, s, r, holder, work, leaving)
	}
	serving, held := replaceSpares(plan, g, s, r, work)
	if s.awaits(g) {
		return step.Worst(held, inherit(plan, g, s))
	}
	return step.Worst(held, next(plan, g, s, r, serving, leaving))
}

// replaceSpares lets members that add nothing be stopped at once, and returns
// the work that is left and why some of it has to wait.
func replaceSpares(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, work []Disruption) ([]Disruption, step.Outcome) {
	var serving []Disruption
	held := step.Done()
	for _, d := range work {
		if d.Verb != Restart || !r.Disrupt.Spare(d.Instance) {
			serving = append(serving, d)
			continue
		}
		if hold := overtakes(g, plan.foreseen(s), r, d, plan.Target.Hash); hold.Kind != step.KindDone {
			held = step.Worst(held, hold)
			continue
		}
		plan.granted[d.Instance.Name] = true
		plan.recheckSpare(r, d.Instance)
		plan.Notes = append(plan.Notes, fmt.Sprintf("replace the pod of Instance %s, which does not serve: %s", d.Instance.Name, d.Why))
	}
	return serving, held
}

// holderOf returns the Instance of the snapshot that holds the Lease.
func holderOf(s Snapshot) *v1alpha1.Instance {
	at := slices.IndexFunc(s.Instances, s.Lease.HeldBy)
	if at < 0 {
		return nil
	}
	return s.Instances[at]
}

// carryOn brings the disruption of the Lease's holder to its end. Nobody else
// of the group is disrupted meanwhile, but for those that add nothing.
func carryOn(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, holder *v1alpha1.Instance, work []Disruption, leaving removal) step.Outcome {
	if len(s.Lease.Companions) > 0 {
		return carryOnTogether(plan, g, s, r, holder, work, leaving)
	}
	at := slices.IndexFunc(work, func(d Disruption) bool { return d.Instance.Name == holder.Name })
	// What a removal has begun is taken back before anything else begins: its mark
	// tells that there is something.
	if at < 0 || work[at].Verb == Restart && Verb(holder.Annotations[v1alpha1.AnnotationDisruption]) == Remove {
		_, held := replaceSpares(plan, g, s, r, work)
		return step.Worst(held, settle(plan, s, r, holder, work, leaving))
	}
	d := work[at]
	plan.disrupted[holder.Name] = d.Verb // it counts for a canary
	replaceSpares(plan, g, s, r, slices.Delete(slices.Clone(work), at, at+1))
	if s.Lease.Returns != returns(g, d) {
		return pass(plan, g, s, d)
	}
	if d.Verb == Restart && r.Disrupt.Spare(holder) {
		plan.permit(holder)
		plan.recheckSpare(r, holder)
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s is being restarted: %s", holder.Name, d.Why))
	}
	p := r.Disrupt.Prepare(d, s.Lease.Since)
	if d.Verb == Remove && p.Ready {
		prepareRemoval(plan, p, d)
		return step.Done()
	}
	unsafe, lost := r.Disrupt.Safe(d), unreturning(g, s, d)
	if unsafe != "" && lost == "" && stale(holder) {
		// By what it was permitted before its pod may be stopped at any moment, and nobody
		// else is to be.
		return step.Wait("PD", time.Second, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not disrupted for a new reason (%s), and keeps the Lease until its pod is what its spec asks for already: %s", holder.Name, d.Why, unsafe))
	}
	if reason := cmp.Or(lost, refused(g, s, r, d), unsafe); reason != "" {
		return desist(plan, d, reason)
	}
	if p.Ready {
		if reason := r.Disrupt.Transient(d); reason != "" {
			return linger(plan, s, d, reason)
		}
	}
	plan.Calls = append(plan.Calls, p.Calls...)
	plan.recheck(r, d, s.Lease.Since, p)
	if !p.Ready {
		return p.Wait
	}
	plan.permit(holder)
	plan.Notes = append(plan.Notes, fmt.Sprintf("restart Instance %s: %s", holder.Name, d.Why))
	if p.Wait.Kind != "" && p.Wait.Kind != step.KindDone {
		return p.Wait
	}
	return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s is being restarted: %s", holder.Name, d.Why))
}

// desist gives the Lease of a member that is not stopped after all back: others may have
// to mend first what makes it unsafe. What was prepared is taken back as for everybody who
// is not disrupted.
func desist(plan *Plan, d Disruption, reason string) step.Outcome {
	delete(plan.disrupted, d.Instance.Name)
	plan.Lease = LeaseChange{Give: true, Why: reason}
	return step.Wait("PD", time.Second, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not disrupted (%s): %s", d.Instance.Name, d.Why, reason))
}

// linger keeps the Lease of a member that is ready to be stopped, until what is in the
// way has passed or has taken too long for that: to begin anew would cause the same
// once more. Who may be stopped at any moment keeps it in any case.
func linger(plan *Plan, s Snapshot, d Disruption, reason string) step.Outcome {
	if !plan.awaits(s, d) && !stale(d.Instance) {
		return desist(plan, d, reason)
	}
	return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is ready to be stopped (%s), and waits: %s", d.Instance.Name, d.Why, reason))
}

// awaits notes that a disruption is held back by what passes by itself, and reports
// whether that has not taken too long yet.
func (p *Plan) awaits(s Snapshot, d Disruption) bool {
	p.Unsafe = &d
	return s.Hold.Instance == "" || s.Now.Sub(s.Hold.Since) < transientTimeout
}

// settle waits for a member that holds the Lease and has nothing left to be
// done to it, and gives the Lease back. work is what is to be done to others,
// leaving are the members that are removed.
func settle(plan *Plan, s Snapshot, r Rendering, holder *v1alpha1.Instance, work []Disruption, leaving removal) step.Outcome {
	if _, leaves := leaving.victims[holder.Name]; leaves {
		return give(plan, work, holder, "it goes on leaving without it")
	}
	if holder.DeletionTimestamp != nil && !held(holder) {
		if drained(holder) {
			// Its pod may take for ever to stop, and takes nothing away any more.
			return give(plan, work, holder, "its member has left")
		}
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonDeleting, "Instance "+holder.Name+" is being deleted")
	}
	switch verb := Verb(holder.Annotations[v1alpha1.AnnotationDisruption]); {
	case verb == "", verb == Evict && !stale(holder):
		// The mark is written before anything is done. That it leads nothing goes on.
		return give(plan, work, holder, "nothing has been done to it")
	case verb == Remove:
		return takeBack(plan, r, holder, work)
	}
	plan.disrupted[holder.Name] = Restart
	stays := pinned(holder)
	if !stays && (!InstanceReady(holder) && !losing(holder) || holder.Status.Revision != holder.Spec.Revision || holder.Status.PodUID == holder.Spec.StopPod) {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, "Instance "+holder.Name+" is being restarted")
	}
	p := r.Disrupt.Recover(holder, s.Lease)
	plan.Calls = append(plan.Calls, p.Calls...)
	if !p.Ready {
		return p.Wait
	}
	delete(plan.disrupted, holder.Name)
	plan.recheckRecovery(r, holder, s.Lease)
	if stays {
		return give(plan, work, holder, "its pod is not stopped, for a claim of it is being deleted")
	}
	return give(plan, work, holder, "it serves again")
}

// takeBack ends a removal that is not wanted any more. Nothing has been stopped:
// the Lease is given back when nothing is left of it in the database, however the
// member is.
func takeBack(plan *Plan, r Rendering, holder *v1alpha1.Instance, work []Disruption) step.Outcome {
	if calls := r.Disrupt.Sweep(holder); r.Silent || len(calls) > 0 {
		plan.disrupted[holder.Name] = Remove
		plan.Calls = append(plan.Calls, calls...)
		return step.Wait("PD", waitDeadline, v1alpha1.ReasonRecovering, fmt.Sprintf("the removal of Instance %s is being taken back", holder.Name))
	}
	plan.recheckReturn(r, holder)
	return give(plan, work, holder, "its removal has been taken back")
}

// rest gives the Lease back for a member of a suspended group that has stopped,
// or that was deleted and has been made anew without a pod: others may be restarted
// meanwhile, and PD has to be when it is rebuilt. What was begun with the member is
// seen by its mark, which stays.
func rest(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering) {
	i := holderOf(s)
	if s.awaits(g) {
		if slot, ok := names.Slot(g.GetName(), s.Lease.Holder.Instance); ok && s.RetiredSlots[slot] {
			plan.Lease = LeaseChange{Give: true, Why: "the claim of its holder is retired, and none comes in its place"}
			return
		}
		i = s.Instance(s.Lease.Holder.Instance)
		if i != nil && i.DeletionTimestamp == nil && i.Annotations[v1alpha1.AnnotationDisruption] == "" {
			plan.disrupted[i.Name] = Restart // by the mark it is seen what is to be taken back
			return
		}
	}
	if i != nil && i.Status.PodUID == "" && !r.Silent && len(r.Disrupt.Sweep(i)) == 0 {
		plan.Lease = LeaseChange{Give: true, Why: "its group is suspended"}
	}
}

// give gives the Lease back. work is what is to be done to others.
func give(plan *Plan, work []Disruption, holder *v1alpha1.Instance, why string) step.Outcome {
	plan.Lease = LeaseChange{Give: true, Why: why}
	if len(work) > 0 {
		return step.Wait("Lease", waitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is done, and others are next", holder.Name))
	}
	return step.Done()
}

// next chooses whom to disrupt next and takes the Lease for it. Without a Lease
// nobody is restarted in the same breath in which another one is told to leave:
// what is safe is judged by who stays.
func next(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, work []Disruption, leaving removal) step.Outcome {
	slices.SortStableFunc(work, func(a, b Disruption) int {
		return cmp.Or(cmp.Compare(r.Disrupt.Rank(a), r.Disrupt.Rank(b)), bySlot(a.Instance, b.Instance))
	})
	blocked := step.Done()
	for _, d := range work {
		if o := obstacle(plan, g, s, r, d); o.Kind != step.KindDone {
			blocked = step.Worst(blocked, o)
			continue
		}
		if other := leaving.begins(r); other != "" && !r.Disrupt.Leased(d) {
			return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestartPending, fmt.Sprintf("Instance %s (%s) is restarted when Instance %s is known to leave", d.Instance.Name, d.Why, other))
		}
		if !r.Disrupt.Leased(d) {
			plan.granted[d.Instance.Name] = true
			plan.Notes = append(plan.Notes, fmt.Sprintf("restart Instance %s: %s", d.Instance.Name, d.Why))
			return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s is being restarted: %s", d.Instance.Name, d.Why))
		}
		if o := queue(g, s, d); o.Kind != step.KindDone {
			return o
		}
		if o := forgets(plan, g, s, d); o.Kind != step.KindDone {
			return o
		}
		with, alone, wait := company(plan, g, s, r, d, work)
		if wait.Kind != step.KindDone {
			return wait
		}
		plan.Lease = LeaseChange{Take: &d, Leaders: r.Disrupt.Leaders(d.Instance), Companions: with, Alone: alone, Returns: returns(g, d), Why: d.Why}
		plan.Notes = append(plan.Notes, fmt.Sprintf("take the disruption Lease for Instance %s: %s", d.Instance.Name, d.Why))
		return step.Wait("Lease", waitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is next: %s", d.Instance.Name, d.Why))
	}
	return blocked
}

// obstacle says why a disruption may not begin, whoever holds the Lease; Done if
// it may.
func obstacle(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, d Disruption) step.Outcome {
	if hold := putOff(g, plan.foreseen(s), r, d, plan.Target.Hash); hold.Kind != step.KindDone {
		return hold
	}
	if reason := unreturning(g, s, d); reason != "" {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not disrupted (%s): %s", d.Instance.Name, d.Why, reason))
	}
	if reason := cmp.Or(r.Disrupt.Safe(d), r.Disrupt.Transient(d)); reason != "" {
		if plan.Unsafe == nil {
			plan.Unsafe = &d
		}
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not disrupted yet (%s): %s", d.Instance.Name, d.Why, reason))
	}
	if name := s.astray(d.Instance); name != "" && r.Disrupt.Leased(d) {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for Instance %s, which was restarted together with one that is gone", d.Instance.Name, d.Why, name))
	}
	return step.Done()
}

// unreturning says why a member that is to be restarted would not come back, empty
// if it would: a claim that is being deleted goes with its pod. The instance
// operator would not stop that, so nothing is prepared and the Lease is not kept
// from others. A claim of a volume that the spec has no more does not count.
func unreturning(g v1alpha1.Group, s Snapshot, d Disruption) string {
	i := d.Instance
	if d.Verb != Restart || i.DeletionTimestamp != nil {
		return ""
	}
	claims := s.Claims[i.Name]
	wanted := func(c metav1.ObjectMeta) bool {
		return slices.ContainsFunc(g.GetComponentSpec().Volumes, func(v v1alpha1.Volume) bool { return names.Claim(v.Name, i.Name) == c.Name })
	}
	at := slices.IndexFunc(claims, func(c metav1.ObjectMeta) bool { return c.DeletionTimestamp != nil && wanted(c) })
	if at < 0 {
		return ""
	}
	return fmt.Sprintf("claim %s is being deleted, and would go with its pod: replace the member with its data: kubectl delete instance %s -n %s", claims[at].Name, i.Name, i.Namespace)
}

// queue says whom a disruption has to wait for; Done if the Lease is free.
func queue(g v1alpha1.Group, s Snapshot, d Disruption) step.Outcome {
	if s.Lease.Free() || s.HolderLost {
		return step.Done()
	}
	return step.Wait("Lease", leaseDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for %s to be done: kubectl -n %s get lease %s",
		d.Instance.Name, d.Why, s.Lease.Holder, g.GetNamespace(), lease.Name(g.PDGroupName())))
}

// unsafeDeadline is after how long what was not safe is looked at again: a region
// that catches up wakes nobody.
const unsafeDeadline = time.Second

// transientTimeout is for how long the Lease is kept for what passes by itself.
const transientTimeout = 30 * time.Second

// leaseDeadline is after how long a held Lease is looked at again although its
// watch said nothing: its holder may not exist any more.
const leaseDeadline = 15 * time.Second
