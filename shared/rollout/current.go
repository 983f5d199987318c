package rollout

import (
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// CurrentTarget returns the revision that all members last had in common, if it is
// another one than the wanted one and some that are members still have it; else nil.
func CurrentTarget(plan *planning.Plan, g v1alpha1.Group, s observation.Snapshot) (*revision.Target, error) {
	current := g.GetGroupStatus().CurrentRevision
	if current == "" || current == plan.Target.Hash {
		return nil, nil
	}
	// Where all have left, such as by being deleted at once, it is theirs that waits.
	stays := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return workload.IsOwned(g, i) && !member.HasLeft(i) })
	in := func(i *v1alpha1.Instance) bool {
		return workload.IsOwned(g, i) && (!member.HasLeft(i) || !stays) && i.Spec.Revision == current
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

// startTimeout is for how long a member that starts is left alone although it
// is to have another revision: longer, and it may be the old one that keeps it
// from serving.
const startTimeout = 2 * time.Minute

// HoldForStart says that a member which does not serve is about to, at the revision
// that all had and whose successor has to wait; Done if it may have the new one at once. A member
// that has a reason not to serve never waits: what is pending may be the cure, if it
// is not its node that is silent.
func HoldForStart(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, d component.Disruption, revision string) step.Outcome {
	hold := CheckUserHolds(g, s, r, d, revision)
	if member.IsUnreachable(d.Instance) && d.Instance.DeletionTimestamp == nil && d.Instance.Spec.Revision != revision {
		// Nothing of it is mended by another revision, nor can anybody see what it
		// makes of it.
		if hold.Kind == step.KindDone && IsCanaryLimited(g, revision) {
			return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonUpdateHeld, fmt.Sprintf("Instance %s (%s): its node does not answer, and it is none of those that spec.disruption.updateAtMost asks for", d.Instance.Name, d.Why))
		}
		return hold
	}
	if hold.Kind == step.KindDone || d.Instance.Spec.Revision != g.GetGroupStatus().CurrentRevision {
		return step.Done()
	}
	left := StartTimeLeft(s, d.Instance)
	if left <= 0 {
		return step.Done()
	}
	hold.After = left
	return hold
}

// StartTimeLeft is for how long yet a member that starts is left alone; not above 0 if
// it is no longer, or has a reason not to serve.
func StartTimeLeft(s observation.Snapshot, i *v1alpha1.Instance) time.Duration {
	if member.Specificity(member.OutcomeOf(i)) > member.SpecificityOfStarting {
		return 0
	}
	since := i.CreationTimestamp.Time
	if ready := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady); ready != nil {
		since = ready.LastTransitionTime.Time
	}
	return startTimeout - s.Now.Sub(since)
}
