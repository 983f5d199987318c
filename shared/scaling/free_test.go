package scaling

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestFreeSlots(t *testing.T) {
	for name, c := range map[string]struct {
		filled []int32
		want   int32
		skip   map[int32]bool
		free   []int32
	}{
		"a new group fills from zero":            {nil, 3, nil, []int32{0, 1, 2}},
		"a hole is filled first":                 {[]int32{0, 2}, 3, nil, []int32{1}},
		"too many fill none":                     {[]int32{0, 1, 2, 3}, 2, nil, nil},
		"a slot with a retired claim is skipped": {[]int32{0}, 2, map[int32]bool{1: true}, []int32{2}},
		"a full group needs nothing":             {[]int32{0, 1}, 2, nil, nil},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, c.free, freeSlots(c.filled, c.want, c.skip)) })
	}
}

func TestFreeSlotsReachTheWantedNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		filled := rapid.SliceOfDistinct(rapid.Int32Range(0, 20), func(i int32) int32 { return i }).Draw(t, "filled")
		want := rapid.Int32Range(0, 20).Draw(t, "want")
		skip := rapid.MapOf(rapid.Int32Range(0, 20), rapid.Just(true)).Draw(t, "skip")
		after := append(slices.Clone(filled), freeSlots(filled, want, skip)...)
		assert.Len(t, after, max(int(want), len(filled)))
		assert.Empty(t, freeSlots(after, want, skip))
	})
}
