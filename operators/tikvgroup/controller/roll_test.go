package controller

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

func TestKV10StoresAreRestartedOneAfterTheOther(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.ChangeStore("basic-tikv-1", func(store *pd.Store) { store.Leaders = 1 })
	s.Edit(g, func() { g.Spec.Version = "v8.5.8" })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"basic-tikv-0", "basic-tikv-1", "basic-tikv-2"}, s.StoppedInstances())
	var want []string
	for _, name := range s.StoppedInstances() {
		want = append(want, "evict "+s.StoreID(name), "stop-evicting "+s.StoreID(name))
	}
	assert.Equal(t, want, slices.Compact(slices.DeleteFunc(s.PD.Calls(), func(call string) bool { return strings.HasPrefix(call, "labels") })))
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	assert.Equal(t, "v8.5.8", g.Status.Version)
	s.AtRest()
	s.RequireNoWrites(time.Second)
}

// KV-13, P1: a store that is missing anywhere keeps the others running, and so
// does a region that could not do without one more peer.
func TestKV13NothingIsStoppedWhileItIsNotSafe(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	other := s.PD.Register("hot-0.hot-peer.elsewhere.svc:20160")
	s.PD.Change(func(v *pd.View) {
		for n := range v.Stores {
			v.Stores[n].Regions = 10
		}
	})
	s.PD.SetState(pd.StateDown, other)
	s.Edit(g, func() { g.Spec.Version = "v8.5.8" })
	c := s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonUnsafe)
	assert.Contains(t, c.Message, "store 4 (hot-0) does not run and its group is gone")
	// What was read from PD just before the store went down may have led to the Lease: the second
	// look at PD gives it back.
	require.Eventually(t, func() bool { return s.Holder() == "" }, machine.StretchWait(stage.Timeout), stage.Tick)
	assert.Empty(t, s.StoppedInstances())

	// Each store has a peer of one of these regions.
	s.PD.SetRegions(pd.Region{ID: "7", Peers: []pd.Peer{{StoreID: "1", Voter: true}, {StoreID: "2", Voter: true, Pending: true}, {StoreID: "3", Voter: true}}},
		pd.Region{ID: "8", Missing: true, Peers: []pd.Peer{{StoreID: "2", Voter: true}, {StoreID: "3", Voter: true}}})
	s.PD.SetState(pd.StateUp, other)
	require.Eventually(t, func() bool {
		c := s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, "")
		return c.Reason == v1alpha1.ReasonUnsafe && strings.Contains(c.Message, "region ")
	}, machine.StretchWait(stage.Timeout), 20*time.Millisecond)
	assert.Empty(t, s.StoppedInstances())
	s.PD.SetRegions()
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Len(t, s.StoppedInstances(), 3)
	s.AtRest()
}

// KV-11: leaders that do not go cost their time and no more.
func TestKV11AStoreWhoseLeadersStayIsRestartedInTime(t *testing.T) {
	t.Parallel()
	s, g := running(t, 2)
	s.ChangeStore("basic-tikv-0", func(store *pd.Store) { store.Leaders = 1 })
	s.PD.HoldLeaders(true)
	s.Edit(g, func() {
		g.Spec.EvictLeaderTimeout = &metav1.Duration{Duration: 2 * time.Second}
		g.Spec.Version = "v8.5.8"
	})
	begin := time.Now()
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonPreparing)
	assert.Equal(t, "TiKVGroup/basic-tikv-0", s.Holder())
	require.Eventually(t, func() bool { return len(s.StoppedInstances()) > 0 }, machine.StretchWait(stage.Timeout), 10*time.Millisecond)
	assert.Greater(t, time.Since(begin), 1900*time.Millisecond)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
}

// P7, KV-15: a roll that is taken back on the way leaves nothing behind.
func TestARevertedRollLeavesNoEvictionInPD(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.PD.HoldLeaders(true)
	s.ChangeStore("basic-tikv-0", func(store *pd.Store) { store.Leaders = 1 })
	s.Edit(g, func() { g.Spec.Version = "v8.5.8" })
	require.Eventually(t, func() bool { return slices.Contains(s.PD.Calls(), "evict "+s.StoreID("basic-tikv-0")) }, machine.StretchWait(stage.Timeout), 10*time.Millisecond)
	s.Edit(g, func() { g.Spec.Version = "v8.5.7" })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Empty(t, s.StoppedInstances())
	s.AtRest()
}
