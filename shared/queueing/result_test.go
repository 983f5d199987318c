package queueing_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func TestEveryWaitHasADeadline(t *testing.T) {
	result, err := queueing.ResultOf(step.Wait("PDGroup", time.Minute, "WaitingForPDGroup", "wait"))
	assert.NoError(t, err)
	assert.Equal(t, reconcile.Result{RequeueAfter: time.Minute}, result)
}

func TestOnlyAFailureIsRetriedWithBackoff(t *testing.T) {
	boom := errors.New("boom")
	_, err := queueing.ResultOf(step.Fail("RequestFailed", boom))
	assert.ErrorIs(t, err, boom)
	for _, o := range []step.Outcome{step.Done(), step.Stall("InvalidSpec", "fix it")} {
		result, err := queueing.ResultOf(o)
		assert.NoError(t, err)
		assert.Zero(t, result)
	}
}

func TestTheSoonestOfSeveralTimesCounts(t *testing.T) {
	for _, c := range []struct {
		outcome step.Outcome
		limits  []time.Duration
		want    time.Duration
	}{
		{step.Done(), nil, 0},
		{step.Done(), []time.Duration{0, time.Minute, time.Second}, time.Second},
		{step.RetryAfter(time.Second, "Draining", "soon"), []time.Duration{time.Minute, 0}, time.Second},
		{step.RetryAfter(time.Hour, "Draining", "later"), []time.Duration{time.Minute}, time.Minute},
	} {
		result, err := queueing.ResultOf(c.outcome, c.limits...)
		assert.NoError(t, err)
		assert.Equal(t, c.want, result.RequeueAfter)
	}
}
