package planning

import (
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// Deadline of a wait that a watch is to end before.
	Deadline = time.Minute
	// Recheck is how soon a state that nothing reports the end of, such as a
	// stranger's pod, is looked at again.
	Recheck = 15 * time.Second
	// RefusalRecheck is how soon the API server is asked again for what a quota,
	// a LimitRange or a StorageClass has not let it do.
	RefusalRecheck = 5 * time.Second
	// ReturnRecheck is how soon a claim that is lost is looked for again: one that
	// a user restores carries none of the labels by which we would see it come.
	ReturnRecheck = 3 * time.Second
)

// Wait returns the end of a step that a watch on source will wake up.
func Wait(source, reason, format string, args ...any) step.Outcome {
	return step.Wait(source, Deadline, reason, fmt.Sprintf(format, args...))
}

// Stall returns the end of a step that only a user can help. It is looked at
// again after a while, because what helps may happen where no watch sees it.
func Stall(reason, format string, args ...any) step.Outcome {
	o := step.Stall(reason, fmt.Sprintf(format, args...))
	o.After = Recheck
	return o
}
