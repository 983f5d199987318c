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
		return newSteps(ctx, env, storePorts).component().Setup(env)
	}
	options := stage.Options{Options: controlplane.Options{CRDPaths: []string{"../../../deploy/crds"}}, Everywhere: &definition}
	os.Exit(stage.Main(m, options, func(r *stage.Server) { rig = r }))
}

func newGroup(s *stage.Stage, name string, replicas int32) *v1alpha1.TiKVGroup {
	return &v1alpha1.TiKVGroup{ObjectMeta: s.Meta(name), Spec: v1alpha1.TiKVGroupSpec{
		PDGroup:      v1alpha1.LocalReference{Name: stage.PDGroupName},
		TiKVTemplate: v1alpha1.TiKVTemplate{ComponentSpec: stage.Component("data"), Replicas: ptr.To(replicas)},
	}}
}

// running returns a stage with a group that is Ready.
func running(t *testing.T, replicas int32) (*stage.Stage, *v1alpha1.TiKVGroup) {
	t.Helper()
	s := rig.Stage(t)
	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	s.PlayStores("basic-tikv", v1alpha1.PortTiKV)
	g := newGroup(s, "basic-tikv", replicas)
	s.Create(g)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	return s, g
}

// KV-01: nothing starts before PD serves, and everything at once when it does.
func TestKV01WaitsForPDGroupThenComesUpAndStaysStill(t *testing.T) {
	t.Parallel()
	s := rig.Stage(t)
	g := newGroup(s, "basic-tikv", 3)
	s.Create(g)
	c := s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPDGroup)
	assert.Contains(t, c.Message, "PDGroup basic-pd does not exist")
	s.Condition(g, v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPDGroup)

	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), stage.WaitingOutcome())
	require.Eventually(t, func() bool {
		c = s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPDGroup)
		return strings.HasPrefix(c.Message, "PDGroup basic-pd is not Ready yet: kubectl ")
	}, machine.StretchWait(stage.Timeout), 20*time.Millisecond)
	s.WaitForInstances(time.Second)

	s.PlayStores("basic-tikv", v1alpha1.PortTiKV)
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	s.WaitForInstances(time.Second, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionDependenciesReady, metav1.ConditionTrue, "")
	s.NoCondition(g, v1alpha1.ConditionReconciling)
	require.Len(t, g.Status.Stores, 3)
	assert.Equal(t, int32(3), g.Status.ReadyReplicas)
	assert.Equal(t, "v8.5.7", g.Status.Version)
	for _, i := range s.Instances() {
		require.NotNil(t, i.Status.Member, i.Name)
		assert.Equal(t, pd.StateUp, i.Status.Member.State)
		assert.Equal(t, fmt.Sprintf("%s.basic-tikv-peer.%s.svc:20160", i.Name, s.Namespace), i.Status.Member.Address)
		assert.Equal(t, []string{"Joined", "Healthy"}, i.Spec.ReadinessGates)
		assert.Equal(t, v1alpha1.HoldOnClaimLoss, i.Spec.ClaimLoss)
	}
	began, polls := time.Now(), s.PD.Polls()
	s.RequireNoWrites(2 * time.Second)
	// On a busy machine that takes longer than it asks for.
	due := 1 + int(2*time.Since(began)/storestate.LookLater)
	assert.LessOrEqual(t, s.PD.Polls()-polls, due, "PD is polled slowly once nothing moves")

	// PD's loss of Ready tears nothing down and is named.
	s.WriteGroupStatus(s.PDGroup(), stage.WaitingOutcome())
	s.Condition(g, v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPDGroup)
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.Edit(g, func() { g.Spec.Replicas = ptr.To[int32](4) })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPDGroup)
	assert.Len(t, s.Instances(), 3)
}

