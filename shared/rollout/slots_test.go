package rollout_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/shared/rollout"
)

func TestPlanSlots(t *testing.T) {
	for name, c := range map[string]struct {
		filled []int32
		want   int32
		skip   map[int32]bool
		plan   rollout.Slots
	}{
		"a new group fills from zero":            {nil, 3, nil, rollout.Slots{Create: []int32{0, 1, 2}}},
		"a hole is filled first":                 {[]int32{0, 2}, 3, nil, rollout.Slots{Create: []int32{1}}},
		"the highest slots are surplus":          {[]int32{0, 1, 2, 3}, 2, nil, rollout.Slots{Surplus: []int32{3, 2}}},
		"a slot with a retired claim is skipped": {[]int32{0}, 2, map[int32]bool{1: true}, rollout.Slots{Create: []int32{2}}},
		"a full group needs nothing":             {[]int32{0, 1}, 2, nil, rollout.Slots{}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.plan, rollout.PlanSlots(c.filled, c.want, c.skip)) })
	}
}

func TestAPlanAlwaysReachesTheWantedNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		filled := rapid.SliceOfDistinct(rapid.Int32Range(0, 20), func(i int32) int32 { return i }).Draw(t, "filled")
		want := rapid.Int32Range(0, 20).Draw(t, "want")
		skip := rapid.MapOf(rapid.Int32Range(0, 20), rapid.Just(true)).Draw(t, "skip")
		plan := rollout.PlanSlots(filled, want, skip)
		after := slices.DeleteFunc(append(slices.Clone(filled), plan.Create...), func(s int32) bool { return slices.Contains(plan.Surplus, s) })
		assert.Len(t, after, int(want))
		for _, slot := range plan.Create {
			assert.False(t, skip[slot])
			assert.NotContains(t, filled, slot)
		}
		assert.Zero(t, rollout.PlanSlots(after, want, skip))
	})
}
