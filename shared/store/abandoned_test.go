package store_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/store"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

func TestStoresThatADeletedGroupHasLeftBehindAreNamed(t *testing.T) {
	hot := func(n, state string) pd.Store {
		return pd.Store{ID: "9" + n, Address: "hot-" + n + ".hot-peer.ns.svc:20160", State: state, Regions: 1}
	}
	one := "3 of 3 stores are Up; store 90 (hot-0) does not run and its group is gone: recreate group hot, which takes over its claims, and scale it to 0 to remove it; if its claims are gone for good: see docs/tasks/delete.md"
	for name, c := range map[string]struct {
		stores []pd.Store
		change func(*observation.Snapshot)
		says   string
	}{
		"nothing is left":                       {nil, nil, "3 of 3 stores are Up"},
		"its pods have just stopped":            {[]pd.Store{hot("0", pd.StateUp)}, nil, "3 of 3 stores are Up"},
		"PD misses it":                          {[]pd.Store{hot("0", pd.StateDisconnected)}, nil, one},
		"PD has given it up, which changes not": {[]pd.Store{hot("0", pd.StateDown)}, nil, one},
		"a user has PD remove it":               {[]pd.Store{hot("0", pd.StateOffline)}, nil, "3 of 3 stores are Up"},
		"there are two":                         {[]pd.Store{hot("0", pd.StateDown), hot("1", pd.StateDown)}, nil, one + "; and 1 more"},
		"its Instance is there": {[]pd.Store{hot("0", pd.StateDown)}, func(s *observation.Snapshot) {
			i := storeInstance(0, "90")
			i.Name = "hot-0"
			s.Siblings = append(s.Siblings, i)
		}, "3 of 3 stores are Up"},
		"its Instance is recreated": {[]pd.Store{hot("0", pd.StateDisconnected)}, func(s *observation.Snapshot) {
			s.Lease = lease.State{Holder: lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "hot-0"}, Recreating: "hot"}
		}, "3 of 3 stores are Up"},
		"its Instance alone is gone": {[]pd.Store{hot("0", pd.StateDown)}, func(s *observation.Snapshot) {
			s.Groups = append(s.Groups, namedGroup("hot"))
		}, "3 of 3 stores are Up; store 90 (hot-0) does not run and its Instance is gone, which TiKVGroup hot creates again: kubectl -n ns describe tikvgroup hot"},
		"and its group is suspended": {[]pd.Store{hot("0", pd.StateDown)}, func(s *observation.Snapshot) {
			hot := namedGroup("hot")
			hot.Spec.Suspended = true
			s.Groups = append(s.Groups, hot)
		}, "3 of 3 stores are Up; store 90 (hot-0) does not run and its Instance is gone, which TiKVGroup hot creates again when it is resumed: to resume it, set spec.suspended to false: kubectl -n ns edit tikvgroup hot"},
		"its group is about to be gone": {[]pd.Store{hot("0", pd.StateDown)}, func(s *observation.Snapshot) {
			hot := namedGroup("hot")
			hot.DeletionTimestamp = &metav1.Time{}
			s.Groups = append(s.Groups, hot)
		}, one},
		"a TiFlash is none of TiKV's": {[]pd.Store{{ID: "90", Address: "hot-0.hot-peer.ns.svc:3930", State: pd.StateDown, Labels: map[string]string{"engine": "tiflash"}}}, nil, "3 of 3 stores are Up"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			s.PD.Stores = append(s.PD.Stores, c.stores...)
			if c.change != nil {
				c.change(&s)
			}
			set := conditions.New(nil, 1, now())
			store.PutHealth(g, s, storestate.Matches(g, s, v1alpha1.PortTiKV), gate.Dependencies{}, set)
			got := set.Get(v1alpha1.ConditionStoresHealthy)
			assert.Equal(t, c.says, got.Message)
			assert.Equal(t, v1alpha1.ReasonStoresHealthy, got.Reason, "the group's own are well")
		})
	}
}

func namedGroup(name string) *v1alpha1.TiKVGroup {
	return &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
}

