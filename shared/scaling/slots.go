package scaling

import (
	"maps"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// RenderNewInstance renders an Instance for an empty slot. While a roll is held back it
// gets the revision that the others run, so that a scale-out or a replacement breaks
// neither the order of an upgrade nor the limit of a canary. The same holds while members
// are applying a configuration: they have not shown yet that it works.
func RenderNewInstance(in planning.Inputs, old *revision.Target, slot int32, surge, applying bool) (*v1alpha1.Instance, error) {
	if surge {
		desired, err := component.NewInstance(in.Group, in.Rendering, in.Target, slot)
		if err == nil {
			member.SetAnnotation(desired, v1alpha1.AnnotationSurge, member.SurgeValue)
		}
		return desired, err
	}
	if old != nil {
		desired, err := component.NewInstance(in.Group, in.Rendering, *old, slot)
		if err != nil || applying || rollout.CheckUserHolds(in.Group, in.Snapshot, in.Rendering, component.Disruption{Instance: desired, Verb: member.Restart}, in.Target.Hash).Kind != step.KindDone {
			return desired, err
		}
	}
	return component.NewInstance(in.Group, in.Rendering, in.Target, slot)
}

// PlanSlots finds the slots to fill, and those for a surge, which come after all others. A
// member that is replaced before it has gone keeps its slot and does not count, also while
// its pod stops. A slot with the retired claim of a former member is never filled.
func PlanSlots(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, surge int32) (slots, extra []int32) {
	var filled []int32
	last := int32(-1)
	skip := maps.Clone(s.RetiredSlots)
	if skip == nil {
		skip = map[int32]bool{}
	}
	for _, i := range s.Instances {
		last = max(last, i.Spec.Slot)
		if i.DeletionTimestamp != nil && (member.HasMemberFinalizer(i) || member.IsDrained(i)) && workload.IsOwned(g, i) && r.Component.IsReplacedWhenDeleted(i) {
			skip[i.Spec.Slot] = true
			continue
		}
		filled = append(filled, i.Spec.Slot)
	}
	want := g.GetReplicas() + r.Extra
	awaited := slices.Clone(r.AwaitedSlots)
	if slot, recreated := s.RecreatedSlot(g); recreated && !slices.Contains(awaited, slot) {
		awaited = append(awaited, slot)
	}
	awaited = slices.DeleteFunc(awaited, func(slot int32) bool { return skip[slot] || slices.Contains(filled, slot) })
	if len(awaited) > 0 {
		// Their stores are in the database and have to leave it if they are too many.
		r.PreferredSlots, want = awaited, max(want, int32(len(filled)+len(awaited))) //nolint:gosec // a few
	}
	slots = freeSlots(filled, want, skip)
	first := slices.DeleteFunc(slices.Clone(r.PreferredSlots), func(slot int32) bool { return skip[slot] || slices.Contains(filled, slot) })
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
