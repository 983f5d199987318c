package scaling

import "slices"

// freeSlots returns the slots to fill for a number of members, lowest first. Slots in skip
// are never filled.
func freeSlots(filled []int32, want int32, skip map[int32]bool) []int32 {
	var out []int32
	filled = slices.Compact(slices.Sorted(slices.Values(filled)))
	missing := int(want) - len(filled)
	for slot := int32(0); len(out) < missing; slot++ {
		if !skip[slot] && !slices.Contains(filled, slot) {
			out = append(out, slot)
		}
	}
	return out
}
