package budget

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

func TestADrainMayStopOneStoreButNoneBesideADisruption(t *testing.T) {
	group := func(name string, replicas int32) *v1alpha1.TiKVGroup {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(replicas)
		return g
	}
	hot, cold := group("hot", 3), group("cold", 2)
	s := observation.Snapshot{PDGroup: &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", UID: "1"}}, Groups: []v1alpha1.Group{hot, cold}}
	for name, c := range map[string]struct {
		holder string
		lost   bool
		stay   int
	}{
		"nothing is disrupted":                         {"", false, 4},
		"a store is disrupted":                         {v1alpha1.KindTiKVGroup, false, 5},
		"a store that is gone is not":                  {v1alpha1.KindTiKVGroup, true, 4},
		"PD is disrupted, which is nothing to a store": {v1alpha1.KindPDGroup, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s.Lease, s.HolderLost = lease.State{Holder: lease.Holder{Kind: c.holder, Instance: "x-0"}}, c.lost
			a, b := SharedBudget(hot, s), SharedBudget(cold, s)
			assert.Equal(t, c.stay, a.Spec.MinAvailable.IntValue())
			assert.Equal(t, a.Name, b.Name)
			assert.Equal(t, a.Spec, b.Spec, "both groups ask for the same")
		})
	}
	s.PDGroup = nil
	assert.Nil(t, SharedBudget(hot, s))
}

