package step_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/step"
)

func TestTheMostPressingOutcomeWins(t *testing.T) {
	stall := step.Stall("InvalidSpec", "fix it")
	fail := step.Fail("RequestFailed", errors.New("no"))
	wait := step.Wait("PDGroup", time.Minute, "WaitingForPDGroup", "wait")
	after := step.RetryAfter(time.Second, "Progressing", "soon")

	assert.Equal(t, step.Done(), step.Worst())
	got := step.Worst(after, wait, fail, stall)
	assert.Equal(t, stall.Reason, got.Reason)
	assert.Equal(t, time.Second, got.After, "what wanted to look again soon still does")
	assert.Equal(t, stall, step.Worst(stall))
	assert.Equal(t, fail, step.Worst(after, wait, fail))
	got = step.Worst(after, wait, step.Done())
	assert.Equal(t, wait.Source, got.Source)
	assert.Equal(t, time.Second, got.After)
	assert.Equal(t, after, step.Worst(step.Done(), after))
	later := step.RetryAfter(time.Hour, "Draining", "later")
	got = step.Worst(later, after)
	assert.Equal(t, later.Reason, got.Reason, "the first among equals")
	assert.Equal(t, time.Second, got.After, "who wants to look again later hides none that wants to look soon")
}
