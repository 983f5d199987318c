package groupstatus

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// P7: a size that no claim has asked for yet may be taken back.
func TestTheStatusShowsTheLargestRequestOfAClaim(t *testing.T) {
	g := &v1alpha1.TiKVGroup{}
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("9Gi")}, {Name: "log", Storage: resource.MustParse("1Gi")}}
	says := func(instances ...*v1alpha1.Instance) []string {
		var out []string
		for _, v := range Report(g, observation.Snapshot{Instances: instances}, planning.Plan{}, Work{Acted: step.Done(), Serving: true}, conditions.New(nil, 1, time.Now())).Volumes {
			out = append(out, v.Name+" "+v.Requested.String())
		}
		return out
	}
	assert.Equal(t, []string{"data 0", "log 0"}, says(), "no claim asks for a size")
	assert.Equal(t, []string{"data 3Gi", "log 0"}, says(instancetest.WithVolume(0, "slow", "2Gi"), instancetest.WithVolume(1, "slow", "3Gi")))
	unknown := instancetest.WithVolume(2, "slow", "4Gi")
	unknown.Status.Volumes = nil
	assert.Equal(t, []string{"data 4Gi", "log 0"}, says(instancetest.WithVolume(0, "slow", "2Gi"), unknown), "its claim may ask for what its Instance says")
	patched := instancetest.WithVolume(0, "slow", "2Gi")
	patched.Spec.VolumeClaimTemplates[0].Storage = resource.MustParse("9Gi")
	assert.Equal(t, []string{"data 2Gi", "log 0"}, says(patched), "a claim that was refused still asks for what it did")
}

// A store that is just being restarted comes back. That a group has been busy for long with
// something else makes nothing of it a matter for a user.
func TestAReasonStallsWhenItHasStoodForLongItself(t *testing.T) {
	now, g := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), &v1alpha1.TiKVGroup{}
	look := func(later time.Duration, reason string) bool {
		now = now.Add(later)
		set := conditions.New(g.Status.Conditions, 1, now)
		plan := planning.Plan{Outcome: step.Wait("PD", time.Minute, reason, "why")}
		g.Status.GroupStatus = Report(g, observation.Snapshot{Now: now}, plan, Work{Acted: step.Done(), Serving: true}, set)
		return meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionStalled)
	}
	assert.False(t, look(0, v1alpha1.ReasonDraining))
	assert.False(t, look(time.Hour, v1alpha1.ReasonScaleInRefused))
	assert.False(t, look(time.Second, v1alpha1.ReasonScaleInRefused), "it has just begun")
	since := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionUpToDate).LastTransitionTime
	assert.Equal(t, time.Hour+time.Second, now.Sub(since.Time), "it has not been UpToDate for as long as before")
	assert.True(t, look(30*time.Second, v1alpha1.ReasonScaleInRefused))
	assert.True(t, look(time.Second, v1alpha1.ReasonScaleInRefused), "and stays so")
	assert.False(t, look(time.Second, v1alpha1.ReasonDraining))
	assert.False(t, look(time.Hour, v1alpha1.ReasonScaleInRefused), "it begins again")
	assert.False(t, look(time.Second, v1alpha1.ReasonScaleInRefused))
}
