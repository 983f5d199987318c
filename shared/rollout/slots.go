package rollout

import "slices"

// Slots is which slots to fill and which are above what is wanted.
type Slots struct {
	// Create are the slots to fill, lowest first.
	Create []int32
	// Surplus are the filled slots above what is wanted, highest first.
	Surplus []int32
}

// PlanSlots compares the filled slots with the number of members wanted. Slots
// in skip are never filled.
func PlanSlots(filled []int32, want int32, skip map[int32]bool) Slots {
	have := slices.Sorted(slices.Values(filled))
	have = slices.Compact(have)
	var plan Slots
	missing := int(want) - len(have)
	for slot := int32(0); missing > 0; slot++ {
		if _, taken := slices.BinarySearch(have, slot); taken || skip[slot] {
			continue
		}
		plan.Create = append(plan.Create, slot)
		missing--
	}
	for i := len(have) - 1; i >= 0 && missing < 0; i-- {
		plan.Surplus = append(plan.Surplus, have[i])
		missing++
	}
	return plan
}