// U 3: a group is not Ready while regions have lost their majority, whichever group owns the
// stores that do not run; and no message says to remove these from PD.
func TestAGroupIsNotReadyWhileRegionsAreWithoutAMajority(t *testing.T) {
	gone := func(n string) pd.Store {
		return pd.Store{ID: "9" + n, Address: "hot-" + n + ".hot-peer.ns.svc:20160", State: pd.StateDisconnected, Started: true, Regions: 80}
	}
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		lost   bool
		says   string
	}{
		"stores of a group that is gone":   {func(*observation.Snapshot) {}, true, "these stores have them and do not run: 90 (hot-0), 91 (hot-1): their group is gone: recreate group hot, which takes over its claims"},
		"one of them was being removed":    {func(s *observation.Snapshot) { s.PD.Stores[3].State, s.PD.Stores[3].Missed = pd.StateOffline, true }, true, "90 (hot-0), 91 (hot-1): their group is gone: recreate group hot"},
		"each region has another majority": {func(s *observation.Snapshot) { s.PD.MajorityLost = false }, false, "recreate group hot"},
		"stores that PD removes by force": {func(s *observation.Snapshot) {
			s.PD.Stores, s.PD.ForceRemoved = s.PD.Stores[:3], []string{"90", "91"}
		}, true, "PD was told to remove stores 90, 91 by force, which had them"},
		"PD has just lost its leader": {func(s *observation.Snapshot) { s.Siblings = []*v1alpha1.Instance{runs("hot-0"), runs("hot-1")} }, false, "3 of 3 stores are Up"},
		"they are another group's and are sick": {func(s *observation.Snapshot) {
			for _, n := range []string{"hot-0", "hot-1"} {
				i := storeInstance(0, "9")
				i.Name, i.Status.Conditions = n, nil
				s.Siblings = append(s.Siblings, i)
			}
		}, true, "kubectl -n ns describe instance hot-0"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			s.PD.MaxReplicas, s.PD.MajorityLost = 3, true
			s.PD.Stores = append(s.PD.Stores, gone("0"), gone("1"))
			c.change(&s)
			set := conditions.New(nil, 1, now())
			store.PutHealth(g, s, storestate.Matches(g, s, v1alpha1.PortTiKV), gate.Dependencies{}, set)
			got := set.Get(v1alpha1.ConditionStoresHealthy)
			assert.Contains(t, got.Message, c.says)
			assert.NotContains(t, got.Message, "store delete")
			assert.Equal(t, c.lost, got.Status == metav1.ConditionFalse)
			serves, _ := store.IsServing(g, s, set, now())
			assert.Equal(t, !c.lost, serves)
			assert.Equal(t, c.lost, storestate.WaitForMajority(g, s).Reason == v1alpha1.ReasonRegionsUnavailable)
			if c.lost {
				assert.Equal(t, v1alpha1.ReasonRegionsUnavailable, got.Reason)
			}
		})
	}
}

// U 3: for a restarted operator no region has lost its majority until PD has answered, which takes
// minutes if PD fails to. The group was Ready meanwhile, and what waits for it went on.
func TestAGroupStaysNotReadyUntilPDHasAnsweredTheRestartedOperator(t *testing.T) {
	for name, c := range map[string]struct {
		said          string
		unknown, lost bool
	}{
		"regions were unavailable, and nothing is known": {v1alpha1.ReasonRegionsUnavailable, true, true},
		"PD has answered that they are back":             {v1alpha1.ReasonRegionsUnavailable, false, false},
		"nothing was wrong before":                       {v1alpha1.ReasonStoresHealthy, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStoresHealthy, Status: metav1.ConditionFalse, Reason: c.said}}
			s.PD.MaxReplicas, s.PD.MajorityUnknown = 3, c.unknown
			for _, n := range []string{"0", "1"} {
				s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9" + n, Address: "hot-" + n + ".hot-peer.ns.svc:20160", State: pd.StateDown, Started: true, Regions: 80})
			}
			set := conditions.New(nil, 1, now())
			store.PutHealth(g, s, storestate.Matches(g, s, v1alpha1.PortTiKV), gate.Dependencies{}, set)
			serves, _ := store.IsServing(g, s, set, now())
			assert.Equal(t, !c.lost, serves)
			assert.Equal(t, c.lost, set.Get(v1alpha1.ConditionStoresHealthy).Reason == v1alpha1.ReasonRegionsUnavailable)
			assert.Equal(t, c.lost, storestate.WaitForMajority(g, s).Reason == v1alpha1.ReasonRegionsUnavailable)
		})
	}
}

// runs is another group's member whose pod is ready.
func runs(name string) *v1alpha1.Instance {
	i := storeInstance(0, "9")
	i.Name = name
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue}}
	return i
}

