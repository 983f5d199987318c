package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Several members may be restarted at the same time: the holder of the Lease and
// its companions, whom the Lease names from when it is taken until it is given
// back. Who of them has been stopped, and who is back, is seen as it is of the
// holder. Where it is not proven any more that all of them may be stopped, those
// that have been come back first, and then the holder goes on alone.

// Together is implemented by a Component whose members may be restarted at the
// same time. All of it is pure.
type Together interface {
	// Together returns which of others, all of which are to be restarted, may be
	// stopped at the same time as first, or why none is although the group asks for
	// that; neither if it does not ask.
	Together(first *v1alpha1.Instance, others []*v1alpha1.Instance) (with []*v1alpha1.Instance, alone string)
	// SafeTogether says why members must not be stopped at the same time, of which
	// some may have been already; empty if they may as far as is known without
	// their regions.
	SafeTogether(all []*v1alpha1.Instance) string
	// TransientTogether says the same of what passes by itself, as Transient does of one.
	TransientTogether(all []*v1alpha1.Instance) string
	// Question is what PD has to be asked about their regions.
	Question(all []*v1alpha1.Instance) RegionQuestion
	// Answer says why, by what PD answered, they must not be stopped at the same
	// time; empty if they may.
	Answer(a RegionAnswer) string
}

// RegionQuestion is whether a store has a region of a kind.
type RegionQuestion struct {
	// Stores whose regions are looked through, by ID.
	Stores []string
	// Sought tells the kind.
	Sought func(pd.Region) bool
}

// RegionAnswer is what PD answered.
type RegionAnswer struct {
	// Stores that were asked for.
	Stores []string
	// Found is the first region that was sought; nil if there is none.
	Found *pd.Region
	// Err is why PD did not answer.
	Err error
}

// questionDeadline bounds how long the regions of several stores are read: what
// was read first must still be so.
const questionDeadline = 10 * time.Second