// P1: Kubernetes counts pods that are ready. What PD misses, and what is there beyond
// spec.replicas, is added to those that have to stay.
func TestADrainStopsNoStoreWhilePDMissesAnother(t *testing.T) {
	ready := []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue}}
	closed := &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(3))}}
	for name, c := range map[string]struct {
		replicas int32
		change   func(*observation.Snapshot)
		stay     int
	}{
		"all serve":               {3, func(*observation.Snapshot) {}, 2},
		"PD does not hear of one": {3, func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDisconnected }, 3},
		"nor of one for long":     {3, func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDown }, 3},
		"one of another group": {3, func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateDown
			s.Groups = append(s.Groups, &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "cold"}})
			s.Groups[1].(*v1alpha1.TiKVGroup).Spec.Replicas = ptr.To[int32](0)
			s.Instances[0].Spec.Group.Name, s.Siblings, s.Instances = "cold", s.Instances[:1], s.Instances[1:]
		}, 4},
		"it has no regions": {3, func(s *observation.Snapshot) { s.PD.Stores[0].State, s.PD.Stores[0].Regions = pd.StateDown, 0 }, 2},
		"its pod is not ready, and is not counted": {3, func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateDown
			s.Instances[0].Status.Conditions = nil
		}, 2},
		"PD has removed it":                    {3, func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:] }, 2},
		"one is to leave and has not left yet": {2, func(*observation.Snapshot) {}, 2},
		"its pod has stopped, and its regions are elsewhere": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Regions = pd.StateOffline, 0
			s.Instances[0].Status.PodUID, s.Instances[0].Status.Conditions = "", nil
		}, 1},
		"its pod has stopped, and its regions are not elsewhere yet": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateOffline
			s.Instances[0].Status.PodUID, s.Instances[0].Status.Conditions = "", nil
		}, 2},
		"one has lost its claim, and another one stands in for it": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateDown
			s.Instances[0].Status.PodUID, s.Instances[0].Status.Conditions = "", nil
			instancetest.MarkDeleted(s.Instances[0])
		}, 2},
		"one never came, and has no pod": {2, func(s *observation.Snapshot) {
			s.Instances[0].Status.PodUID, s.Instances[0].Status.Conditions, s.Instances[0].Status.Member = "", nil, nil
		}, 1},
		"one is beyond, and has no regions": {2, func(s *observation.Snapshot) { s.PD.Stores[0].Regions = 0 }, 2},
		"one is dead, and has regions still": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.Instances[0].Status.Conditions = pd.StateDown, nil
		}, 2},
		"one is dead, and its regions are elsewhere": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Regions, s.Instances[0].Status.Conditions = pd.StateDown, 0, nil
		}, 1},
		"and PD's leader is new": {2, func(s *observation.Snapshot) {
			for n := range s.PD.Stores {
				s.PD.Stores[n].Regions = 0
			}
			s.Instances[0].Status.Conditions = nil
		}, 2},
		"and PD does not answer": {2, func(s *observation.Snapshot) {
			s.PD, s.Instances[0].Status.Conditions = pd.View{Err: errors.New("no")}, nil
		}, 2},
		"one never came": {2, func(s *observation.Snapshot) {
			s.Instances[0].Status.Conditions, s.Instances[0].Status.Member = nil, nil
		}, 1},
		"one of a group that is suspended, and its regions are elsewhere": {2, func(s *observation.Snapshot) { suspend(s, 0) }, 1},
		"and not elsewhere yet": {2, func(s *observation.Snapshot) { suspend(s, 9) }, 2},
		"one of a group that is gone runs on": {2, func(s *observation.Snapshot) {
			s.Instances[0].Spec.Group.Name, s.Siblings, s.Instances = "cold", s.Instances[:1], s.Instances[1:]
		}, 2},
		"and of one that is about to be": {2, func(s *observation.Snapshot) {
			s.Groups = append(s.Groups, &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "cold", DeletionTimestamp: &metav1.Time{}}})
			s.Instances[0].Spec.Group.Name, s.Siblings, s.Instances = "cold", s.Instances[:1], s.Instances[1:]
		}, 2},
		"but one that is deleted with it does not": {2, func(s *observation.Snapshot) {
			s.Instances[0].Spec.Group.Name, s.Siblings, s.Instances = "cold", s.Instances[:1], s.Instances[1:]
			instancetest.MarkDeleted(s.Siblings[0])
		}, 1},
		"one of a group that was deleted has regions still": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Address, s.Instances = pd.StateDown, "cold-0.cold-peer.ns.svc:20160", s.Instances[1:]
		}, 2},
		"and is being removed from PD": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Address, s.Instances = pd.StateOffline, "cold-0.cold-peer.ns.svc:20160", s.Instances[1:]
		}, 2},
		"and its regions are elsewhere": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Regions, s.PD.Stores[0].Address, s.Instances = pd.StateDown, 0, "cold-0.cold-peer.ns.svc:20160", s.Instances[1:]
		}, 1},
		"and it has no voters": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Address, s.Instances = pd.StateDown, "cold-0.cold-peer.ns.svc:20160", s.Instances[1:]
			s.PD.Stores[0].Labels = map[string]string{"engine": "tiflash"}
		}, 1},
		"one that is wanted has lost its Instance": {3, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Address, s.Instances = pd.StateDown, "kv-0.kv-peer.ns.svc:20160", s.Instances[1:]
		}, 2},
		"one that is too many has": {2, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Address, s.Instances = pd.StateDown, "kv-3.kv-peer.ns.svc:20160", s.Instances[1:]
		}, 2},
		"nor beside one of a group that was deleted": {1, func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].Address, s.Instances = pd.StateDown, "cold-0.cold-peer.ns.svc:20160", s.Instances[1:2]
		}, 0},
		"a region would be without a majority beside a peer that catches up": {3, func(s *observation.Snapshot) {
			s.Regions = []pd.Region{voters(pd.Peer{StoreID: "4", Voter: true, Pending: true})}
		}, 3},
		"and beside one that its leader has not heard of for long": {3, func(s *observation.Snapshot) {
			s.Regions = []pd.Region{voters(pd.Peer{StoreID: "4", Voter: true, Down: true})}
		}, 3},
		"a learner that catches up is no voter": {3, func(s *observation.Snapshot) {
			s.Regions = []pd.Region{voters(pd.Peer{StoreID: "4", Voter: true}, pd.Peer{StoreID: "7", Pending: true})}
		}, 2},
		"nor do all but a leader that has just been elected": {3, func(s *observation.Snapshot) {
			s.Regions = []pd.Region{{Peers: []pd.Peer{{StoreID: "4", Voter: true}, {StoreID: "5", Voter: true, Pending: true}, {StoreID: "6", Voter: true, Pending: true}}}}
		}, 2},
		"nor does a region that has two voters": {3, func(s *observation.Snapshot) {
			s.Regions = []pd.Region{{Peers: voters(pd.Peer{StoreID: "4", Voter: true, Pending: true}).Peers[1:]}}
		}, 2},
		"one of five catches up, without which a region keeps its majority": {3, func(s *observation.Snapshot) {
			s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "7", State: pd.StateUp}, pd.Store{ID: "8", State: pd.StateUp})
			s.Regions = []pd.Region{voters(pd.Peer{StoreID: "4", Voter: true, Pending: true}, pd.Peer{StoreID: "7", Voter: true}, pd.Peer{StoreID: "8", Voter: true})}
		}, 2},
		"what catches up is on a store that is disrupted already": {3, func(s *observation.Snapshot) {
			s.Lease.Holder = lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: "kv-0"}
			s.Regions = []pd.Region{voters(pd.Peer{StoreID: "4", Voter: true, Pending: true})}
		}, 3},
		"PD does not say which peers catch up, and a store has just come back": {3, func(s *observation.Snapshot) {
			s.RegionsErr, s.Now = errors.New("no"), ready[0].LastTransitionTime.Add(time.Minute)
		}, 3},
		"nor for long": {3, func(s *observation.Snapshot) {
			s.RegionsErr, s.Now = errors.New("no"), ready[0].LastTransitionTime.Add(time.Hour)
		}, 2},
		"PD changes its leader while a store catches up": {3, func(s *observation.Snapshot) {
			s.PD, s.Budget = pd.View{Err: pd.ErrNoLeader}, closed
		}, 3},
		"while none does": {3, func(s *observation.Snapshot) {
			s.PD, s.Budget = pd.View{Err: pd.ErrNoLeader}, OwnBudget(s.Groups[0])
		}, 2},
		"and does not come back": {3, func(s *observation.Snapshot) {
			s.PD, s.Budget, s.Now = pd.View{Err: pd.ErrNoLeader}, closed, ready[0].LastTransitionTime.Add(2*time.Minute)
			s.Groups[0].GetGroupStatus().Conditions = []metav1.Condition{{Type: v1alpha1.ConditionStoresHealthy, Status: metav1.ConditionUnknown}}
		}, 2},
		"a single one never keeps a drain from ending": {1, func(s *observation.Snapshot) { s.Instances = s.Instances[:1]; s.PD.Stores[0].State = pd.StateDown }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv"}}
			g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(c.replicas)
			s := observation.Snapshot{PDGroup: &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", UID: "1"}}, Groups: []v1alpha1.Group{g}}
			for n, id := range []string{"4", "5", "6"} {
				i := instancetest.Instance(int32(n), id) //nolint:gosec // a few
				i.Spec.Group.Name, i.Status.PodUID, i.Status.Conditions, i.Status.Member = "kv", "pod", ready, &v1alpha1.MemberStatus{ID: id}
				s.Instances = append(s.Instances, i)
				s.PD.Stores = append(s.PD.Stores, pd.Store{ID: id, State: pd.StateUp, Regions: 9})
			}
			c.change(&s)
			assert.Equal(t, c.stay, SharedBudget(g, s).Spec.MinAvailable.IntValue())
		})
	}
}

