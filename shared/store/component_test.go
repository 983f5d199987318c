package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// world is three TiKV that serve, with ten leaders and thirty regions each, and
// their group.
func world() (*v1alpha1.TiKVGroup, observation.Snapshot) {
	s := snapshot([]*v1alpha1.Instance{storeInstance(0, "1", served()...), storeInstance(1, "2", served()...), storeInstance(2, "3", served()...)},
		at(0, "1", pd.StateUp), at(1, "2", pd.StateUp), at(2, "3", pd.StateUp))
	for n, i := range s.Instances {
		i.UID, i.Spec.Group.Kind = types.UID(i.Name), v1alpha1.KindTiKVGroup
		i.Status.PodUID, i.Status.NodeName = types.UID("pod-"+i.Name), "node"
		s.PD.Stores[n].Leaders, s.PD.Stores[n].Regions = 10, 30
	}
	s.PD.Leader, s.PD.MaxReplicas, s.Now = "pd-0", 3, now()
	s.PD.Members = []pd.Member{{Name: "pd-0", ID: "1", Healthy: true}}
	return kv(3), s
}

func tikv(g *v1alpha1.TiKVGroup, s observation.Snapshot) store.Component {
	c := store.New(g, s, v1alpha1.PortTiKV)
	c.HasLeaders, c.EvictTimeout = true, 10*time.Minute
	return c
}

func podIs(i *v1alpha1.Instance, reason string) {
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: reason}, {Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}}
}

// says has an Instance carry nothing but why it is not Ready.
func says(i *v1alpha1.Instance, reason string) {
	i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, ObservedGeneration: i.Generation}}
}

func TestKV14MembersThatDoNotServeMayBeRestartedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		idle   bool
	}{
		"one that serves does not": {func(*observation.Snapshot) {}, false},
		"one without a pod":        {func(s *observation.Snapshot) { s.Instances[0].Status.PodUID = "" }, true},
		"one that fits on no node, while PD does not answer": {func(s *observation.Snapshot) {
			s.Instances[0].Status.NodeName, s.PD = "", pd.View{Err: errors.New("no")}
		}, true},
		"one whose store is Up stays though its pod crashes": {func(s *observation.Snapshot) { podIs(s.Instances[0], v1alpha1.ReasonContainerCrashing) }, false},
		"one that crashes stays while PD does not answer": {func(s *observation.Snapshot) {
			podIs(s.Instances[0], v1alpha1.ReasonContainerCrashing)
			s.PD = pd.View{Err: errors.New("no")}
		}, false},
		"one that crashes and is not Up": {func(s *observation.Snapshot) {
			podIs(s.Instances[0], v1alpha1.ReasonContainerCrashing)
			s.PD.Stores[0].State = pd.StateDisconnected
		}, true},
		"one with a wrong image that is not Up": {func(s *observation.Snapshot) {
			podIs(s.Instances[0], v1alpha1.ReasonImagePullFailed)
			s.PD.Stores[0].State = pd.StateDisconnected
		}, true},
		"one that PD has lost sight of stays while its process runs": {func(s *observation.Snapshot) {
			podIs(s.Instances[0], v1alpha1.ReasonPodNotReady)
			s.PD.Stores[0].State = pd.StateDisconnected
		}, false},
		"one that is Down without a ready pod": {func(s *observation.Snapshot) {
			podIs(s.Instances[0], v1alpha1.ReasonPodNotReady)
			s.PD.Stores[0].State = pd.StateDown
		}, true},
		"one that is Down stays while its pod is ready": {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDown }, false},
		"one that never registered":                     {func(s *observation.Snapshot) { s.Instances[0].Status.Member, s.PD.Stores = nil, s.PD.Stores[1:] }, true},
		"one that has left":                             {func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:] }, true},
		"one whose store is another's stays":            {func(s *observation.Snapshot) { s.PD.Stores[0].ID = "99" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			c.change(&s)
			assert.Equal(t, c.idle, tikv(g, s).IsNotServing(s.Instances[0]))
		})
	}
}

