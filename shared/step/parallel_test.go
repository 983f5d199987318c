package step_test

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/step"
)

func TestOneFailureDoesNotStopTheOtherWork(t *testing.T) {
	var done atomic.Int32
	work := []func() step.Outcome{func() step.Outcome { return step.Fail("RequestFailed", errors.New("no")) }}
	for range 20 {
		work = append(work, func() step.Outcome { done.Add(1); return step.Done() })
	}
	assert.Equal(t, step.KindFail, step.RunInParallel(work...).Kind)
	assert.EqualValues(t, 20, done.Load())
	assert.Equal(t, step.Done(), step.RunInParallel())
}

func TestAPanicOfAGoroutineIsRaisedInItsCaller(t *testing.T) {
	assert.PanicsWithValue(t, "boom", func() {
		step.RunInParallel(step.Done, func() step.Outcome { panic("boom") })
	})
}
