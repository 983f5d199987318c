package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// asked is a PDGroup whose PD has lost its quorum, and a user's request.
func asked(g *v1alpha1.PDGroup) {
	bootstrapped(g)
	g.Annotations = map[string]string{v1alpha1.AnnotationRecoverQuorum: "basic-pd-0/73"}
	for _, name := range []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"} {
		g.Status.Members = append(g.Status.Members, v1alpha1.PDMember{Name: name})
	}
	g.Status.Conditions = []metav1.Condition{
		{Type: v1alpha1.ConditionQuorumHealthy, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonQuorumLost, LastTransitionTime: metav1.NewTime(clock().Add(-time.Hour)), ObservedGeneration: 2},
	}
}

// struck is what is seen of it: only the first member's pod runs, on its claim.
func struck(s *observation.Snapshot) {
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
	for _, m := range reportMembers(g, s, mustPlan(t, g, s), clock()) {
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

// losePD has PD answer no more, and waits until that is known.
func (w *world) losePD() {
	w.Helper()
	w.PD.Change(func(*pd.View) { w.frozen = true })
	w.PD.Fail(errors.New("connection refused"))
	w.WaitForVerdict(stage.Timeout, v1alpha1.ConditionQuorumHealthy, "Unknown/PDUnreachable")
}

// rebuilds has the status say that PD is being rebuilt from its first member.
func (w *world) rebuilds(phase v1alpha1.PDRecoveryPhase) {
	w.Helper()
	r := &v1alpha1.PDRecovery{Request: "basic-pd-0/" + stage.ClusterID, Phase: phase}
	for _, i := range w.Instances() {
		switch m := (v1alpha1.PDRecoveryMember{Name: i.Name, UID: i.UID}); {
		case i.Name == "basic-pd-0":
			r.Survivor = m
		case i.Spec.Group.Kind == v1alpha1.KindPDGroup:
			r.Discarded = append(r.Discarded, m)
		}
	}
	g := w.Get()
	before := client.MergeFrom(g.DeepCopy())
	g.Status.Recovery = r
	require.NoError(w, w.Client.Status().Patch(w.Context(), g, before))
}

// PD-22: an Instance that is deleted waits for PD, and PD for the Service that it is asked
// through.
func TestTheServiceThatARebuiltPDIsAskedThroughComesBack(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.losePD()
	w.rebuilds(v1alpha1.RecoveryRetiring)
	w.WaitForMessage(w.Get(), v1alpha1.ReasonRecoveringQuorum, "is deleted once PD answers and lists only member basic-pd-0")
	left := w.Instance("basic-pd-1")
	require.NoError(t, w.Client.Delete(w.Context(), &left))
	w.WaitForMessage(w.Get(), v1alpha1.ReasonRecoveringQuorum, "but it does not answer: ")

	var service corev1.Service
	require.NoError(t, w.Client.Get(w.Context(), w.Key("basic-pd"), &service))
	gone := service.UID
	require.NoError(t, w.Client.Delete(w.Context(), &service))
	require.Eventually(t, func() bool {
		err := w.Client.Get(w.Context(), w.Key("basic-pd"), &service)
		return err == nil && service.UID != gone
	}, machine.StretchWait(stage.Timeout), stage.Tick)
	left = w.Instance("basic-pd-1")
	assert.Contains(t, left.Finalizers, v1alpha1.FinalizerMember, "PD has not answered")

	w.PD.Change(func(v *pd.View) {
		v.Members = slices.DeleteFunc(v.Members, func(m pd.Member) bool { return m.Name != "basic-pd-0" })
		v.Leader, v.Members[0].Healthy = "basic-pd-0", true
	})
	w.PD.Fail(nil)
	require.Eventually(t, func() bool { return w.Get().Status.Recovery.Phase == v1alpha1.RecoveryFinished }, machine.StretchWait(stage.Timeout), stage.Tick)
}

// PD-22: the store's group was deleted without it. That it has stopped is seen by
// itself.
func TestNoMemberForgetsTheOthersWhileAnOrphanedStoreRuns(t *testing.T) {
	w := begin(t)
	w.create()
	w.WaitUntilConverged()
	w.losePD()
	store := &v1alpha1.Instance{ObjectMeta: w.Meta("basic-tikv-0")}
	store.Labels = map[string]string{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: v1alpha1.ComponentTiKV, v1alpha1.LabelCluster: "basic-pd"}
	store.Spec = v1alpha1.InstanceSpec{
		Group: v1alpha1.InstanceGroup{Kind: v1alpha1.KindTiKVGroup, Name: "basic-tikv"}, Revision: "r1",
		PodTemplate: runtime.RawExtension{Raw: []byte(`{"spec":{"containers":[{"name":"tikv","image":"tikv"}]}}`)},
	}
	w.Create(store)
	require.Eventually(t, func() bool { return w.Instance("basic-tikv-0").Status.PodUID != "" }, machine.StretchWait(stage.Timeout), stage.Tick)

	w.rebuilds(v1alpha1.RecoveryForcing)
	w.WaitForMessage(w.Get(), v1alpha1.ReasonRecoveringQuorum, "Instance basic-tikv-0 of TiKVGroup basic-tikv still has its pod basic-tikv-0")
	assert.True(t, w.Instance("basic-pd-1").Spec.Suspended)
	forced := func() bool { return strings.HasSuffix(w.Instance("basic-pd-0").Spec.Revision, "-forced") }
	assert.False(t, forced())
	w.Edit(store, func() { store.Spec.Suspended = true })
	require.Eventually(t, forced, machine.StretchWait(stage.Timeout), stage.Tick)
}