// P1: across groups, because PD lists the stores of all.
func TestNoStoreIsStoppedWhileAnotherOneIsMissing(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		says   string
	}{
		"all work":                     {func(*observation.Snapshot) {}, ""},
		"PD does not answer":           {func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("PD is asleep")} }, "PD is asleep"},
		"another cluster's PD answers": {func(s *observation.Snapshot) { s.PD.ClusterID = "2" }, "cluster ID 2"},
		"PD has no leader":             {func(s *observation.Snapshot) { s.PD.Leader = "" }, "no quorum"},
		"another store is Down":        {func(s *observation.Snapshot) { s.PD.Stores[1].State = pd.StateDown }, "store 2 (kv-1) is Down: bring it back, or replace it: kubectl -n ns annotate instance kv-1 groups.tidb.dev/replace="},
		"another store is Down and regions have lost their majority": {func(s *observation.Snapshot) {
			s.PD.MajorityLost, s.PD.Stores[1].State = true, pd.StateDown
		}, "store 2 (kv-1) is Down, and regions have lost their majority: bring it back: kubectl -n ns describe instance kv-1"},
		"another store is Disconnected":  {func(s *observation.Snapshot) { s.PD.Stores[1].State = pd.StateDisconnected }, "store 2 (kv-1) is Disconnected"},
		"another store is being removed": {func(s *observation.Snapshot) { s.PD.Stores[1].State = pd.StateOffline }, "store 2 (kv-1) is being removed"},
		"another group's store is Down": {func(s *observation.Snapshot) {
			s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "hot-0.hot-peer.ns.svc:20160", State: pd.StateDown, Regions: 1})
		}, "store 9 (hot-0) does not run and its group is gone: recreate group hot"},
		"another group's store is Down and its Instance is there": {func(s *observation.Snapshot) {
			hot := storeInstance(0, "9")
			hot.Name = "hot-0"
			s.Siblings = append(s.Siblings, hot)
			s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "hot-0.hot-peer.ns.svc:20160", State: pd.StateDown, Regions: 1})
		}, "store 9 (hot-0) is Down: bring it back"},
		"a pod has been evicted and PD has not missed it yet": {func(s *observation.Snapshot) {
			says(s.Instances[1], v1alpha1.ReasonPodTerminating)
		}, "the pod of Instance kv-1 is being stopped or recreated, and PD still takes store 2 for Up"},
		"a pod of another group has been evicted": {func(s *observation.Snapshot) {
			hot := storeInstance(0, "9")
			hot.Name = "hot-0"
			says(hot, v1alpha1.ReasonPodMissing)
			s.Siblings = append(s.Siblings, hot)
			s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "hot-0.hot-peer.ns.svc:20160", State: pd.StateUp, Started: true, Regions: 1})
		}, "the pod of Instance hot-0"},
		"a pod that is not ready":         {func(s *observation.Snapshot) { says(s.Instances[1], v1alpha1.ReasonPodNotReady) }, "the pod of Instance kv-1 is not ready"},
		"a store that is Down holds none": {func(s *observation.Snapshot) { s.PD.Stores[1].State, s.PD.Stores[1].Regions = pd.StateDown, 0 }, ""},
		"PD has not counted regions yet": {func(s *observation.Snapshot) {
			s.PD.Stores[1].State = pd.StateDown
			s.PD.Stores[1].Regions, s.PD.Stores[0].Regions = 0, 0
		}, "store 2 (kv-1) is Down"},
		"PD removes stores by force": {func(s *observation.Snapshot) { s.PD.MajorityLost, s.PD.ForceRemoved = true, []string{"8", "9"} },
			"stores 8, 9 by force, which had them: to see how far it is: kubectl -n ns exec svc/pd -- /pd-ctl unsafe remove-failed-stores show"},
		"a store is not the one recorded": {func(s *observation.Snapshot) { s.PD.Stores[0].ID = "99" }, "is store 1, but"},
		"a TiFlash that is Down counts not": {func(s *observation.Snapshot) {
			s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "f-0.f-peer.ns.svc:3930", State: pd.StateDown, Regions: 1, Labels: map[string]string{"Engine": "tiflash"}})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			c.change(&s)
			got := tikv(g, s).OthersWork(s.Instances[0]).Reason()
			assert.Contains(t, got, c.says)
			assert.Equal(t, c.says == "", got == "", got)
		})
	}
}