// AskQuestion asks PD what a plan has to know before it can go on.
func AskQuestion(ctx context.Context, env operator.Env, g v1alpha1.Group, q RegionQuestion) *RegionAnswer {
	out := &RegionAnswer{Stores: q.Stores}
	client, err := env.PD.Client(types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	if err != nil {
		out.Err = err
		return out
	}
	ctx, cancel := context.WithTimeout(ctx, questionDeadline)
	defer cancel()
	for _, id := range q.Stores {
		found, ok, err := client.FindRegion(ctx, id, q.Sought)
		switch {
		case err != nil:
			out.Err = err
			return out
		case ok:
			out.Found = &found
			return out
		}
	}
	return out
}

// answered says why, by their regions, members must not be stopped at the same
// time; empty if they may. Unless PD was asked for just these, the plan asks and
// goes no further.
func (p *Plan) answered(s Snapshot, t Together, all []*v1alpha1.Instance) (reason string, known bool) {
	q := t.Question(all)
	if s.Answer == nil || !slices.Equal(s.Answer.Stores, q.Stores) {
		p.Question = &q
		return "", false
	}
	return t.Answer(*s.Answer), true
}

// company chooses who is restarted at the same time as a member that is next. It
// says why nobody is, and what is waited for first.
func company(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, first Disruption, work []Disruption) (with []lease.Companion, alone string, wait step.Outcome) {
	t, able := r.Disrupt.(Together)
	if !able || !joins(s, first) {
		return nil, "", step.Done()
	}
	var others []*v1alpha1.Instance
	for _, d := range work {
		if d.Instance.Name != first.Instance.Name && joins(s, d) && obstacle(plan, g, s, r, d).Kind == step.KindDone {
			others = append(others, d.Instance)
		}
	}
	chosen, alone := t.Together(first.Instance, others)
	chosen = atMost(g, plan.foreseen(s), first, chosen)
	if len(chosen) == 0 {
		return nil, alone, step.Done()
	}
	all := append([]*v1alpha1.Instance{first.Instance}, chosen...)
	if reason := t.SafeTogether(all); reason != "" {
		return nil, reason, step.Done()
	}
	if reason := t.TransientTogether(all); reason != "" {
		if !plan.awaits(s, first) {
			return nil, reason, step.Done()
		}
		return nil, "", step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is next (%s), and waits: %s", first.Instance.Name, first.Why, reason))
	}
	switch reason, known := plan.answered(s, t, all); {
	case !known:
		return nil, "", step.Wait("PD", unsafeDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is next: %s", first.Instance.Name, first.Why))
	case reason != "":
		return nil, reason, step.Done()
	}
	for _, i := range chosen {
		with = append(with, lease.Companion{Instance: i.Name, Leaders: r.Disrupt.Leaders(i)})
	}
	return with, "", step.Done()
}

// joins reports whether a disruption may be one of several: a restart that keeps
// its Instance and its node.
func joins(s Snapshot, d Disruption) bool {
	moves := s.Cordoned[d.Instance.Status.NodeName] && d.Instance.Spec.Revision == d.Revision
	return d.Verb == Restart && d.Instance.DeletionTimestamp == nil && !moves
}

// atMost leaves out those who would get a new revision beyond what
// spec.disruption.updateAtMost allows.
func atMost(g v1alpha1.Group, s Snapshot, first Disruption, chosen []*v1alpha1.Instance) []*v1alpha1.Instance {
	if !limited(g, first.Revision) {
		return chosen
	}
	left := *g.GetComponentSpec().Disruption.UpdateAtMost - updated(s, first.Revision)
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

// carryOnTogether brings the restart of the Lease's holder and its companions to
// its end.
func carryOnTogether(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, holder *v1alpha1.Instance, work []Disruption, leaving removal) step.Outcome {
	var due, others []Disruption
	for _, d := range work {
		if s.Lease.Covers(d.Instance) && d.Verb == Restart && d.Instance.DeletionTimestamp == nil {
			due = append(due, d)
		} else {
			others = append(others, d)
		}
	}
	for _, d := range due {
		plan.disrupted[d.Instance.Name] = Restart // they count for a canary
	}
	_, held := replaceSpares(plan, g, s, r, slices.DeleteFunc(others, func(d Disruption) bool { return s.Lease.Covers(d.Instance) }))
	all := slices.DeleteFunc(slices.Clone(s.Instances), func(i *v1alpha1.Instance) bool { return !s.Lease.Covers(i) })
	back := comeBack(plan, s, r, all, due, leaving)
	if lost := letGo(plan, g, s, r, holder, due); lost.Kind != step.KindDone {
		return step.Worst(held, lost)
	}
	if len(due) > 0 {
		return step.Worst(held, stopTogether(plan, g, s, r, holder, all, due, back))
	}
	if back.Kind != step.KindDone {
		return step.Worst(held, back)
	}
	for _, i := range all {
		if _, under := plan.disrupted[i.Name]; under {
			delete(plan.disrupted, i.Name)
			plan.recheckRecovery(r, i, s.Lease.Of(i))
		}
	}
	return step.Worst(held, give(plan, work, holder, "it and its companions serve again"))
}

// letGo lets a holder go that does not come back and was deleted, so that another
// one comes in its place, whoever of its companions is back. The Lease says so first,
// and goes on to its heir with the companions. Nobody else stops meanwhile.
func letGo(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, holder *v1alpha1.Instance, due []Disruption) step.Outcome {
	if holder.DeletionTimestamp == nil || !held(holder) || !r.Disrupt.Restarted(holder) || !r.Disrupt.Spare(holder) {
		return step.Done()
	}
	for _, d := range due {
		plan.disrupted[d.Instance.Name] = Restart
		if r.Disrupt.Spare(d.Instance) {
			plan.permit(d.Instance)
			plan.recheckSpare(r, d.Instance)
		}
	}
	d := Disruption{Instance: holder, Verb: Restart, Why: wasDeleted, Revision: plan.Target.Hash}
	plan.disrupted[holder.Name] = Restart
	if s.Lease.Returns != returns(g, d) {
		return pass(plan, g, s, d)
	}
	plan.permit(holder)
	plan.recheckSpare(r, holder)
	return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s was deleted and is being made anew", holder.Name))
}

// comeBack waits for those of all that have been stopped and are not due any more.
func comeBack(plan *Plan, s Snapshot, r Rendering, all []*v1alpha1.Instance, due []Disruption, leaving removal) step.Outcome {
	worst := step.Done()
	wait := func(o step.Outcome) {
		if worst.Kind == step.KindDone {
			worst = o
		}
	}
	for _, c := range s.Lease.Companions {
		// Whose Instance has gone comes back under its name, or leaves. PD may take
		// its store for Up for a while.
		up := func(st pd.Store) bool { return st.State == pd.StateUp && strings.HasPrefix(st.Address, c.Instance+".") }
		if s.Instance(c.Instance) == nil && slices.ContainsFunc(s.PD.Stores, up) {
			wait(step.Wait("PD", time.Second, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s has gone, and PD still takes its store for Up", c.Instance)))
		}
	}
	for _, i := range all {
		_, leaves := leaving.victims[i.Name]
		if leaves || slices.ContainsFunc(due, func(d Disruption) bool { return d.Instance.Name == i.Name }) {
			continue
		}
		here := restarted(i)
		if !begun(i) && here {
			if inherits(s, r, i) {
				// The mark comes first: by it its store is let lead again.
				plan.disrupted[i.Name] = Restart
				wait(step.Wait("Instance", waitDeadline, v1alpha1.ReasonRecovering, "Instance "+i.Name+" has been made anew"))
			}
			continue // nothing has been done to it
		}
		plan.disrupted[i.Name] = Restart
		if !here {
			wait(step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, "Instance "+i.Name+" is being restarted"))
			continue
		}
		p := r.Disrupt.Recover(i, s.Lease.Of(i))
		plan.Calls = append(plan.Calls, p.Calls...)
		if !p.Ready {
			wait(p.Wait)
		}
	}
	return worst
}

// inherits reports whether something was done to the member of an Instance before
// the Instance was made. Times of creation are in full seconds.
func inherits(s Snapshot, r Rendering, i *v1alpha1.Instance) bool {
	heir := i.DeepCopy()
	delete(heir.Annotations, v1alpha1.AnnotationEvictLeaders)
	setAnnotation(heir, v1alpha1.AnnotationDisruption, string(Restart))
	return !i.CreationTimestamp.Time.Before(s.Lease.Since.Truncate(time.Second)) && len(r.Disrupt.Sweep(heir)) > 0
}

// restarted reports whether an Instance runs what its spec asks for, and its pod is
// none that is to stop, or none that ever does.
func restarted(i *v1alpha1.Instance) bool {
	return (InstanceReady(i) || losing(i)) && !stale(i) || pinned(i)
}

// stale reports whether an Instance's pod is still to stop.
func stale(i *v1alpha1.Instance) bool {
	return i.Status.Revision != i.Spec.Revision || condemned(i)
}

// condemned reports whether an Instance's pod is permitted to stop as it is.
func condemned(i *v1alpha1.Instance) bool {
	return i.Spec.StopPod != "" && i.Spec.StopPod == i.Status.PodUID
}

// stopTogether stops those of the holder and its companions that are due, all at
// once, when everybody is ready for it. back says whether those that have been
// stopped are back.
func stopTogether(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, holder *v1alpha1.Instance, all []*v1alpha1.Instance, due []Disruption, back step.Outcome) step.Outcome {
	t, able := r.Disrupt.(Together)
	if !able || holder.DeletionTimestamp != nil {
		return part(plan, s, r, holder, due, back, "Instance "+holder.Name+" was deleted")
	}
	for _, d := range due {
		if reason := unreturning(g, s, d); reason != "" {
			return part(plan, s, r, holder, due, back, reason)
		}
	}
	if reason := refused(g, s, r, due...); reason != "" {
		return withdraw(plan, s, r, holder, all, due, back, reason)
	}
	if reason := t.SafeTogether(all); reason != "" {
		return part(plan, s, r, holder, due, back, reason)
	}
	waits, ready := step.Done(), true
	for _, d := range due {
		plan.disrupted[d.Instance.Name] = Restart
		if r.Disrupt.Spare(d.Instance) {
			plan.permit(d.Instance)
			plan.recheckSpare(r, d.Instance)
			continue
		}
		p := r.Disrupt.Prepare(d, s.Lease.Since)
		plan.Calls = append(plan.Calls, p.Calls...)
		if !p.Ready && ready || waits.Kind == step.KindDone && p.Wait.Kind != "" {
			waits = p.Wait
		}
		ready = ready && p.Ready
	}
	if !ready {
		return waits
	}
	if reason := t.TransientTogether(all); reason != "" {
		if !plan.awaits(s, due[0]) {
			return part(plan, s, r, holder, due, back, reason)
		}
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s and its companions are ready to be stopped (%s), and wait: %s", holder.Name, due[0].Why, reason))
	}
	switch reason, known := plan.answered(s, t, all); {
	case !known:
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s is being prepared", holder.Name))
	case reason != "":
		return part(plan, s, r, holder, due, back, reason)
	}
	var named []string
	for _, d := range due {
		plan.permit(d.Instance)
		named = append(named, d.Instance.Name)
	}
	plan.recheckTogether(r, all, due, s.Lease.Since)
	plan.Notes = append(plan.Notes, fmt.Sprintf("restart Instances %s together: %s", strings.Join(named, ", "), due[0].Why))
	if waits.Kind != step.KindDone {
		return waits
	}
	return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instances %s are being restarted together: %s", strings.Join(named, ", "), due[0].Why))
}

// refused says that one of those that are due would get a new revision before its
// group's turn, which nobody is allowed right before the stop, and that who comes first
// waits for the Lease; empty if that is not so. One whose pod may already be stopped for
// another revision keeps the Lease until it has been.
func refused(g v1alpha1.Group, s Snapshot, r Rendering, due ...Disruption) string {
	if r.RollGate.Open || !precedes(g, s) {
		return ""
	}
	for _, d := range due {
		rolls := d.Verb == Restart && d.Instance.DeletionTimestamp == nil && d.Instance.Spec.Revision != d.Revision
		if rolls && !stale(d.Instance) && !r.Disrupt.Spare(d.Instance) {
			return r.RollGate.Message
		}
	}
	return ""
}

// precedes reports whether a group of the cluster that comes before a group waits for
// the Lease.
func precedes(g v1alpha1.Group, s Snapshot) bool {
	at := slices.Index(Order(), g.GroupKind())
	return slices.ContainsFunc(s.Groups, func(other v1alpha1.Group) bool {
		c := meta.FindStatusCondition(other.GetGroupStatus().Conditions, v1alpha1.ConditionUpToDate)
		return slices.Index(Order(), other.GroupKind()) < at && other.GetDeletionTimestamp() == nil &&
			c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonWaitingForLease
	})
}

// withdraw gives the Lease back if nobody has been stopped yet, and else lets the
// holder go on alone.
func withdraw(plan *Plan, s Snapshot, r Rendering, holder *v1alpha1.Instance, all []*v1alpha1.Instance, due []Disruption, back step.Outcome, why string) step.Outcome {
	o := part(plan, s, r, holder, due, back, why)
	spare := func(d Disruption) bool { return r.Disrupt.Spare(d.Instance) }
	if len(due) < len(all) || back.Kind != step.KindDone || slices.ContainsFunc(due, spare) {
		return o
	}
	delete(plan.disrupted, holder.Name)
	plan.Lease = LeaseChange{Give: true, Why: why}
	return step.Wait("PD", time.Second, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s and its companions are not disrupted (%s): %s", holder.Name, due[0].Why, why))
}

// part lets the holder go on alone, once those that have been stopped are back.
// Who is due is not stopped for now.
func part(plan *Plan, s Snapshot, r Rendering, holder *v1alpha1.Instance, due []Disruption, back step.Outcome, why string) step.Outcome {
	plan.Calls = slices.DeleteFunc(plan.Calls, func(c Call) bool {
		return slices.ContainsFunc(due, func(d Disruption) bool { return d.Instance.Name == c.Instance })
	})
	for _, d := range due {
		delete(plan.disrupted, d.Instance.Name)
		if d.Instance.Name == holder.Name {
			plan.disrupted[holder.Name] = Restart
		}
		if r.Disrupt.Spare(d.Instance) {
			// It is mended whoever else is not.
			plan.disrupted[d.Instance.Name] = Restart
			plan.permit(d.Instance)
			plan.recheckSpare(r, d.Instance)
		}
	}
	if back.Kind != step.KindDone {
		return back
	}
	d := Disruption{Instance: holder, Verb: Restart, Why: why}
	plan.Lease = LeaseChange{Take: &d, Leaders: s.Lease.Leaders, Since: s.Lease.Since, Returns: s.Lease.Returns, Alone: why, Why: why}
	return step.Wait("Lease", waitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s goes on alone: %s", holder.Name, why))
}

// recheckTogether notes what the permission for several to stop rests on.
func (p *Plan) recheckTogether(r Rendering, all []*v1alpha1.Instance, due []Disruption, begun time.Time) {
	if r.Again == nil {
		return
	}
	p.rechecks = append(p.rechecks, recheck{all[0].Name, func(now pd.View) string {
		component := r.Again(now)
		t, able := component.(Together)
		if !able {
			return "it is not restarted with others"
		}
		if reason := cmp.Or(t.SafeTogether(all), t.TransientTogether(all)); reason != "" {
			return reason
		}
		for _, d := range due {
			if !component.Spare(d.Instance) && !component.Prepare(d, begun).Ready {
				return "PD says something else by now"
			}
		}
		return ""
	}})
}

// astray names a companion of a holder that is lost which is not what it is to be
// yet; empty if there is none. Nobody waits for one that is deleted or suspended,
// whoever asks not for itself, and if it has not come back itself only for those that
// are still to be stopped: else they would wait for each other. asker may be nil.
func (s Snapshot) astray(asker *v1alpha1.Instance) string {
	if !s.HolderLost {
		return ""
	}
	among := asker != nil && s.Lease.Covers(asker) && !restarted(asker)
	for _, i := range s.Everyone() {
		switch {
		case !s.Lease.Covers(i), restarted(i), asker != nil && i.Name == asker.Name, i.DeletionTimestamp != nil, s.asleep(i):
		case among && !stale(i):
		default:
			return i.Name
		}
	}
	return ""
}

// asleep reports whether a member is suspended, or its group.
func (s Snapshot) asleep(i *v1alpha1.Instance) bool {
	return i.Spec.Suspended || slices.ContainsFunc(s.Groups, func(g v1alpha1.Group) bool {
		return g.GroupKind() == i.Spec.Group.Kind && g.GetName() == i.Spec.Group.Name && g.GetComponentSpec().Suspended
	})
}

// withWord adds to an outcome why the holder of the Lease is restarted alone
// although its group asks for several at once.
func withWord(plan *Plan, s Snapshot, o step.Outcome) step.Outcome {
	alone := cmp.Or(plan.Lease.Alone, s.Lease.Alone)
	if alone != "" && o.Kind == step.KindWait && (plan.Lease.Take != nil || holderOf(s) != nil && !plan.Lease.Give) && !strings.Contains(o.Message, alone) {
		o.Message += "; one at a time: " + alone
	}
	return o
}
