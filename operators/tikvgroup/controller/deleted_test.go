package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// remove deletes an Instance as kubectl does without waiting.
func remove(s *stage.Stage, name string) v1alpha1.Instance {
	s.Helper()
	i := s.Instance(name)
	require.NoError(s, s.Client.Delete(s.Context(), &i))
	return i
}

// stays waits until a deleted Instance says why it is still there.
func stays(s *stage.Stage, name, words string) {
	s.Helper()
	require.EventuallyWithT(s, func(c *assert.CollectT) {
		i := s.Instance(name)
		drained := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionDrained)
		if assert.NotNil(c, drained) {
			assert.Equal(c, metav1.ConditionFalse, drained.Status)
			assert.Contains(c, drained.Message, words)
		}
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

// again waits until Instances are there which are not those that were.
func again(s *stage.Stage, old ...v1alpha1.Instance) {
	s.Helper()
	require.Eventually(s, func() bool {
		fresh := 0
		for _, i := range s.Instances() {
			if slices.ContainsFunc(old, func(o v1alpha1.Instance) bool { return o.Name == i.Name && o.UID != i.UID }) {
				fresh++
			}
		}
		return fresh == len(old)
	}, machine.StretchWait(stage.Timeout), stage.Tick, "they are recreated")
}

// KV-10, KV-12, KV-15: also when it is the Instance that goes.
func TestDeletedStoresGiveTheirLeadersAwayAndGoOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.PD.HoldLeaders(true)
	one, two := s.StoreID("basic-tikv-1"), s.StoreID("basic-tikv-2")
	s.ChangeStore("basic-tikv-1", func(store *pd.Store) { store.Leaders = 1 })
	s.ChangeStore("basic-tikv-2", func(store *pd.Store) { store.Leaders = 1 })
	first := remove(s, "basic-tikv-1")
	s.WaitForMessage(g, v1alpha1.ReasonPreparing, "gives its leaders away")
	second := remove(s, "basic-tikv-2")
	stays(s, "basic-tikv-2", "waits for TiKVGroup/basic-tikv-1 to be done: kubectl -n "+s.Namespace+" get lease basic-pd-disruption")
	assert.Equal(t, first.UID, s.Instance("basic-tikv-1").UID)
	assert.Equal(t, "TiKVGroup/basic-tikv-1", s.Holder())
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	s.PD.HoldLeaders(false)
	s.ChangeStore("basic-tikv-1", func(store *pd.Store) { store.Leaders = 0 })
	again(s, first, second)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"evict " + one, "stop-evicting " + one, "evict " + two, "stop-evicting " + two}, orders(s))
	assert.Equal(t, one, s.StoreID("basic-tikv-1"))
	s.AtRest()
	s.RequireNoWrites(time.Second)
}

// P6, P1: between the Instance that goes and the one that comes the Lease is
// no other member's, whichever dies meanwhile.
func TestTheLeaseIsKeptForTheReplacementOfADeletedStore(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.ChangeStore("basic-tikv-1", func(store *pd.Store) { store.Leaders = 1 })
	id := s.StoreID("basic-tikv-1")
	first := remove(s, "basic-tikv-1")
	s.SetDown("basic-tikv-1", true)
	again(s, first)
	second := remove(s, "basic-tikv-2")
	stays(s, "basic-tikv-2", "waits for TiKVGroup/basic-tikv-1 to be done")
	assert.Equal(t, "TiKVGroup/basic-tikv-1", s.Holder())
	assert.Equal(t, second.UID, s.Instance("basic-tikv-2").UID)
	v, err := s.PD.View(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []string{id}, v.EvictLeader, "it gets its leaders when it is back")

	s.SetDown("basic-tikv-1", false)
	again(s, second)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
}

// KV-14: and no other store has to be well for it.
func TestADeletedStoreThatDoesNotServeGoesAtOnce(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	for _, name := range []string{"basic-tikv-0", "basic-tikv-1"} {
		s.SetDown(name, true)
		s.PD.SetState(pd.StateDown, s.StoreID(name))
	}
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionFalse, v1alpha1.ReasonStoresUnhealthy)
	other := remove(s, "basic-tikv-2")
	stays(s, "basic-tikv-2", "Instance basic-tikv-2 is not disrupted yet (it was deleted): store ")
	again(s, remove(s, "basic-tikv-1"))
	assert.Empty(t, orders(s))
	assert.Empty(t, s.Holder())
	assert.Equal(t, other.UID, s.Instance("basic-tikv-2").UID)

	// A group that goes takes all of them with it.
	require.NoError(t, s.Client.Delete(t.Context(), g))
	wake := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"wake":"up"}}}`))
	require.NoError(t, client.IgnoreNotFound(s.Client.Patch(t.Context(), &v1alpha1.Instance{ObjectMeta: s.Meta("basic-tikv-2")}, wake)))
	require.Eventually(t, func() bool {
		return !slices.ContainsFunc(s.Instances(), func(i v1alpha1.Instance) bool { return i.Name == "basic-tikv-2" })
	}, machine.StretchWait(stage.Timeout), stage.Tick)
}

func TestADeletedStoreIsReleasedWhenTheUserResumesDisruptions(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.Edit(g, func() { g.Spec.Disruption = &v1alpha1.Disruption{Paused: true} })
	gone := remove(s, "basic-tikv-2")
	s.WaitForMessage(g, v1alpha1.ReasonUpdateHeld, "Instance basic-tikv-2 (it was deleted): spec.disruption.paused postpones it")
	s.Edit(g, func() { g.Spec.Disruption = nil })
	again(s, gone)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
}
