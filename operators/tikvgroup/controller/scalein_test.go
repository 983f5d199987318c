package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// wholeTest has stores stay Offline for as long as the test lasts.
const wholeTest = 1 << 20

func scale(s *stage.Stage, g *v1alpha1.TiKVGroup, replicas int32) {
	s.Helper()
	s.Edit(g, func() { g.Spec.Replicas = ptr.To(replicas) })
}

// offline waits until PD lists the stores of Instances as Offline, and no others.
func offline(s *stage.Stage, want ...string) {
	s.Helper()
	require.Eventually(s, func() bool {
		v, err := s.PD.View(s.Context())
		var have []string
		for _, i := range s.Instances() {
			if i.Status.Member == nil {
				continue
			}
			if store, ok := v.Store(i.Status.Member.ID); ok && store.State == pd.StateOffline {
				have = append(have, i.Name)
			}
		}
		return err == nil && slices.Equal(want, have)
	}, machine.StretchWait(stage.Timeout), stage.Tick, "Offline are %v", want)
}

// entomb has PD forget a store: it is a tombstone.
func entomb(s *stage.Stage, id string) {
	s.PD.Change(func(v *pd.View) {
		v.Stores = slices.DeleteFunc(slices.Clone(v.Stores), func(s pd.Store) bool { return s.ID == id })
	})
}

// orders returns what PD was told of stores and leaders, without repetitions.
func orders(s *stage.Stage) []string { return slices.Compact(s.PD.Calls()) }

func TestKV04AStoreGivesUpLeadersAndRegionsBeforeItsInstanceGoes(t *testing.T) {
	t.Parallel()
	s, g := running(t, 4)
	s.PD.DelayRemoval(wholeTest)
	s.ChangeStore("basic-tikv-3", func(store *pd.Store) { store.Leaders, store.Regions = 5, 12 })
	id := s.StoreID("basic-tikv-3")
	scale(s, g, 3)
	offline(s, "basic-tikv-3")
	s.WaitForMessage(g, v1alpha1.ReasonDraining, "store "+id+" of Instance basic-tikv-3 (spec.replicas is 3) is Offline and has about 10 regions left")
	require.Eventually(t, func() bool { return s.Holder() == "" }, machine.StretchWait(stage.Timeout), stage.Tick, "PD knows that it goes: others may be disrupted")
	require.Eventually(t, func() bool {
		return slices.Equal([]string{"evict " + id, "delete-store " + id, "stop-evicting " + id}, orders(s))
	}, machine.StretchWait(stage.Timeout), stage.Tick, "%v", orders(s))
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionTrue, "")
	assert.True(t, s.Instance("basic-tikv-3").Spec.Retire)

	s.ChangeStore("basic-tikv-3", func(store *pd.Store) { store.Regions = 1 })
	s.WaitForMessage(g, v1alpha1.ReasonDraining, "has 1 region left")
	assert.Empty(t, s.StoppedInstances(), "it serves to the end")
	entomb(s, id)
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.AtRest()
	s.RequireNoWrites(time.Second)
}