// endangered is what every region without a majority is called.
const endangered = "a region would be left without a majority of its voters"

func TestKV13NoRegionIsLeftWithoutAMajority(t *testing.T) {
	region := func(peers ...pd.Peer) []pd.Region { return []pd.Region{{ID: "7", Peers: peers}} }
	lacking := func(peers ...pd.Peer) []pd.Region { return []pd.Region{{ID: "7", Peers: peers, Missing: true}} }
	on := func(id string) pd.Peer { return pd.Peer{StoreID: id, Voter: true} }
	down, pending, learner := on("2"), on("2"), pd.Peer{StoreID: "2"}
	down.Down, pending.Pending = true, true
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		says   string
	}{
		"none is unhealthy":                           {func(*observation.Snapshot) {}, ""},
		"PD was not asked, but the Lease is not ours": {func(s *observation.Snapshot) { s.RegionsKnown = false }, ""},
		"PD was not asked before the stop": {func(s *observation.Snapshot) {
			s.RegionsKnown = false
			s.Lease = lease.NewState(lease.NewHolder(s.Instances[0]), now(), 1)
		}, "PD has not been asked"},
		"PD does not say": {func(s *observation.Snapshot) { s.RegionsErr = errors.New("too busy") }, "too busy"},
		"another peer of a region of its own is down": {func(s *observation.Snapshot) { s.Regions = region(on("1"), down, on("3")) }, endangered},
		"another peer lags behind":                    {func(s *observation.Snapshot) { s.Regions = region(on("1"), pending, on("3")) }, endangered},
		"its own peer is down anyway": {func(s *observation.Snapshot) {
			s.Regions = region(pd.Peer{StoreID: "1", Voter: true, Down: true}, on("2"), on("3"))
		}, ""},
		"a region of others has a peer that is down":        {func(s *observation.Snapshot) { s.Regions = region(down, on("3"), on("4")) }, ""},
		"it holds a learner only":                           {func(s *observation.Snapshot) { s.Regions = region(pd.Peer{StoreID: "1"}, down, on("3")) }, ""},
		"a region lacks a peer":                             {func(s *observation.Snapshot) { s.Regions = lacking(on("1"), on("3")) }, endangered},
		"a region lacks a learner":                          {func(s *observation.Snapshot) { s.Regions = region(on("1"), on("3"), on("2"), learner) }, ""},
		"one voter elsewhere, and the second may come here": {func(s *observation.Snapshot) { s.Regions = lacking(on("2")) }, endangered},
		"its learner here may become the second": {func(s *observation.Snapshot) {
			s.Regions = lacking(on("2"), pd.Peer{StoreID: "1"})
		}, endangered},
		"a third one may come here":       {func(s *observation.Snapshot) { s.Regions = lacking(on("2"), on("3")) }, ""},
		"one voter is all that is wanted": {func(s *observation.Snapshot) { s.Regions = region(on("2"), learner) }, ""},
		"nothing comes to a store that is not Up": {func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateDisconnected
			s.Regions = lacking(on("2"))
		}, ""},
		"two stores will never have three voters": {func(s *observation.Snapshot) {
			s.PD.Stores = s.PD.Stores[:2]
			s.Regions = lacking(on("2"))
		}, ""},
		"five voters can do without two": {func(s *observation.Snapshot) {
			s.PD.Stores = append(s.PD.Stores, at(4, "4", pd.StateUp), at(5, "5", pd.StateUp))
			s.Regions = region(on("1"), down, on("3"), on("4"), on("5"))
		}, ""},
		"a store that PD does not list":                    {func(s *observation.Snapshot) { s.Regions = region(on("1"), on("3"), on("88")) }, endangered},
		"two stores can never do without one":              {func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[:2]; s.Regions = region(on("1"), on("2")) }, ""},
		"two are what a policy wants, and one lags behind": {func(s *observation.Snapshot) { s.Regions = region(on("1"), pending) }, ""},
		"a third voter is on its way in": {func(s *observation.Snapshot) {
			s.Regions = region(on("1"), on("3"), pd.Peer{StoreID: "2", Pending: true})
		}, endangered},
		"a table has three replicas by a policy, all others one": {func(s *observation.Snapshot) {
			s.PD.MaxReplicas, s.PD.Rules = 1, policy(3)
			s.Regions = region(on("1"), down, on("3"))
		}, endangered},
		"all others have one": {func(s *observation.Snapshot) {
			s.PD.MaxReplicas, s.PD.Rules = 1, policy(3)
			s.Regions = region(on("1"), pd.Peer{StoreID: "9"})
		}, ""},
		"a table is to have three by a policy": {func(s *observation.Snapshot) {
			s.PD.MaxReplicas, s.PD.Rules = 1, policy(3)
			s.Regions = lacking(on("1"))
		}, endangered},
		"a region has more than its rules ask for": {func(s *observation.Snapshot) {
			s.PD.MaxReplicas = 1
			s.Regions = region(on("1"), down, on("3"))
		}, endangered},
		"a policy asks for two": {func(s *observation.Snapshot) {
			s.PD.MaxReplicas, s.PD.Rules = 1, policy(2)
			s.Regions = lacking(on("1"))
		}, ""},
		"one replica is what the user wants":         {func(s *observation.Snapshot) { s.PD.MaxReplicas = 1; s.Regions = region(on("1")) }, ""},
		"a member without a store endangers nothing": {func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:]; s.RegionsErr = errors.New("too busy") }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			s.RegionsKnown = true
			c.change(&s)
			got := tikv(g, s).RegionsKeepMajority(s.Instances[0]).Reason()
			assert.Contains(t, got, c.says)
			assert.Equal(t, c.says == "", got == "", got)
		})
	}
}

