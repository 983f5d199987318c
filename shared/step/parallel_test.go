package step_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/step"
)

func TestOnePieceThatFailsKeepsNoOtherFromBeingDone(t *testing.T) {
	var done atomic.Int32
	work := []func() step.Outcome{func() step.Outcome { return step.Fail("RequestFailed", errors.New("no")) }}
	for range 20 {
		work = append(work, func() step.Outcome { done.Add(1); return step.Done() })
	}
	assert.Equal(t, step.KindFail, step.Parallel(work...).Kind)
	assert.EqualValues(t, 20, done.Load())
	assert.Equal(t, step.Done(), step.Parallel())
}

func TestAPanicComesOutWhereItCanBeContained(t *testing.T) {
	assert.PanicsWithValue(t, "boom", func() {
		step.Parallel(step.Done, func() step.Outcome { panic("boom") })
	})
}
