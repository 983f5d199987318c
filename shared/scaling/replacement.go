package scaling

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// PlanReplacements returns how many more members there are to be so that one can be
// replaced. One is added first, and an old one leaves when all new ones are Ready. Only
// the members themselves record that, so it goes on after a crash, and ends when the
// request is withdrawn.
func PlanReplacements(g v1alpha1.Group, s observation.Snapshot, r component.Rendering) int32 {
	// While some members stand in for others that are to come back, it is not known
	// whose place a new one would take.
	if r.Extra > 0 || s.PDGroup == nil || s.PDGroup.Status.ClusterID == "" || g.GetComponentSpec().Suspended {
		return 0
	}
	var old []*v1alpha1.Instance
	staying, unsettled, changed := int32(0), false, false
	for _, i := range s.Instances {
		if !workload.IsOwned(g, i) || i.DeletionTimestamp != nil {
			continue
		}
		staying++
		changed = changed || member.ReplacesVolumes(g) && member.IsClassChanged(g, i)
		switch {
		case i.Spec.Retire:
			return 0 // that comes first; one that is to be replaced is not missed
		case !member.ReplacementReason(g, i).IsGiven():
			unsettled = unsettled || !member.IsSettled(i)
		default:
			old = append(old, i)
		}
	}
	if changed { // the volumes of new members would be no better
		old = slices.DeleteFunc(old, func(i *v1alpha1.Instance) bool { return !member.IsReplaceRequested(i) })
	}
	if len(old) == 0 {
		return 0
	}
	if staying > g.GetReplicas() {
		if unsettled {
			return 1
		}
		return 0
	}
	if rollout.CheckUserHolds(g, s, r, component.Disruption{Instance: old[0], Verb: member.Remove}, "").Kind != step.KindDone {
		return 0
	}
	return 1
}

// ReplacementOutcome names a member that is to be replaced because a user asked, and how
// far that is.
func ReplacementOutcome(g v1alpha1.Group, s observation.Snapshot, r component.Rendering) step.Outcome {
	left, first := 0, (*v1alpha1.Instance)(nil)
	for _, i := range s.Instances {
		if workload.IsOwned(g, i) && i.DeletionTimestamp == nil && member.IsReplaceRequested(i) {
			if left++; left == 1 {
				first = i
			}
		}
	}
	if left == 0 {
		return step.Done()
	}
	// While a group is suspended, do not wait for a postponed replacement.
	d := component.Disruption{Instance: first, Verb: member.Remove, Why: member.ReplacementReason(g, first).Text()}
	if hold := rollout.CheckUserHolds(g, s, r, d, ""); hold.Kind != step.KindDone && !g.GetComponentSpec().Suspended {
		return hold
	}
	return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonReplacementPending, fmt.Sprintf(
		"Instance %s will be replaced (%s); members left to replace: %d; to keep it: kubectl -n %s annotate instance %s %s-",
		first.Name, d.Why, left, g.GetNamespace(), first.Name, v1alpha1.AnnotationReplace))
}