// suspend makes the first Instance the one of another group, which is suspended and has three replicas;
// so many regions are on its store.
func suspend(s *observation.Snapshot, regions int) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: "cold"}}
	g.Spec.Replicas, g.Spec.Suspended = ptr.To[int32](3), true
	s.Groups = append(s.Groups, g)
	s.PD.Stores[0].State, s.PD.Stores[0].Regions = pd.StateDown, regions
	s.Instances[0].Spec.Group.Name, s.Instances[0].Status.PodUID, s.Instances[0].Status.Conditions = "cold", "", nil
	s.Siblings, s.Instances = s.Instances[:1], s.Instances[1:]
}

// What is suspended keeps no node of others from being drained: no majority depends on learners.
func TestADrainGoesOnBesideASuspendedGroupOfLearners(t *testing.T) {
	group := func(name string) *v1alpha1.TiFlashGroup {
		g := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To[int32](2)
		return g
	}
	on, off := group("on"), group("off")
	s := observation.Snapshot{PDGroup: &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", UID: "1"}}, Groups: []v1alpha1.Group{on, off}}
	for n, id := range []string{"4", "5", "6", "7"} {
		i := instancetest.Instance(int32(n), id) //nolint:gosec // a few
		i.Spec.Group.Name, i.Status.PodUID, i.Status.Member = "on", "pod", &v1alpha1.MemberStatus{ID: id}
		i.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionTrue}}
		s.PD.Stores = append(s.PD.Stores, pd.Store{ID: id, State: pd.StateUp, Regions: 9})
		s.Instances = append(s.Instances, i)
	}
	for _, i := range s.Instances[2:] {
		i.Spec.Group.Name = "off"
	}
	s.Instances, s.Siblings = s.Instances[:2], s.Instances[2:]
	assert.Equal(t, 3, SharedBudget(on, s).Spec.MinAvailable.IntValue())
	off.Spec.Suspended = true
	assert.Equal(t, 3, SharedBudget(on, s).Spec.MinAvailable.IntValue(), "its pods run still")
	for n, i := range s.Siblings {
		i.Status.PodUID, i.Status.Conditions, s.PD.Stores[2+n].State = "", nil, pd.StateDown
	}
	assert.Equal(t, 1, SharedBudget(on, s).Spec.MinAvailable.IntValue())
}

