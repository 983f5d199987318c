package groupstatus_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func instance(generation int64, put func(*conditions.Set)) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd-0", Generation: generation}}
	set := conditions.New(nil, 1, clock())
	put(set)
	i.Status.Conditions = set.List()
	return i
}

func TestAGroupPassesOnTheConditionsOfItsInstances(t *testing.T) {
	ready := func(s *conditions.Set) {
		s.Finish(conditions.Verdict{Serving: true, Summary: "it runs", Outcome: step.Done()})
	}
	for name, c := range map[string]struct {
		instance       *v1alpha1.Instance
		reason         string
		ready, serving bool
	}{
		"one that is ready":              {instance(1, ready), "", true, true},
		"one that has not seen its spec": {instance(2, ready), v1alpha1.ReasonWaitingForInstances, false, true},
		"one without an operator":        {instance(1, func(*conditions.Set) {}), v1alpha1.ReasonWaitingForInstances, false, false},
		"one that is not ready, and why": {instance(1, func(s *conditions.Set) { s.MarkFalse("Ready", v1alpha1.ReasonPodPending, "x") }), v1alpha1.ReasonPodPending, false, false},
		"one that is stalled, before that": {instance(1, func(s *conditions.Set) {
			s.MarkFalse("Ready", v1alpha1.ReasonPodPending, "x")
			s.MarkTrue("Stalled", v1alpha1.ReasonClaimLost, "y")
		}), v1alpha1.ReasonClaimLost, false, false},
		"one that is suspended": {instance(1, func(s *conditions.Set) {
			s.MarkFalse("Ready", v1alpha1.ReasonSuspended, "x")
			s.MarkTrue("UpToDate", v1alpha1.ReasonUpToDate, "y")
		}), v1alpha1.ReasonSuspended, false, false},
		"one that is suspended and still runs": {instance(1, func(s *conditions.Set) {
			s.MarkFalse("Ready", v1alpha1.ReasonSuspended, "x")
			s.MarkFalse("UpToDate", v1alpha1.ReasonPodTerminating, "y")
		}), v1alpha1.ReasonPodTerminating, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.reason, member.OutcomeOf(c.instance).Reason)
			assert.Equal(t, c.ready, member.IsReady(c.instance))
			assert.Equal(t, c.serving, member.WasReady(c.instance))
		})
	}
}

func TestInputsLeaveOutWhatChangesNoPod(t *testing.T) {
	g := &v1alpha1.PDGroup{}
	g.Spec.Volumes = []v1alpha1.Volume{{Name: "data"}}
	before := rollout.Inputs(g, nil)
	class := "fast"
	g.Spec.Paused, g.Spec.Suspended, g.Spec.Volumes[0].StorageClassName = true, true, &class
	g.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = v1alpha1.DeleteClaim
	assert.Equal(t, before, rollout.Inputs(g, nil))
	assert.Equal(t, &class, g.Spec.Volumes[0].StorageClassName, "the spec itself is not touched")
	g.Spec.Config = "a = 1"
	assert.NotEqual(t, before, rollout.Inputs(g, nil))
}

func TestAConfigMapIsNamedByItsContent(t *testing.T) {
	one, err := rollout.ConfigMapName("basic-pd", map[string]string{"pd.toml": "a = 1"})
	require.NoError(t, err)
	two, err := rollout.ConfigMapName("basic-pd", map[string]string{"pd.toml": "a = 2"})
	require.NoError(t, err)
	assert.NotEqual(t, one, two)
	assert.Contains(t, one, "basic-pd-config-")
}
