package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// asked is a PDGroup whose PD has lost its quorum, and a person's request.
func asked(g *v1alpha1.PDGroup) {
	founded(g)
	g.Annotations = map[string]string{v1alpha1.AnnotationRecoverQuorum: "basic-pd-0/73"}
	for _, name := range []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"} {
		g.Status.Members = append(g.Status.Members, v1alpha1.PDMember{Name: name})
	}
	g.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionQuorumHealthy, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonQuorumLost, LastTransitionTime: metav1.NewTime(clock().Add(-time.Hour)), ObservedGeneration: 2},
	}
}

// struck is what is seen of it: only the first member's pod runs, on its claim.
func struck(s *group.Snapshot) {
	s.Now, s.PD, s.Claims = clock(), pd.View{Err: pd.ErrNoLeader}, map[string][]metav1.ObjectMeta{}
	for n, i := range s.Instances {
		says(i, v1alpha1.ConditionPodReady, metav1.ConditionFalse, v1alpha1.ReasonPodMissing)
		i.UID, i.Status.PodUID = types.UID(i.Name), ""
		if n == 0 {
			i.Status.PodUID = "pod"
			i.Status.Volumes = []v1alpha1.VolumeStatus{{Name: "data", ClaimName: "data-" + i.Name, ClaimUID: "claim", Phase: "Bound"}}
			s.Claims[i.Name] = []metav1.ObjectMeta{{UID: "claim"}}
		}
	}
}

// PD-22: a request is recorded before anything is done for it; then nothing but
// the recovery is done, and the group may not be depended on before its end.
func TestAPDThatIsRebuiltIsNotReadyAndNothingElseIsDoneToIt(t *testing.T) {
	g := stored(asked)
	s := started(t, g, 3, struck)
	p := mustPlan(t, g, s)
	require.NotNil(t, p.Recovery)
	for _, change := range p.Instances {
		assert.False(t, change.Desired.Spec.Suspended, "nothing is done before it is recorded")
	}
	g, _ = reported(t, g, s, clock())
	require.Equal(t, v1alpha1.RecoveryStopping, g.Status.Recovery.Phase)

	g.Spec.Version = "v9.9.9"
	p = mustPlan(t, g, s)
	require.Len(t, p.Instances, 2, "the survivor is left alone, and the spec as well")
	for _, change := range p.Instances {
		assert.True(t, change.Desired.Spec.Suspended)
		assert.Equal(t, change.Live.Spec.Revision, change.Desired.Spec.Revision)
	}
	assert.Nil(t, p.Revision)
	assert.Empty(t, p.Services)
	assert.Len(t, p.Late, 2, "PD is asked through them")
	for _, service := range p.Late {
		assert.Contains(t, service.Annotations, v1alpha1.AnnotationRendering, "as at all other times")
	}

	g.Status.Recovery.Phase = v1alpha1.RecoveryRetiring
	s.PD = pd.View{ClusterID: "73", Leader: "basic-pd-0", Members: []pd.Member{{Name: "basic-pd-0", ID: "1", Healthy: true}}}
	g, _ = reported(t, g, s, clock())
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	assert.Equal(t, metav1.ConditionFalse, ready.Status)
	assert.Equal(t, v1alpha1.ReasonRecoveringQuorum, ready.Reason)
	assert.True(t, meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionQuorumHealthy))
	for _, m := range members(g, s, mustPlan(t, g, s), clock()) {
		left := m.Instance.Name != "basic-pd-0"
		assert.Equal(t, left, meta.IsStatusConditionTrue(m.Conditions, v1alpha1.ConditionDrained), m.Instance.Name)
	}
}

// PD-22.
func TestARequestThatIsRefusedIsNamedAndTheGroupGoesOn(t *testing.T) {
	g := stored(asked)
	s := started(t, g, 3)
	p := mustPlan(t, g, s)
	assert.Nil(t, p.Recovery)
	assert.Len(t, p.Instances, 3)
	g, end := reported(t, g, s, clock())
	assert.Equal(t, step.KindStall, end.Kind)
	assert.Equal(t, v1alpha1.ReasonRecoveryRefused, meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionUpToDate).Reason)
	assert.True(t, meta.IsStatusConditionTrue(g.Status.Conditions, v1alpha1.ConditionReady), "it serves")
}