// voters is a region with these peers and a voter on stores 5 and 6 each.
func voters(peers ...pd.Peer) pd.Region {
	return pd.Region{ID: "1", Peers: append(peers, pd.Peer{StoreID: "5", Voter: true}, pd.Peer{StoreID: "6", Voter: true})}
}

func TestADrainMayTakeOneServerOfATiDBGroup(t *testing.T) {
	for replicas, stay := range map[int32]int{0: 0, 1: 0, 2: 1, 5: 4} {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "7"}}
		g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(replicas)
		b := OwnBudget(g)
		assert.Equal(t, stay, b.Spec.MinAvailable.IntValue())
		assert.Equal(t, "db-tidb", b.Name)
		assert.Equal(t, observation.BudgetName(g), b.Name)
		require.Len(t, b.OwnerReferences, 1)
		assert.Equal(t, v1alpha1.KindTiDBGroup, b.OwnerReferences[0].Kind, "it goes with its group")
		assert.Equal(t, "db", b.Spec.Selector.MatchLabels[v1alpha1.LabelGroup])
	}
}

// P1: a member whose pod runs and is not ready may serve the others all the same: a proxy that others have put into the
// pod has lost its way, or the kubelet gets no answer in time. Of several of these a drain may not take all at once.
func TestADrainLeavesMembersThatRunAndAreNotReady(t *testing.T) {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "kv"}}
	g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To[int32](3)
	unready := func(reason string, joined metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: reason}, {Type: v1alpha1.ConditionJoined, Status: joined}}
	}
	runs := unready(v1alpha1.ReasonPodNotReady, metav1.ConditionTrue)
	for name, c := range map[string]struct {
		revision   string // that the group has reached
		conditions [][]metav1.Condition
		policy     policyv1.UnhealthyPodEvictionPolicyType
	}{
		"one":                            {"1", [][]metav1.Condition{runs}, policyv1.AlwaysAllow},
		"two":                            {"1", [][]metav1.Condition{runs, runs}, policyv1.IfHealthyBudget},
		"one, and one that does not run": {"1", [][]metav1.Condition{runs, unready(v1alpha1.ReasonContainerCrashing, metav1.ConditionTrue)}, policyv1.AlwaysAllow},
		"one, and one that is new":       {"1", [][]metav1.Condition{runs, unready(v1alpha1.ReasonPodNotReady, metav1.ConditionFalse)}, policyv1.AlwaysAllow},
		"two of a group that comes up":   {"", [][]metav1.Condition{runs, runs}, policyv1.AlwaysAllow},
	} {
		t.Run(name, func(t *testing.T) {
			g.Status.CurrentRevision = c.revision
			s := observation.Snapshot{PDGroup: &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", UID: "1"}}, Groups: []v1alpha1.Group{g}}
			for slot, conditions := range c.conditions {
				i := instancetest.Instance(int32(slot), "uid")
				i.Spec.Group, i.Status.Conditions = v1alpha1.InstanceGroup{Kind: g.GroupKind(), Name: g.Name}, conditions
				s.Instances = append(s.Instances, i)
			}
			assert.Equal(t, c.policy, *SharedBudget(g, s).Spec.UnhealthyPodEvictionPolicy)
		})
	}
}
