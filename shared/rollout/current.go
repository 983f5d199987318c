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

// CurrentTarget returns the revision that all members last had in common, if it is not the
// wanted one and some members still have it; else nil.
func CurrentTarget(in planning.Inputs) (*revision.Target, error) {
	current := in.Group.GetGroupStatus().CurrentRevision
	if current == "" || current == in.Target.Hash {
		return nil, nil
	}
	// If all have left, for example because all were deleted at once, it is theirs.
	stays := slices.ContainsFunc(in.Snapshot.Instances, func(i *v1alpha1.Instance) bool { return workload.IsOwned(in.Group, i) && !member.HasLeft(i) })
	has := func(i *v1alpha1.Instance) bool {
		return workload.IsOwned(in.Group, i) && (!member.HasLeft(i) || !stays) && i.Spec.Revision == current
	}
	if !slices.ContainsFunc(in.Snapshot.Instances, has) {
		return nil, nil
	}
	for _, stored := range in.Snapshot.Revisions {
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

// startTimeout is how long a member that starts is left alone although it is to have
// another revision. After that the old revision may be what keeps it from serving.
const startTimeout = 2 * time.Minute

// HoldForStart says that a member which does not serve may still start at the revision
// that all had, whose successor is held back; Done if it may have the new one at once. A
// member that has a reason not to serve does not wait, because the new revision may be the
// cure, unless its node does not answer.
func HoldForStart(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, d component.Disruption, revision string) step.Outcome {
	hold := CheckUserHolds(g, s, r, d, revision)
	if member.IsUnreachable(d.Instance) && d.Instance.DeletionTimestamp == nil && d.Instance.Spec.Revision != revision {
		// Another revision does not help it, and nothing can be seen of how it does with one.
		if hold.Kind == step.KindDone && IsCanaryLimited(g, revision) {
			return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonUpdateHeld, fmt.Sprintf("Instance %s (%s): its node does not answer, and it does not count for spec.disruption.updateAtMost", d.Instance.Name, d.Why))
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

// StartTimeLeft is how much longer a member that starts is left alone; 0 or less if it is
// not, or if it has a reason not to serve.
func StartTimeLeft(s observation.Snapshot, i *v1alpha1.Instance) time.Duration {
	switch {
	case member.IsStoppedOnPurpose(i):
		return startTimeout // it was just resumed
	case member.Specificity(member.OutcomeOf(i)) > member.SpecificityOfStarting:
		return 0
	}
	since := i.CreationTimestamp.Time
	if ready := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady); ready != nil {
		since = ready.LastTransitionTime.Time
	}
	return startTimeout - s.Now.Sub(since)
}
