package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

var rig *stage.Server // what TestMain hands to the tests

func TestMain(m *testing.M) {
	definition := Definition()
	definition.Setup = func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, voices.ask).component().Setup(env)
	}
	options := stage.Options{Options: controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}}, Everywhere: &definition}
	os.Exit(stage.Main(m, options, func(r *stage.Server) { rig = r }))
}

func newGroup(s *stage.Stage, name string, replicas int32) *v1alpha1.TiFlashGroup {
	return &v1alpha1.TiFlashGroup{ObjectMeta: s.Meta(name), Spec: v1alpha1.TiFlashGroupSpec{
		PDGroup:         v1alpha1.LocalReference{Name: stage.PDGroupName},
		TiFlashTemplate: v1alpha1.TiFlashTemplate{ComponentSpec: stage.Component("data", "more"), Replicas: ptr.To(replicas)},
	}}
}

// running returns a stage with a group that is Ready.
func running(t *testing.T, replicas int32) (*stage.Stage, *v1alpha1.TiFlashGroup) {
	t.Helper()
	s := rig.Stage(t)
	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	s.Create(s.TiKVGroup())
	s.WriteGroupStatus(s.TiKVGroup(), step.Done())
	s.PlayStores("basic-tiflash", v1alpha1.PortTiFlash)
	g := newGroup(s, "basic-tiflash", replicas)
	s.Create(g)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	return s, g
}

// FL-01: PD, then TiKV, then placement rules on, and only then a pod.
func TestFL01WaitsForPDThenTiKVThenPlacementRules(t *testing.T) {
	t.Parallel()
	s := rig.Stage(t)
	s.PD.Change(func(v *pd.View) { v.PlacementRules = false })
	refused := errors.New("PD refuses placement rules")
	s.PD.Refuse(refused)
	g := newGroup(s, "basic-tiflash", 2)
	s.Create(g)
	c := s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPDGroup)
	assert.Contains(t, c.Message, "PDGroup basic-pd does not exist")

	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	c = s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTiKVGroup)
	assert.Contains(t, c.Message, "no TiKVGroup names PDGroup basic-pd")
	s.Condition(g, v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTiKVGroup)
	s.Create(s.TiKVGroup())
	s.WriteGroupStatus(s.TiKVGroup(), stage.WaitingOutcome())
	require.Eventually(t, func() bool {
		c = s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTiKVGroup)
		return strings.HasPrefix(c.Message, "TiKVGroup basic-tikv is not Ready yet: kubectl ")
	}, machine.StretchWait(stage.Timeout), 20*time.Millisecond)

	s.WriteGroupStatus(s.TiKVGroup(), step.Done())
	s.Condition(g, v1alpha1.ConditionDependenciesReady, metav1.ConditionTrue, v1alpha1.ReasonDependenciesReady)
	c = s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRequestFailed)
	assert.Contains(t, c.Message, refused.Error())
	assert.Empty(t, s.Instances(), "nothing starts before placement rules are on")

	s.PlayStores("basic-tiflash", v1alpha1.PortTiFlash)
	s.PD.Refuse(nil)
	s.WaitForInstances(stage.Timeout, "basic-tiflash-0", "basic-tiflash-1")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionTrue, "")
	assert.Contains(t, s.PD.Calls(), "placement-rules")
	require.Len(t, g.Status.Stores, 2)
	for _, i := range s.Instances() {
		assert.Equal(t, fmt.Sprintf("%s.basic-tiflash-peer.%s.svc:3930", i.Name, s.Namespace), i.Status.Member.Address)
		require.Len(t, i.Spec.VolumeClaimTemplates, 2, "FL-02: a claim for each data volume")
	}
	began, polls := time.Now(), s.PD.Polls()
	s.RequireNoWrites(2 * time.Second)
	// On a busy machine that takes longer than it asks for.
	due := 1 + int(2*time.Since(began)/storestate.LookLater)
	assert.LessOrEqual(t, s.PD.Polls()-polls, due, "PD is polled slowly once nothing moves")
}

func TestInstancesFollowWithinASecondOfTheLastGate(t *testing.T) {
	t.Parallel()
	s := rig.Stage(t)
	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	s.Create(s.TiKVGroup())
	g := newGroup(s, "basic-tiflash", 1)
	s.Create(g)
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForTiKVGroup)
	s.WriteGroupStatus(s.TiKVGroup(), step.Done())
	s.WaitForInstances(time.Second, "basic-tiflash-0")
}

