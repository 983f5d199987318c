package scaling

import (
	"fmt"
	"slices"
	"testing"
)

// slotsEnumerated bounds the slots whose every combination is planned.
const slotsEnumerated = 8

// TestEveryCombinationOfSlots plans every set of filled slots with every set of
// slots to skip and every number wanted.
func TestEveryCombinationOfSlots(t *testing.T) {
	checked := 0
	for filledBits := range 1 << slotsEnumerated {
		filled := slotsOf(filledBits)
		for skipBits := range 1 << slotsEnumerated {
			skip := map[int32]bool{}
			for _, slot := range slotsOf(skipBits) {
				skip[slot] = true
			}
			for want := int32(0); want <= slotsEnumerated; want++ {
				checked++
				if wrong := wrongSlots(filled, want, skip, freeSlots(filled, want, skip)); wrong != "" {
					t.Fatalf("filled %v, want %d, skip %v: %s", filled, want, skip, wrong)
				}
			}
		}
	}
	fmt.Printf("exhaustive: slots: %d combinations of %d filled × %d skipped × %d wanted\n", checked, 1<<slotsEnumerated, 1<<slotsEnumerated, slotsEnumerated+1)
}

func slotsOf(bits int) []int32 {
	var out []int32
	for slot := range int32(slotsEnumerated) {
		if bits&(1<<slot) != 0 {
			out = append(out, slot)
		}
	}
	return out
}

// wrongSlots says what is wrong with the slots to fill, empty if nothing is.
func wrongSlots(filled []int32, want int32, skip map[int32]bool, free []int32) string {
	missing := int(want) - len(filled)
	if len(free) != max(0, missing) {
		return fmt.Sprintf("%d slots are filled, not %d", len(free), max(0, missing))
	}
	for at, slot := range free {
		switch {
		case skip[slot]:
			return fmt.Sprintf("slot %d is filled, which is to be skipped", slot)
		case slices.Contains(filled, slot):
			return fmt.Sprintf("slot %d is filled twice", slot)
		}
		// It is the lowest that was left.
		for lower := range slot {
			if !skip[lower] && !slices.Contains(filled, lower) && !slices.Contains(free[:at], lower) {
				return fmt.Sprintf("slot %d is filled before slot %d", slot, lower)
			}
		}
	}
	return ""
}