// U 3: the number of regions is told while a user has to know it, and not before.
func TestAGroupWithoutAnEntrySaysHowManyRegionsItHas(t *testing.T) {
	g, s := world()
	for n := range s.PD.Stores {
		s.PD.Stores[n].Regions = 1234
	}
	put := func() metav1.Condition {
		set := conditions.New(nil, 1, now())
		store.PutHolding(g, s, storestate.Matches(g, s, v1alpha1.PortTiKV), set)
		return set.Get(v1alpha1.ConditionHoldsRegions)
	}
	assert.Empty(t, put().Type)
	g.Annotations = map[string]string{v1alpha1.AnnotationEntryRemoved: "basic"}
	assert.Equal(t, "its 3 stores hold about 3700 region peers", put().Message)
	s.PD.Err = errors.New("no answer")
	assert.Empty(t, put().Type)
}

// KV-15: what was begun with a member is taken back although its Instance is gone,
// by what the Lease says. What a user has done is left alone.
func TestKV15TheEvictionOfADeletedMemberIsRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*observation.Snapshot)
		calls   int
		unknown bool
	}{
		"its leaders are kept away":   {func(*observation.Snapshot) {}, 1, false},
		"its leaders were taken back": {func(s *observation.Snapshot) { s.PD.EvictLeader = nil }, 0, false},
		"PD has been told of another": {func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"2"} }, 0, false},
		"that of a member of its batch likewise": {func(s *observation.Snapshot) {
			s.Lease.Holder.Instance, s.Lease.Batch = "kv-9", []lease.BatchMember{{Instance: "kv-0"}}
		}, 1, false},
		"a member of the batch is there and its restart goes on": {func(s *observation.Snapshot) {
			s.Lease.Holder.Instance, s.Lease.Batch = "kv-9", []lease.BatchMember{{Instance: "kv-0"}}
			i := storeInstance(0, "1")
			i.Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
			s.Instances = append(s.Instances, i)
		}, 0, false},
		"the holder is there":           {func(s *observation.Snapshot) { s.HolderLost = false }, 0, false},
		"another kind's member held it": {func(s *observation.Snapshot) { s.Lease.Holder.Kind = v1alpha1.KindTiFlashGroup }, 0, false},
		"a TiFlash of that name":        {func(s *observation.Snapshot) { s.PD.Stores[0].Labels = map[string]string{"engine": "tiflash"} }, 0, false},
		"PD says nothing":               {func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			s.Lease, s.HolderLost = lease.NewState(lease.NewHolder(s.Instances[0]), now(), 9), true
			s.Instances, s.PD.EvictLeader = s.Instances[1:], []string{"1"}
			c.change(&s)
			calls, unknown := tikv(g, s).UndoOrphaned()
			assert.Len(t, calls, c.calls)
			assert.Equal(t, c.unknown, unknown)
			for _, call := range calls {
				assert.Equal(t, component.Call{Verb: component.StopEvictingLeaders, Target: "1", Instance: "kv-0"}, call)
			}
		})
	}
}

// Whom a suspended group keeps waiting is told so.
func TestASuspendedGroupThatOthersWaitForIsNamed(t *testing.T) {
	g, s := world()
	cold := kv(1)
	cold.Name, cold.Spec.Suspended = "cold", true
	asleep := storeInstance(0, "9")
	asleep.Name, asleep.Spec.Group.Name = "cold-0", "cold"
	s.Siblings, s.Groups = []*v1alpha1.Instance{asleep}, []v1alpha1.Group{g, cold}
	s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "cold-0.cold-peer.ns.svc:20160", State: pd.StateDisconnected, Started: true, Regions: 30})
	const says = "TiKVGroup cold is suspended: to resume it, set spec.suspended to false: kubectl -n ns edit tikvgroup cold"
	assert.Equal(t, "store 9 (cold-0) is Disconnected, for "+says, tikv(g, s).OthersWork(s.Instances[0]).Reason())
	assert.Contains(t, tikv(g, s).CanDoWithout(s.Instances[0]).Reason(), "2 TiKV stores would stay Up")
	assert.Contains(t, tikv(g, s).CanDoWithout(s.Instances[0]).Reason(), says)
	// A group that a TidbCluster has made is set back.
	cold.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindTidbCluster, Name: "basic", Controller: ptr.To(true)}}
	assert.Contains(t, tikv(g, s).OthersWork(s.Instances[0]).Reason(), "to false: kubectl -n ns edit tidbcluster basic")
	cold.Spec.Suspended = false
	assert.Equal(t, "store 9 (cold-0) is Disconnected", tikv(g, s).OthersWork(s.Instances[0]).Reason())
	assert.NotContains(t, tikv(g, s).CanDoWithout(s.Instances[0]).Reason(), "suspended")
}
