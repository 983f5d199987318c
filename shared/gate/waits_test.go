package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/shared/gate"
)

func TestAnOperatorIsNotCalledOverdueBeforeItHadTime(t *testing.T) {
	w, start := &gate.Waits{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	after := func(d time.Duration, generation, said int64) bool {
		pd := pdGroup(generation, said, metav1.ConditionTrue)
		return w.IsOverdue(pd, pd.Status.Conditions, start.Add(d))
	}
	assert.False(t, after(0, 1, 1), "it has answered")
	assert.False(t, after(time.Hour, 2, 1), "it was changed a moment ago")
	assert.False(t, after(time.Hour+9*time.Second, 2, 1))
	assert.True(t, after(time.Hour+10*time.Second, 2, 1))
	assert.False(t, after(time.Hour+11*time.Second, 3, 1), "changed once more")
	assert.False(t, after(time.Hour+30*time.Second, 3, 3))
	assert.False(t, after(time.Hour+31*time.Second, 4, 3), "the time counts from the last answer")
	assert.False(t, (*gate.Waits)(nil).IsOverdue(pdGroup(2, 1, metav1.ConditionTrue), nil, start))
}
