package group

import (
	"cmp"
	"maps"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// surgeOn is the value of the annotation on members beyond spec.replicas.
const surgeOn = "true"

// planSurge returns how many members there are to be beyond those wanted, so
// that none is missed while others are restarted: from before the first is
// stopped until all are back. That a surge is on is remembered by an annotation
// on the members beyond.
func planSurge(plan *Plan, g v1alpha1.Group, s Snapshot, r Rendering, living []resident) int32 {
	if r.Surge <= 0 || g.GetComponentSpec().Suspended {
		return 0
	}
	var due, on, parting int32
	away := false
	for _, m := range living {
		switch {
		case m.live.DeletionTimestamp != nil:
			continue
		case surges(m.live) && m.live.Spec.Retire:
			parting++
		case surges(m.live):
			on++
		case !m.live.Spec.Retire && !Settled(m.live):
			away = true
		}
		d := Disruption{Instance: m.live, Verb: Restart, Why: m.restart}
		if m.restart != "" && !r.Disrupt.Spare(m.live) && putOff(g, s, r, d, plan.Target.Hash).Kind == step.KindDone {
			due++
		}
	}
	// One that leaves keeps its mark until another has it, and they count once.
	on = max(on, parting)
	if due == 0 && (on == 0 || !away) {
		return 0
	}
	return min(r.Surge, max(due, on))
}

// surges reports whether an Instance is one of those beyond spec.replicas.
func surges(i *v1alpha1.Instance) bool { return i.Annotations[v1alpha1.AnnotationSurge] != "" }

// Settled reports whether an Instance is Ready with the pod that its spec asks
// for.
func Settled(i *v1alpha1.Instance) bool {
	return InstanceReady(i) && i.Status.Revision == i.Spec.Revision && i.Status.PodUID != "" && i.Status.PodUID != i.Spec.StopPod
}

// beyond names the members that are there for a surge: the newest of those
// beyond what is wanted without one. One that leaves is none of them, or with it
// would go the memory that a surge is on.
func beyond(g v1alpha1.Group, s Snapshot, r Rendering, surge int32, leaving removal) map[string]bool {
	var staying []*v1alpha1.Instance
	out := map[string]bool{}
	for _, i := range s.Instances {
		_, leaves := leaving.victims[i.Name]
		switch {
		case !Ours(g, i) || i.DeletionTimestamp != nil:
		case !leaves:
			staying = append(staying, i)
		case surge > 0 && surges(i):
			out[i.Name] = true
		}
	}
	slices.SortFunc(staying, func(a, b *v1alpha1.Instance) int { return cmp.Compare(b.Spec.Slot, a.Spec.Slot) })
	for n := range min(len(staying)-int(g.GetReplicas()+r.Extra), int(surge)) {
		out[staying[n].Name] = true
	}
	return out
}

// planSlots finds the slots to fill, and those for a surge: these are beyond all
// others, so that the others keep their names. A member that is replaced before
// it has gone keeps its slot and does not count, also while its pod stops; so does a slot with the retired
// claim of a former member.
func planSlots(g v1alpha1.Group, s Snapshot, r Rendering, surge int32) (slots, extra []int32) {
	var filled []int32
	last := int32(-1)
	skip := maps.Clone(s.RetiredSlots)
	if skip == nil {
		skip = map[int32]bool{}
	}
	for _, i := range s.Instances {
		last = max(last, i.Spec.Slot)
		if i.DeletionTimestamp != nil && (held(i) || drained(i)) && Ours(g, i) && r.Disrupt.Replaced(i) {
			skip[i.Spec.Slot] = true
			continue
		}
		filled = append(filled, i.Spec.Slot)
	}
	want := g.GetReplicas() + r.Extra
	if slot, awaited := s.awaited(g); awaited && !skip[slot] && !slices.Contains(filled, slot) {
		// Its store is in the database and has to leave it if it is one too many.
		r.First, want = []int32{slot}, max(want, int32(len(filled))+1) //nolint:gosec // a few
	}
	slots = rollout.PlanSlots(filled, want, skip).Create
	first := slices.DeleteFunc(slices.Clone(r.First), func(slot int32) bool { return skip[slot] || slices.Contains(filled, slot) })
	rest := slices.DeleteFunc(slices.Clone(slots), func(slot int32) bool { return slices.Contains(first, slot) })
	slots = slices.Concat(first, rest)[:len(slots)]
	for _, slot := range slots {
		last = max(last, slot)
	}
	missing := int(want+surge) - len(filled) - len(slots)
	for slot := last + 1; len(extra) < missing; slot++ {
		if !skip[slot] {
			extra = append(extra, slot)
		}
	}
	return slots, extra
}