func TestKV10KV11LeadersGoBeforeAStoreStops(t *testing.T) {
	evict := []component.Call{{Verb: component.EvictLeaders, Target: "1", Instance: "kv-0"}}
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		calls  []component.Call
		ready  bool
		reason string
	}{
		"they are to go":                              {func(*observation.Snapshot) {}, evict, false, v1alpha1.ReasonPreparing},
		"even if there are none, lest some come":      {func(s *observation.Snapshot) { s.PD.Stores[0].Leaders = 0 }, evict, false, v1alpha1.ReasonPreparing},
		"they are going":                              {func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"1"} }, nil, false, v1alpha1.ReasonPreparing},
		"PD does not know yet whether they are":       {func(s *observation.Snapshot) { s.PD.EvictionsUnknown = true }, nil, false, v1alpha1.ReasonPreparing},
		"they have gone":                              {func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"1"}; s.PD.Stores[0].Leaders = 0 }, nil, true, ""},
		"they stayed too long":                        {func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"1"}; s.Now = now().Add(10 * time.Minute) }, nil, true, v1alpha1.ReasonEvictionTimedOut},
		"a store that is Down has none":               {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDown }, nil, true, ""},
		"a store that is gone has none":               {func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:] }, nil, true, ""},
		"there is nowhere to go":                      {func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[:1] }, nil, true, ""},
		"all others are being emptied":                {func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"2", "3"} }, nil, true, ""},
		"nothing is done while PD does not answer":    {func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, nil, false, v1alpha1.ReasonPDUnreachable},
		"a Disconnected store may still lead regions": {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDisconnected }, evict, false, v1alpha1.ReasonPreparing},
		"but not without a ready pod": {func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateDisconnected
			podIs(s.Instances[0], v1alpha1.ReasonPodNotReady)
		}, nil, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			c.change(&s)
			p := tikv(g, s).EvictLeaders(component.Disruption{Instance: s.Instances[0], Verb: member.Restart, Why: "a new image"}, now())
			assert.Equal(t, c.calls, p.Calls)
			assert.Equal(t, c.ready, p.Ready)
			assert.Equal(t, c.reason, p.Wait.Reason, p.Wait.Message)
			if !p.Ready {
				assert.Equal(t, step.KindWait, p.Wait.Kind)
				assert.Positive(t, p.Wait.After)
			}
		})
	}
}