func TestKV05AScaleInCanBeCancelledUntilTheStoreHasLeft(t *testing.T) {
	t.Parallel()
	s, g := running(t, 4)
	s.PD.DelayRemoval(wholeTest)
	s.ChangeStore("basic-tikv-3", func(store *pd.Store) { store.Leaders = 1 })
	id := s.StoreID("basic-tikv-3")
	back := func() {
		t.Helper()
		scale(s, g, 4)
		s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
		s.AtRest()
		assert.False(t, s.Instance("basic-tikv-3").Spec.Retire)
		offline(s)
		s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	}

	// While its leaders are still there.
	s.PD.HoldLeaders(true)
	scale(s, g, 3)
	s.WaitForMessage(g, v1alpha1.ReasonDraining, "gives its leaders away")
	assert.Equal(t, "TiKVGroup/basic-tikv-3", s.Holder())
	back()
	assert.NotContains(t, s.PD.Calls(), "delete-store "+id)
	s.PD.HoldLeaders(false)

	// While its regions move.
	scale(s, g, 3)
	offline(s, "basic-tikv-3")
	back()
	assert.Contains(t, s.PD.Calls(), "restore "+id)
	assert.Empty(t, s.StoppedInstances())

	// When it has left already a new one takes its place.
	scale(s, g, 3)
	offline(s, "basic-tikv-3")
	s.WaitForMessage(g, v1alpha1.ReasonDraining, "is Offline")
	uid := s.Instance("basic-tikv-3").UID
	s.PD.Change(func(v *pd.View) { v.Err = assert.AnError })
	scale(s, g, 4)
	s.PD.Change(func(v *pd.View) {
		v.Err = nil
		v.Stores = slices.DeleteFunc(slices.Clone(v.Stores), func(s pd.Store) bool { return s.ID == id })
	})
	require.Eventually(t, func() bool {
		all := s.Instances()
		return len(all) == 4 && !slices.ContainsFunc(all, func(i v1alpha1.Instance) bool { return i.UID == uid })
	}, machine.StretchWait(stage.Timeout), stage.Tick, "it is replaced")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
}

func TestKV03AScaleInThatPDCouldNotFollowTouchesNothing(t *testing.T) {
	t.Parallel()
	s, g := running(t, 4)
	scale(s, g, 2)
	s.WaitForMessage(g, v1alpha1.ReasonScaleInRefused, "2 TiKV stores would stay Up")
	assert.Contains(t, stage.Message(g, v1alpha1.ConditionUpToDate), "kubectl -n "+s.Namespace+" scale tikvgroup basic-tikv --replicas=4")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	assert.Len(t, s.Instances(), 4)
	assert.False(t, s.Instance("basic-tikv-3").Spec.Retire)
	assert.Empty(t, orders(s))
	assert.Empty(t, s.Holder())
	s.RequireNoWrites(time.Second)

	// What the cluster can do without is removed as soon as a user asks for it.
	scale(s, g, 3)
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")

	// Who is missing anyway may leave if the others are enough.
	s.PD.Register("hot-0.hot-peer.elsewhere.svc:20160")
	s.PD.SetState(pd.StateDown, s.StoreID("basic-tikv-1"))
	s.SetDown("basic-tikv-1", true)
	scale(s, g, 2)
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-2")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
}

func TestKV06SomeStoresLeaveAtATime(t *testing.T) {
	t.Parallel()
	s, g := running(t, 6)
	s.PD.DelayRemoval(wholeTest)
	s.Edit(g, func() { g.Spec.ScaleInParallelism, g.Spec.Replicas = ptr.To[int32](2), ptr.To[int32](3) })
	offline(s, "basic-tikv-4", "basic-tikv-5")
	s.WaitForMessage(g, v1alpha1.ReasonDraining, "is Offline")
	entomb(s, s.StoreID("basic-tikv-5"))
	offline(s, "basic-tikv-3", "basic-tikv-4")
	entomb(s, s.StoreID("basic-tikv-3"))
	entomb(s, s.StoreID("basic-tikv-4"))
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
}

// KV-08, KV-09: who never came goes first and without PD, then who was named.
// GRP-03.
func TestKV09UnusedAndNamedStoresLeaveFirst(t *testing.T) {
	t.Parallel()
	s, g := running(t, 4)
	s.SetDown("basic-tikv-4", true)
	scale(s, g, 5)
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2", "basic-tikv-3", "basic-tikv-4")
	scale(s, g, 4)
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2", "basic-tikv-3")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Empty(t, orders(s), "PD has never heard of it")

	named := s.Instance("basic-tikv-1")
	s.Edit(&named, func() { named.Annotations = map[string]string{v1alpha1.AnnotationRemoveFirst: ""} })
	id := s.StoreID("basic-tikv-1")
	scale(s, g, 3)
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-2", "basic-tikv-3")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Contains(t, s.PD.Calls(), "delete-store "+id)
	s.AtRest()
}
