package scaling

import (
	"cmp"
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

// PlanSurge returns how many more members there are to be so that none is missed while
// others are restarted: from before the first is stopped until all are back. An annotation
// on the additional members records that a surge is on.
func PlanSurge(in planning.Inputs, living []planning.InstanceDiff) int32 {
	if in.Rendering.Surge <= 0 || in.Group.GetComponentSpec().Suspended {
		return 0
	}
	var due, on, leaving int32
	away := false
	for _, m := range living {
		switch {
		case m.Live.DeletionTimestamp != nil:
			continue
		case member.IsSurge(m.Live) && m.Live.Spec.Retire:
			leaving++
		case member.IsSurge(m.Live):
			on++
		case !m.Live.Spec.Retire && !member.IsSettled(m.Live):
			away = true
		}
		d := component.Disruption{Instance: m.Live, Verb: member.Restart, Why: m.RestartReason.Text()}
		if m.RestartReason.IsGiven() && !in.Rendering.Component.IsNotServing(m.Live) && rollout.CheckUserHolds(in.Group, in.Snapshot, in.Rendering, d, in.Target.Hash).Kind == step.KindDone {
			due++
		}
	}
	// A member that leaves keeps its annotation until another has it; they count once.
	on = max(on, leaving)
	if due == 0 && (on == 0 || !away) {
		return 0
	}
	return min(in.Rendering.Surge, max(due, on))
}

// SurgeMembers names the members that are there for a surge: the newest of those beyond
// what is wanted without one. A member that leaves does not count, or the record that a
// surge is on would go with it.
func SurgeMembers(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, surge int32, leaving planning.Removal) map[string]bool {
	var staying []*v1alpha1.Instance
	out := map[string]bool{}
	for _, i := range s.Instances {
		_, leaves := leaving.Candidates[i.Name]
		switch {
		case !workload.IsOwned(g, i) || i.DeletionTimestamp != nil:
		case !leaves:
			staying = append(staying, i)
		case surge > 0 && member.IsSurge(i):
			out[i.Name] = true
		}
	}
	slices.SortFunc(staying, func(a, b *v1alpha1.Instance) int { return cmp.Compare(b.Spec.Slot, a.Spec.Slot) })
	for n := range min(len(staying)-int(g.GetReplicas()+r.Extra), int(surge)) {
		out[staying[n].Name] = true
	}
	return out
}