func TestKV12KV15LeadersComeBackBeforeTheNext(t *testing.T) {
	stop := []component.Call{{Verb: component.StopEvictingLeaders, Target: "1", Instance: "kv-0"}}
	ready := func(s *observation.Snapshot, ago time.Duration) {
		s.Instances[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now().Add(-ago))
	}
	// The others lead for it still: its share is more than what it had.
	elsewhere := func(s *observation.Snapshot) { s.PD.Stores[1].Leaders = 20_000 }
	for name, c := range map[string]struct {
		leaders int // before
		change  func(*observation.Snapshot)
		calls   []component.Call
		ready   bool
	}{
		"all are back":        {10, func(*observation.Snapshot) {}, nil, true},
		"two thirds are back": {15, func(*observation.Snapshot) {}, nil, true},
		"fewer are back":      {16, func(s *observation.Snapshot) { ready(s, time.Second); elsewhere(s) }, nil, false},
		"fewer are back after two seconds for each": {16, func(s *observation.Snapshot) { ready(s, 32*time.Second); elsewhere(s) }, nil, true},
		"many have more time":                       {5000, func(s *observation.Snapshot) { ready(s, 399*time.Second); elsewhere(s) }, nil, false},
		"but no more than 400 s":                    {5000, func(s *observation.Snapshot) { ready(s, 400*time.Second); elsewhere(s) }, nil, true},
		"it had none":                               {0, func(s *observation.Snapshot) { s.PD.Stores[0].Leaders = 0; ready(s, 0) }, nil, true},
		"it is kept from leading by us": {10, func(s *observation.Snapshot) {
			s.PD.EvictLeader = []string{"1"}
			s.Instances[0].Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
		}, stop, false},
		"PD does not know yet whether we do": {10, func(s *observation.Snapshot) {
			s.PD.EvictionsUnknown = true
			s.Instances[0].Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
		}, stop, false},
		"a user keeps it from leading":      {10, func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"1"} }, nil, true},
		"it is not Up yet":                  {0, func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDisconnected }, nil, false},
		"PD does not answer":                {0, func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("no")} }, nil, false},
		"it has not registered":             {0, func(s *observation.Snapshot) { s.Instances[0].Status.Member, s.PD.Stores = nil, s.PD.Stores[1:] }, nil, false},
		"it was removed meanwhile":          {10, func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:] }, nil, true},
		"another store has taken its place": {10, func(s *observation.Snapshot) { s.PD.Stores[0].ID = "99" }, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			c.change(&s)
			p := tikv(g, s).RestoreLeaders(s.Instances[0], lease.NewState(lease.NewHolder(s.Instances[0]), now(), c.leaders))
			assert.Equal(t, c.calls, p.Calls)
			assert.Equal(t, c.ready, p.Ready, p.Wait.Message)
			if !p.Ready {
				assert.Positive(t, p.Wait.After)
				assert.NotEmpty(t, p.Wait.Message)
			}
		})
	}
}

func TestKV15OnlyEvictionsWithOurMarkAreRemoved(t *testing.T) {
	g, s := world()
	s.PD.EvictLeader = []string{"1", "2"}
	s.Instances[0].Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
	c := tikv(g, s)
	assert.Equal(t, []component.Call{{Verb: component.StopEvictingLeaders, Target: "1", Instance: "kv-0"}}, c.UndoPreparation(s.Instances[0]))
	assert.Empty(t, c.UndoPreparation(s.Instances[1]), "a user's")
	s.PD.EvictLeader = nil
	assert.Empty(t, tikv(g, s).UndoPreparation(s.Instances[0]), "nothing is left")
	s.PD.EvictionsUnknown = true
	assert.Len(t, tikv(g, s).UndoPreparation(s.Instances[0]), 1, "something may be left")
	assert.Empty(t, tikv(g, s).UndoPreparation(s.Instances[1]))
}
