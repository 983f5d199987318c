package group

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// A member whose Instance is deleted and that is to stay is restarted like any
// other, but the permission to stop is that its Instance may go, and who comes
// back is another Instance of its name: its heir. The Lease says so (Returns)
// before the Instance goes, and is the heir's from when that carries the mark of
// the restart until it has recovered.

// returns is the group that makes a member anew when its Instance has gone, empty
// if nobody does.
func returns(g v1alpha1.Group, d Disruption) string {
	if d.Verb == Restart && d.Instance.DeletionTimestamp != nil {
		return g.GetName()
	}
	return ""
}

// permit lets a member stop: its pod, or for one that was deleted its Instance.
func (p *Plan) permit(i *v1alpha1.Instance) {
	if i.DeletionTimestamp != nil {
		p.released[i.Name] = true
		return
	}
	p.granted[i.Name] = true
}

// awaits reports whether the Lease is for a member of the group that is to come
// back under its name.
func (s Snapshot) awaits(g v1alpha1.Group) bool {
	return s.HolderReturns && s.Lease.Holder.Kind == g.GroupKind() && s.Lease.Returns == g.GetName()
}

// awaited returns the slot of that member.
func (s Snapshot) awaited(g v1alpha1.Group) (int32, bool) {
	if !s.awaits(g) {
		return 0, false
	}
	return names.Slot(g.GetName(), s.Lease.Holder.Instance)
}

// inherit hands the Lease on to the Instance that has come in its holder's place.
// The mark comes first: by it the heir's store is let lead again.
func inherit(plan *Plan, g v1alpha1.Group, s Snapshot) step.Outcome {
	heir := s.Instance(s.Lease.Holder.Instance)
	if slot, _ := s.awaited(g); s.RetiredSlots[slot] {
		plan.Lease = LeaseChange{Give: true, Why: "its claim is retired, and nobody comes in its place"}
		return step.Done()
	}
	if heir == nil || heir.DeletionTimestamp != nil && !held(heir) {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s was deleted and is being made anew", s.Lease.Holder.Instance))
	}
	d := Disruption{Instance: heir, Verb: Restart, Why: wasDeleted, Revision: plan.Target.Hash}
	plan.disrupted[heir.Name] = Restart
	if !begun(heir) {
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonRestarting, fmt.Sprintf("Instance %s has been made anew", heir.Name))
	}
	return pass(plan, g, s, d)
}

// planHeir has the Instance made that comes in the place of a deleted one although
// its group is suspended: it has no pod until that is resumed, and the cluster does
// not wait for it. Without it the slot would be forgotten with the Lease.
func planHeir(plan *Plan, g v1alpha1.Group, r Rendering, slot int32) error {
	heir, err := newInstance(g, r, plan.Target, slot)
	if err != nil {
		return err
	}
	plan.Instances = append(plan.Instances, InstanceChange{Desired: heir})
	plan.Notes = append(plan.Notes, fmt.Sprintf("create Instance %s, which was deleted and is suspended", heir.Name))
	plan.Outcome = step.Worst(plan.Outcome, step.Wait("Instance", waitDeadline, v1alpha1.ReasonCreating, fmt.Sprintf("Instance %s was deleted and is being made anew", heir.Name)))
	return nil
}

// pass has the Lease say what is being done now and to whom, without anybody else
// getting hold of it in between.
func pass(plan *Plan, g v1alpha1.Group, s Snapshot, d Disruption) step.Outcome {
	plan.Lease = LeaseChange{Take: &d, Leaders: s.Lease.Leaders, Since: s.Lease.Since, Companions: s.Lease.Companions, Alone: s.Lease.Alone, Returns: returns(g, d), Why: d.Why}
	return step.Wait("Lease", waitDeadline, v1alpha1.ReasonPreparing, fmt.Sprintf("Instance %s keeps the Lease %s: %s", d.Instance.Name, lease.Name(g.PDGroupName()), d.Why))
}

// tell notes of every deleted member that needs the Lease why it has not been let
// go yet.
func tell(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, work []Disruption) {
	for _, d := range work {
		i := d.Instance
		if i.DeletionTimestamp == nil || plan.released[i.Name] {
			continue
		}
		o := obstacle(plan, g, s, r, d)
		switch {
		case s.Lease.HeldBy(i):
			o = r.Disrupt.Prepare(d, s.Lease.Since).Wait
		case o.Kind == step.KindDone:
			o = queue(g, s, d)
		}
		if o.Message == "" {
			o.Message = fmt.Sprintf("Instance %s is next (%s)", i.Name, d.Why)
		}
		plan.Waiting[i.Name] = o.Message
	}
}