// KV-18, KV-26: store labels come from node labels and the user's, in place.
func TestKV18StoresAreLabelledFromTheirNodesAndTheSpec(t *testing.T) {
	t.Parallel()
	s := rig.Stage(t)
	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-of-" + s.Namespace, Labels: map[string]string{
		corev1.LabelTopologyZone: "z1", corev1.LabelHostname: "h1"}}}
	s.Create(node)
	s.SetNode("basic-tikv-0", node.Name)
	s.PlayStores("basic-tikv", v1alpha1.PortTiKV)
	g := newGroup(s, "basic-tikv", 1)
	g.Spec.StoreLabels = map[string]v1alpha1.StoreLabelValue{"disk": "ssd"}
	s.Create(g)
	labels := func(want map[string]string) {
		require.Eventually(t, func() bool { return assert.ObjectsAreEqual(want, s.PD.Labels("1")) }, machine.StretchWait(stage.Timeout), 10*time.Millisecond, "%v", want)
	}
	labels(map[string]string{"disk": "ssd", "zone": "z1", "host": "h1"})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")

	revision := g.Status.UpdateRevision
	s.Edit(g, func() { g.Spec.StoreLabels["disk"] = "nvme" })
	labels(map[string]string{"disk": "nvme", "zone": "z1", "host": "h1"})
	s.Edit(node, func() { node.Labels[corev1.LabelTopologyZone] = "z2" })
	labels(map[string]string{"disk": "nvme", "zone": "z2", "host": "h1"})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, revision, g.Status.UpdateRevision, "labels are no new revision")

	// KV-26: so do those of an exclusive group.
	s.Edit(g, func() { g.Spec.Placement = &v1alpha1.StorePlacement{Exclusive: true} })
	labels(map[string]string{"disk": "nvme", "zone": "z2", "host": "h1", "$k/exclusive": "true", "k/tikvgroup": s.Namespace + ".basic-tikv"})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Edit(g, func() { g.Spec.Placement = nil })
	labels(map[string]string{"disk": "nvme", "zone": "z2", "host": "h1", "k/tikvgroup": s.Namespace + ".basic-tikv"})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, revision, g.Status.UpdateRevision, "labels are no new revision")

	s.PD.Refuse(errors.New("label refused"))
	s.Edit(g, func() { g.Spec.StoreLabels["disk"] = "hdd"; g.Spec.Replicas = ptr.To[int32](2) })
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1")
	c := s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonRequestFailed)
	assert.Contains(t, c.Message, "label refused")
	s.PD.Refuse(nil)
	labels(map[string]string{"disk": "hdd", "zone": "z2", "host": "h1", "k/tikvgroup": s.Namespace + ".basic-tikv"})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
}

// KV-02: a store is known by its recorded ID, and no other is taken for it.
func TestKV02AnotherStoreAtTheAddressIsNotAdopted(t *testing.T) {
	t.Parallel()
	s, g := running(t, 1)
	first := s.Instance("basic-tikv-0").Status.Member
	s.PD.Change(func(v *pd.View) {
		v.Stores = append(v.Stores[:0:0], v.Stores...)
		v.Stores[0].ID = "77"
	})
	c := s.Condition(g, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonStoreMismatch)
	assert.Contains(t, c.Message, "store "+first.ID)
	assert.Contains(t, c.Message, "store 77")
	require.Eventually(t, func() bool {
		for _, c := range s.Instance("basic-tikv-0").Status.Conditions {
			if c.Type == v1alpha1.ConditionHealthy {
				return c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonStoreMismatch
			}
		}
		return false
	}, machine.StretchWait(stage.Timeout), 10*time.Millisecond)
	assert.Equal(t, first.ID, s.Instance("basic-tikv-0").Status.Member.ID, "the record stays")
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionFalse, v1alpha1.ReasonStoreMismatch)

	s.PD.Change(func(v *pd.View) {
		v.Stores = append(v.Stores[:0:0], v.Stores...)
		v.Stores[0].ID = first.ID
	})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.NoCondition(g, v1alpha1.ConditionStalled)
}

func TestLeaderChangeAndOutageOfPDChangeNoMember(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.PD.SetState(pd.StateDisconnected)
	require.Eventually(t, func() bool {
		return s.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g) == nil && g.Status.Stores[0].State == pd.StateDisconnected
	}, machine.StretchWait(stage.Timeout), 20*time.Millisecond, "the new state is shown")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionTrue, "")
	s.PD.SetState(pd.StateUp)

	s.PD.Change(func(v *pd.View) { v.Err = errors.New("PD is asleep") })
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionUnknown, v1alpha1.ReasonPDUnreachable)
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	for _, i := range s.Instances() {
		assert.NotNil(t, i.Status.Member, i.Name)
	}
	s.PD.Change(func(v *pd.View) { v.Err = nil })
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")

	// A dead member: its pod is gone and PD has not heard of it.
	s.PD.SetState(pd.StateDisconnected, g.Status.Stores[0].ID)
	s.SetDown("basic-tikv-0", true)
	c := s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionFalse, v1alpha1.ReasonStoresUnhealthy)
	assert.Contains(t, c.Message, "Instance basic-tikv-0")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
}

