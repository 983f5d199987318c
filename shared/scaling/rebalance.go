package scaling

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// RebalanceSurplus returns the member that spec.rebalance has added and for which none
// leaves yet; nil if there is none.
func RebalanceSurplus(g v1alpha1.Group, instances []*v1alpha1.Instance) *v1alpha1.Instance {
	at := slices.IndexFunc(instances, func(i *v1alpha1.Instance) bool {
		return workload.IsOwned(g, i) && i.DeletionTimestamp == nil && !i.Spec.Retire && i.Annotations[v1alpha1.AnnotationRebalance] != ""
	})
	if at < 0 {
		return nil
	}
	return instances[at]
}

// PlanRebalance returns how many more members there are to be so that one of the fullest
// place can leave, whether the one that was added keeps its annotation, and what is waited
// for.
//
// One is added while nothing else is in progress, and annotated. When all are Ready one
// leaves, if the members lie more evenly then than before. If not, the new one stays and
// none is added: it would come to the same place again. So each round brings the group
// nearer to its end, whatever the scheduler does.
func PlanRebalance(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, living []planning.InstanceDiff, revision string) (extra int32, keep bool, o step.Outcome) {
	none := step.Done()
	wait := func(text string) step.Outcome {
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonRebalancing, text)
	}
	if r.Spread.By == "" || s.PDGroup == nil || s.PDGroup.Status.ClusterID == "" {
		return 0, false, none
	}
	added := RebalanceSurplus(g, s.Instances)
	if g.GetComponentSpec().Suspended {
		return 0, added != nil, none
	}
	staying, busy, restarts, leaves := 0, false, false, false
	for _, m := range living {
		if m.Live.DeletionTimestamp != nil || member.ReplacementReason(g, m.Live).IsGiven() {
			return 0, false, none // the one that was added takes the place of that one
		}
		staying++
		leaves = leaves || m.Live.Spec.Retire
		busy = busy || !m.Live.Spec.Retire && !member.IsSettled(m.Live)
		restarts = restarts || m.RestartReason.IsGiven()
	}
	surplus := staying - int(g.GetReplicas()+r.Extra)
	switch {
	case added != nil && surplus > 0:
		switch {
		case r.DatabaseUnknown:
			return 1, true, none
		case leaves, r.Spread.Unneeded:
			return 0, false, none
		case busy:
			return 1, true, wait("Instance " + added.Name + " was added; a member leaves the fullest place when all are Ready")
		case r.Spread.Unknown.IsGiven():
			return 1, true, wait(r.Spread.Unknown.Text())
		case r.Spread.NoGain.IsGiven():
			return 1, true, wait(r.Spread.NoGain.Text())
		}
		return 0, true, none
	case added != nil:
		return 0, r.Extra > 0, none // it is one of those that are wanted, if not in place of one that is to come back
	case r.DatabaseUnknown || surplus != 0 || busy || restarts || leaves:
		return 0, false, none // that comes first, and is reported by itself
	case r.Spread.Unknown.IsGiven():
		return 0, false, wait(r.Spread.Unknown.Text())
	case !r.Spread.Uneven.IsGiven():
		return 0, false, none
	}
	if hold := rollout.CheckUserHolds(g, s, r, component.Disruption{Instance: living[0].Live, Verb: member.Remove, Why: r.Spread.Uneven.Text()}, revision); hold.Kind != step.KindDone {
		return 0, false, hold
	}
	return 1, false, wait(r.Spread.Uneven.Text() + ": a member is added, then one leaves the fullest place")
}
