package group

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// running returns the revision that all members last had in common, if it is
// another one than the wanted one and some that are members still have it; else nil.
func running(plan *Plan, g v1alpha1.Group, s Snapshot) (*revision.Target, error) {
	current := g.GetGroupStatus().CurrentRevision
	if current == "" || current == plan.Target.Hash {
		return nil, nil
	}
	// Where all have left, such as by being deleted at once, it is theirs that waits.
	stays := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return Ours(g, i) && !left(i) })
	in := func(i *v1alpha1.Instance) bool {
		return Ours(g, i) && (!left(i) || !stays) && i.Spec.Revision == current
	}
	if !slices.ContainsFunc(s.Instances, in) {
		return nil, nil
	}
	for _, stored := range s.Revisions {
		record, err := revision.Decode(stored)
		if err != nil {
			return nil, err
		}
		hash, err := record.Hash()
		if err != nil {
			return nil, err
		}
		if hash == current {
			return &revision.Target{Record: record, Hash: hash, Stored: true}, nil
		}
	}
	return nil, nil
}

// foreseen is a snapshot with the members at the wanted revision that the plan lets
// have it: of a canary they are those that count, whoever is made beside them.
func (p *Plan) foreseen(s Snapshot) Snapshot {
	s.Instances = slices.Clone(s.Instances)
	for n, i := range s.Instances {
		taken := p.Lease.Take != nil && p.Lease.Take.Verb == Restart && p.Lease.state().Names(i.Name)
		if i.DeletionTimestamp == nil && (taken || p.granted[i.Name] || p.disrupted[i.Name] == Restart) {
			s.Instances[n] = i.DeepCopy()
			s.Instances[n].Spec.Revision = p.Target.Hash
		}
	}
	return s
}

// newcomer renders a member that is added. While a roll is put off it is made of
// what the others run, so that neither the order of an upgrade nor a canary is
// overtaken by a scale-out or a repair.
func newcomer(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, old *revision.Target, slot int32, surge bool) (*v1alpha1.Instance, error) {
	if surge {
		desired, err := newInstance(g, r, plan.Target, slot)
		if err == nil {
			setAnnotation(desired, v1alpha1.AnnotationSurge, surgeOn)
		}
		return desired, err
	}
	if old != nil {
		desired, err := newInstance(g, r, *old, slot)
		if err != nil || plan.taking || putOff(g, s, r, Disruption{Instance: desired, Verb: Restart}, plan.Target.Hash).Kind != step.KindDone {
			return desired, err
		}
	}
	return newInstance(g, r, plan.Target, slot)
}

// startPatience is for how long a member that starts is left alone although it
// is to have another revision: longer, and it may be the old one that keeps it
// from serving.
const startPatience = 2 * time.Minute

// overtakes says that a member which does not serve is about to, at the revision
// that all had and whose successor has to wait; Done if it may have the new one at once. A member
// that has a reason not to serve never waits: what is pending may be the cure, if it
// is not its node that is silent.
func overtakes(g v1alpha1.Group, s Snapshot, r Rendering, d Disruption, revision string) step.Outcome {
	hold := putOff(g, s, r, d, revision)
	if Unreachable(d.Instance) && d.Instance.DeletionTimestamp == nil && d.Instance.Spec.Revision != revision {
		// Nothing of it is mended by another revision, nor can anybody see what it
		// makes of it.
		if hold.Kind == step.KindDone && limited(g, revision) {
			return step.Wait("Instance", waitDeadline, v1alpha1.ReasonUpdateHeld, fmt.Sprintf("Instance %s (%s): its node does not answer, and it is none of those that spec.disruption.updateAtMost asks for", d.Instance.Name, d.Why))
		}
		return hold
	}
	if hold.Kind == step.KindDone || d.Instance.Spec.Revision != g.GetGroupStatus().CurrentRevision {
		return step.Done()
	}
	left := patience(s, d.Instance)
	if left <= 0 {
		return step.Done()
	}
	hold.After = left
	return hold
}

// patience is for how long yet a member that starts is left alone; not above 0 if
// it is no longer, or has a reason not to serve.
func patience(s Snapshot, i *v1alpha1.Instance) time.Duration {
	if telling(InstanceOutcome(i)) > onItsWay {
		return 0
	}
	since := i.CreationTimestamp.Time
	if ready := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady); ready != nil {
		since = ready.LastTransitionTime.Time
	}
	return startPatience - s.Now.Sub(since)
}