func TestChangesInPlacePauseAndGrowth(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.Edit(g, func() {
		g.Spec.Labels = map[string]string{"team": "a"}
		g.Spec.Annotations = map[string]string{"note": "b"}
	})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	for _, i := range s.Instances() {
		assert.Contains(t, string(i.Spec.PodTemplate.Raw), `"team":"a"`, i.Name)
		assert.Equal(t, g.Status.UpdateRevision, i.Spec.Revision, i.Name)
	}

	s.Edit(g, func() { g.Spec.Paused = true; g.Spec.Replicas = ptr.To[int32](4) })
	s.Condition(g, v1alpha1.ConditionPaused, metav1.ConditionTrue, "")
	assert.Len(t, s.Instances(), 3)
	s.Edit(g, func() { g.Spec.Paused = false })
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2", "basic-tikv-3")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	// What needs a restart says so, and waits if it is told to.
	s.Edit(g, func() { g.Spec.Version = "v8.5.8"; g.Spec.Disruption = &v1alpha1.Disruption{Paused: true} })
	c := s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonUpdateHeld)
	assert.Contains(t, c.Message, "pingcap/tikv:v8.5.8")
	assert.Empty(t, s.StoppedInstances())
	s.Edit(g, func() { g.Spec.Version = "v8.5.7" })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
}

func TestBadSpecsTouchNothingAndAreNamed(t *testing.T) {
	t.Parallel()
	s, g := running(t, 1)
	revision := s.Instance("basic-tikv-0").Spec.Revision
	for _, c := range []struct{ config, part string }{
		{"a = [", "spec.config: not valid TOML at line 1"},
		{"[server]\naddr = \"x\"", `spec.config: key "server.addr" is set by the operator`},
		{"[server.labels]\nzone = \"x\"", `spec.config: key "server.labels" is set by the operator`},
	} {
		s.Edit(g, func() { g.Spec.Config = c.config })
		stalled := s.Condition(g, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonInvalidSpec)
		assert.Contains(t, stalled.Message, c.part)
		assert.Equal(t, revision, s.Instance("basic-tikv-0").Spec.Revision)
	}
	s.Edit(g, func() { g.Spec.Config = "" })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
}

func TestServiceOfAStrangerIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := rig.Stage(t)
	s.Create(s.PDGroup())
	s.WriteGroupStatus(s.PDGroup(), step.Done())
	stranger := &corev1.Service{ObjectMeta: s.Meta("basic-tikv-peer"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	s.Create(stranger)
	g := newGroup(s, "basic-tikv", 1)
	s.Create(g)
	c := s.Condition(g, v1alpha1.ConditionStalled, metav1.ConditionTrue, v1alpha1.ReasonNameConflict)
	assert.Contains(t, c.Message, "Service basic-tikv-peer")
	version := stranger.ResourceVersion
	require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(stranger), stranger))
	assert.Equal(t, version, stranger.ResourceVersion)
	assert.Empty(t, s.Instances())

	// Once it is gone, any edit goes on; the operator also looks by itself.
	require.NoError(t, s.Client.Delete(t.Context(), stranger))
	s.Edit(g, func() { g.Annotations = map[string]string{"look": "again"} })
	s.WaitForInstances(stage.Timeout, "basic-tikv-0")
}

func TestAPDWhosePDGroupIsGoneIsPolledNoMore(t *testing.T) {
	t.Parallel()
	s, g := running(t, 1)
	s.SetDown("basic-tikv-0", true) // the group waits, and has PD polled often
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "")
	require.NoError(t, s.Client.Delete(t.Context(), s.PDGroup()))
	s.Condition(g, v1alpha1.ConditionDependenciesReady, metav1.ConditionFalse, v1alpha1.ReasonWaitingForPDGroup)
	polls := s.PD.Polls()
	<-time.After(4 * time.Second)
	assert.LessOrEqual(t, s.PD.Polls()-polls, 1, "one was on its way")
}

func TestDeletedGroupMakesNothingAgain(t *testing.T) {
	t.Parallel()
	s, g := running(t, 1)
	require.NoError(t, s.Client.Delete(t.Context(), g, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonDeleting)
	i := &v1alpha1.Instance{ObjectMeta: s.Meta("basic-tikv-0")}
	require.NoError(t, s.Client.Delete(t.Context(), i))
	require.Eventually(t, func() bool {
		return s.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g) == nil && g.Status.Replicas == 0 && len(s.Instances()) == 0
	}, machine.StretchWait(stage.Timeout), 20*time.Millisecond)
	// The garbage collector, which does not run here, lifts its finalizer.
	s.Edit(g, func() { g.Finalizers = nil })
	require.Eventually(t, func() bool {
		return client.IgnoreNotFound(s.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g)) == nil
	}, machine.StretchWait(stage.Timeout), 20*time.Millisecond)
}
