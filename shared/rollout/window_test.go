package rollout

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

func TestAMaintenanceWindowHoldsARestartUntilItOpens(t *testing.T) {
	hour := metav1.Duration{Duration: time.Hour}
	night := v1alpha1.MaintenanceWindow{Schedule: "0 2 * * *", Duration: hour}
	never := v1alpha1.MaintenanceWindow{Schedule: "0 2 30 2 *", Duration: hour}
	at := func(clock string) time.Time {
		now, err := time.Parse("15:04:05", clock)
		assert.NoError(t, err)
		return now.AddDate(2026, 0, 0)
	}
	const opens = "the next maintenance window opens at 2026-01-01T02:00:00Z"
	for name, c := range map[string]struct {
		windows []v1alpha1.MaintenanceWindow
		now     string
		message string
		after   time.Duration
	}{
		"long before":        {[]v1alpha1.MaintenanceWindow{night}, "00:00:00", opens, time.Hour},
		"right before":       {[]v1alpha1.MaintenanceWindow{night}, "01:59:59", opens, 2 * time.Second},
		"when it opens":      {[]v1alpha1.MaintenanceWindow{night}, "02:00:00", "", 0},
		"right before it is": {[]v1alpha1.MaintenanceWindow{night}, "02:59:59", "", 0},
		"closed":             {[]v1alpha1.MaintenanceWindow{night}, "03:00:00", "the next maintenance window opens at 2026-01-02T02:00:00Z", time.Hour},
		"one of two opens":   {[]v1alpha1.MaintenanceWindow{never, night}, "00:00:00", opens, time.Hour},
		"none ever opens":    {[]v1alpha1.MaintenanceWindow{never}, "00:00:00", "no maintenance window ever opens: correct spec.disruption.windows: kubectl -n ns edit tikvgroup kv", member.WaitDeadline},
		"nor a moment later": {[]v1alpha1.MaintenanceWindow{never}, "00:00:07", "no maintenance window ever opens: correct spec.disruption.windows: kubectl -n ns edit tikvgroup kv", member.WaitDeadline},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv"}}
			g.Spec.Disruption = &v1alpha1.Disruption{Windows: c.windows}
			d := component.Disruption{Instance: instancetest.Instance(0, "a"), Verb: member.Restart, Why: "x"}
			o := CheckUserHolds(g, observation.Snapshot{Now: at(c.now)}, component.Rendering{RollGate: gate.Result{Open: true}}, d, "new")
			if c.message == "" {
				assert.Equal(t, step.KindDone, o.Kind, o.Message)
				return
			}
			assert.Equal(t, v1alpha1.ReasonUpdateHeld, o.Reason)
			assert.Equal(t, "Instance kv-0 (x): "+c.message, o.Message)
			assert.Equal(t, c.after, o.After)
		})
	}
}