// KV-18 for TiFlash: labels from node and spec, beside TiFlash's own.
func TestStoresAreLabelledFromTheirNodesAndTheSpec(t *testing.T) {
	t.Parallel()
	s := rig.Stage(t)
	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	s.Create(s.TiKVGroup())
	s.WriteGroupStatus(s.TiKVGroup(), step.Done())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + s.Namespace, Labels: map[string]string{corev1.LabelTopologyZone: "z1"}}}
	s.Create(node)
	s.SetNode("basic-tiflash-0", node.Name)
	s.PlayStores("basic-tiflash", v1alpha1.PortTiFlash)
	g := newGroup(s, "basic-tiflash", 1)
	g.Spec.StoreLabels = map[string]v1alpha1.StoreLabelValue{"disk": "ssd"}
	s.Create(g)
	require.Eventually(t, func() bool {
		return assert.ObjectsAreEqual(map[string]string{"disk": "ssd", "zone": "z1"}, s.PD.Labels("1"))
	}, machine.StretchWait(stage.Timeout), 10*time.Millisecond)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
}

func TestChangesInPlacePauseAndGrowth(t *testing.T) {
	t.Parallel()
	s, g := running(t, 1)
	s.Edit(g, func() {
		g.Spec.Labels = map[string]string{"team": "a"}
		g.Spec.Annotations = map[string]string{"note": "b"}
	})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Contains(t, string(s.Instance("basic-tiflash-0").Spec.PodTemplate.Raw), `"team":"a"`)

	s.Edit(g, func() { g.Spec.Paused = true; g.Spec.Replicas = ptr.To[int32](2) })
	s.Condition(g, v1alpha1.ConditionPaused, metav1.ConditionTrue, "")
	assert.Len(t, s.Instances(), 1)
	s.Edit(g, func() { g.Spec.Paused = false })
	s.WaitForInstances(stage.Timeout, "basic-tiflash-0", "basic-tiflash-1")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")

}

// FL-06: one by one, and the next when the one before is Up again.
func TestFL06StoresAreRestartedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s, g := running(t, 2)
	s.ChangeStore("basic-tiflash-0", func(store *pd.Store) { store.Regions = 5 })
	s.Edit(g, func() { g.Spec.ProxyConfig = "log-level = \"debug\"" })
	require.Eventually(t, func() bool { return len(s.StoppedInstances()) == 1 }, machine.StretchWait(stage.Timeout), time.Millisecond)
	s.PD.SetState(pd.StateDisconnected, s.StoreID("basic-tiflash-0"))
	c := s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRecovering)
	assert.Contains(t, c.Message, "is Disconnected after its restart")
	assert.Equal(t, []string{"basic-tiflash-0"}, s.StoppedInstances())
	s.PD.SetState(pd.StateUp)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"basic-tiflash-0", "basic-tiflash-1"}, s.StoppedInstances())
	assert.NotContains(t, strings.Join(s.PD.Calls(), " "), "evict", "a TiFlash leads nothing")
}

// FL-03: both files are checked, and each says which one is meant.
func TestFL03BadConfigurationTouchesNothingAndIsNamed(t *testing.T) {
	t.Parallel()
	s, g := running(t, 1)
	revision := s.Instance("basic-tiflash-0").Spec.Revision
	for _, c := range []struct{ config, proxy, part string }{
		{"a = [", "", "spec.config: not valid TOML at line 1"},
		{"", "a = [", "spec.proxyConfig: not valid TOML at line 1"},
		{"tmp_path = \"/x\"", "", `spec.config: key "tmp_path" is set by the operator`},
		{"", "[server]\naddr = \"x\"", `spec.proxyConfig: key "server.addr" is set by the operator`},
		{"[logger]\nlog = \"/elsewhere/x.log\"", "", "spec.config: logger.log"},
	} {
		s.Edit(g, func() { g.Spec.Config, g.Spec.ProxyConfig = c.config, c.proxy })
		stalled := s.Condition(g, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec)
		assert.Contains(t, stalled.Message, c.part)
		assert.Equal(t, revision, s.Instance("basic-tiflash-0").Spec.Revision)
	}
	s.Edit(g, func() { g.Spec.Config, g.Spec.ProxyConfig = "", "" })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
}

func TestNameOfAnotherGroupIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := rig.Stage(t)
	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	s.Create(&corev1.Service{ObjectMeta: s.Meta("basic-tiflash-peer"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
	g := newGroup(s, "basic-tiflash", 1)
	s.Create(g)
	c := s.Condition(g, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)
	assert.Contains(t, c.Message, "Service basic-tiflash-peer")
	assert.Empty(t, s.Instances())
}

func TestDeletedGroupMakesNothingAgain(t *testing.T) {
	t.Parallel()
	s, g := running(t, 1)
	require.NoError(t, s.Client.Delete(t.Context(), g, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonDeleting)
	require.NoError(t, s.Client.Delete(t.Context(), &v1alpha1.Instance{ObjectMeta: s.Meta("basic-tiflash-0")}))
	require.Eventually(t, func() bool {
		return s.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g) == nil && g.Status.Replicas == 0 && len(s.Instances()) == 0
	}, machine.StretchWait(stage.Timeout), 20*time.Millisecond)
}
