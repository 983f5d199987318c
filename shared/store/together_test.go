package store_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// zoned is a cluster of six stores, two in each of three zones, all of one group.
// PD keeps the voters of every region in different zones.
func zoned() observation.Snapshot {
	var instances []*v1alpha1.Instance
	var stores []pd.Store
	for n := range 6 {
		i := storeInstance(int32(n), fmt.Sprint(n+1), served()...)
		i.UID, i.Spec.Group.Kind = types.UID(i.Name), v1alpha1.KindTiKVGroup
		i.Status.PodUID, i.Status.NodeName = types.UID("pod-"+i.Name), "node"
		s := at(n, fmt.Sprint(n+1), pd.StateUp)
		s.Labels = map[string]string{"zone": fmt.Sprintf("z%d", n/2+1), "host": fmt.Sprint(n)}
		s.Leaders, s.Regions = 10, 30
		instances, stores = append(instances, i), append(stores, s)
	}
	s := snapshot(instances, stores...)
	s.PD.Leader, s.PD.Members, s.Now = "pd-0", []pd.Member{{Name: "pd-0", ID: "1", Healthy: true}}, now()
	s.PD.MaxReplicas, s.PD.LocationLabels, s.PD.IsolationLevel = 3, []string{"zone", "host"}, "zone"
	s.PD.PlacementRules = true
	s.PD.Rules = []pd.Rule{{Group: "pd", ID: "default", Role: "voter", Count: 3, LocationLabels: s.PD.LocationLabels, IsolationLevel: "zone"}}
	s.RegionsKnown = true
	return s
}

func together(s observation.Snapshot) store.Component {
	c := tikv(kv(6), s)
	c.RestartTogether = "zone"
	return c
}

// first are the members in the first zone.
func first(s observation.Snapshot) []*v1alpha1.Instance { return s.Instances[:2] }

// lets returns a function that reports whether the members of the first zone may be
// stopped at the same time, of a cluster with some regions.
func lets(s observation.Snapshot) func(regions ...pd.Region) bool {
	c := together(s)
	reason, q := cmp.Or(c.AllowsBatch(first(s)).Reason(), c.AllowsBatchNow(first(s)).Reason()), c.BatchQuestion(first(s))
	return func(regions ...pd.Region) bool {
		for _, r := range regions {
			on := slices.ContainsFunc(r.Peers, func(p pd.Peer) bool { return slices.Contains(q.Stores, p.StoreID) })
			if on && q.Sought(r) {
				return c.AllowsByRegions(observation.RegionAnswer{Stores: q.Stores, Found: &r}).Reason() == ""
			}
		}
		return reason == "" && c.AllowsByRegions(observation.RegionAnswer{Stores: q.Stores}).Reason() == ""
	}
}

// P1: wherever the three voters of up to four regions lie on six stores in three
// zones, and whichever stores do not work, no region is without a majority when a
// zone has been stopped. PD may be wrong about the stores of the zone itself.
func TestNoRegionLosesItsMajorityWithAZone(t *testing.T) {
	placed := trios()
	stopped, held := 0, 0
	for down := range 1 << 6 {
		s := zoned()
		for n := range s.PD.Stores {
			if down&(1<<n) != 0 {
				s.PD.Stores[n].State = pd.StateDisconnected
			}
		}
		may := lets(s)
		for a := range placed {
			for b := range a + 1 {
				for c := range b + 1 {
					for d := range c + 1 {
						regions := []pd.Region{placed[a], placed[b], placed[c], placed[d]}
						if !may(regions...) {
							held++
							continue
						}
						stopped++
						for _, r := range regions {
							if what := shortOf(r, down|3); what != "" {
								t.Fatalf("stores down %06b, peers %+v: %s", down, r.Peers, what)
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d states: the zone is stopped in %d of them and held in %d", stopped+held, stopped, held)
	assert.Positive(t, stopped)
	assert.Positive(t, held)
}

// P1: nor by what PD does with a region before it knows that the zone is stopped,
// whatever peers and learners it has.
func TestNoRegionLosesItsMajorityWithAZoneWhilePDMovesPeers(t *testing.T) {
	stopped, held := 0, 0
	for _, r := range regionsOf(6, 3) {
		s := zoned()
		r.LeaderStore = "3"
		if r.Missing || slices.ContainsFunc(r.Peers, func(p pd.Peer) bool { return p.Down || p.Pending }) {
			s.Regions = []pd.Region{r}
		}
		if !lets(s)(r) {
			held++
			continue
		}
		stopped++
		for _, next := range following(r, s) {
			sick := 0
			for _, p := range r.Peers {
				if p.Down {
					sick |= 1 << (p.StoreID[0] - '1')
				}
			}
			assert.Empty(t, shortOf(next, sick|3), "peers %+v, then %+v", r.Peers, next.Peers)
		}
	}
	t.Logf("%d regions: the zone is stopped with %d of them and held with %d", stopped+held, stopped, held)
	assert.Positive(t, stopped)
	assert.Positive(t, held)
}

// trios are the regions of three voters on six stores.
func trios() []pd.Region {
	var out []pd.Region
	for a := 1; a <= 6; a++ {
		for b := a + 1; b <= 6; b++ {
			for c := b + 1; c <= 6; c++ {
				r := pd.Region{ID: fmt.Sprint(len(out) + 1), LeaderStore: fmt.Sprint(c)}
				for _, id := range []int{a, b, c} {
					r.Peers = append(r.Peers, pd.Peer{StoreID: fmt.Sprint(id), Voter: true})
				}
				out = append(out, r)
			}
		}
	}
	return out
}

// shortOf says what a region lacks for a majority of its voters while the stores of
// a set of bits do not work; empty if nothing.
func shortOf(r pd.Region, down int) string {
	alive, voters := 0, 0
	for _, p := range r.Peers {
		if !p.Voter {
			continue
		}
		voters++
		if down&(1<<(p.StoreID[0]-'1')) == 0 {
			alive++
		}
	}
	if alive >= voters/2+1 {
		return ""
	}
	return fmt.Sprintf("%d of %d voters", alive, voters)
}

// What is not proven is named, with what to type.
func TestConditionsThatKeepAZoneFromBeingRestartedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		says   string
	}{
		"no such location label": {func(s *observation.Snapshot) { s.PD.LocationLabels = []string{"host"} },
			`PD's location-labels are "host": kubectl -n ns exec svc/pd -- /pd-ctl config set location-labels LABEL,LABEL, with zone where it belongs, from the largest to the smallest`},
		"no location label at all": {func(s *observation.Snapshot) { s.PD.LocationLabels = nil }, `config set location-labels zone`},
		"no isolation level": {func(s *observation.Snapshot) { s.PD.IsolationLevel = "" },
			`PD's isolation-level is "", and regions may have several peers in the same zone: kubectl -n ns exec svc/pd -- /pd-ctl config set isolation-level zone`},
		"no isolation level, and fewer zones than replicas, which PD would then leave out": {func(s *observation.Snapshot) {
			s.PD.IsolationLevel = ""
			for n := range s.PD.Stores {
				s.PD.Stores[n].Labels["zone"] = fmt.Sprintf("z%d", min(n/2, 1))
			}
		}, "stores are Up in 2 zones, and PD keeps 3 replicas of every region, which need as many: add stores elsewhere"},
		"no isolation level, and the spec of PD says so": {func(s *observation.Snapshot) {
			s.PD.IsolationLevel = ""
			s.PDGroup.Spec.Config = "[replication]\nisolation-level = \"\""
		}, "in the same zone: set in spec.config (kubectl -n ns edit pdgroup pd) replication.isolation-level to zone"},
		"a finer isolation level": {func(s *observation.Snapshot) { s.PD.IsolationLevel = "host" },
			`PD's isolation-level is "host"`},
		"a rule without it": {func(s *observation.Snapshot) { s.PD.Rules[0].IsolationLevel = "" },
			`PD's placement rule pd/default has the isolation level "", and regions may have several peers in the same zone: kubectl -n ns exec svc/pd -- /pd-ctl config placement-rules rule-bundle get pd, and give it location_labels with zone and isolation_level zone`},
		"a rule with other labels": {func(s *observation.Snapshot) { s.PD.Rules[0].LocationLabels = []string{"host"} },
			`PD's placement rule pd/default has the isolation level "zone"`},
		"a second rule for voters": {func(s *observation.Snapshot) {
			s.PD.Rules = append(s.PD.Rules, pd.Rule{Group: "hot", ID: "here", Role: "follower", Count: 1, LocationLabels: s.PD.LocationLabels, IsolationLevel: "zone"})
		}, "PD's placement rule hot/here says where voters are, beside or instead of one rule for all, and they may share a zone: kubectl -n ns exec svc/pd -- /pd-ctl config placement-rules show"},
		"one rule that sends voters to a zone": {func(s *observation.Snapshot) {
			s.PD.Rules[0].Constraints = []pd.Constraint{{Key: "zone", Op: "in", Values: []string{"z1"}}}
		}, "PD's placement rule pd/default says where voters are"},
		"no rule for voters": {func(s *observation.Snapshot) { s.PD.Rules[0].Role = "learner" },
			"PD has no placement rule for voters: kubectl -n ns exec svc/pd -- /pd-ctl config placement-rules show"},
		"two replicas": {func(s *observation.Snapshot) { s.PD.Rules[0].Count = 2 },
			"PD keeps 2 replicas of every region, which cannot do without one: kubectl -n ns exec svc/pd -- /pd-ctl config set max-replicas 3"},
		"more replicas than zones": {func(s *observation.Snapshot) { s.PD.Rules[0].Count = 5 },
			"stores are Up in 3 zones, and PD keeps 5 replicas of every region, which need as many: add stores elsewhere"},
		"a zone without a store that is Up": {func(s *observation.Snapshot) { s.PD.Stores[4].State, s.PD.Stores[5].State = pd.StateDown, pd.StateDown },
			"stores are Up in 2 zones"},
		"a store without the label": {func(s *observation.Snapshot) { s.PD.Stores[3].Labels = nil },
			"store 4 (kv-3) has no label zone: it comes from a label of its node, or kubectl -n ns exec svc/pd -- /pd-ctl store label 4 zone=VALUE"},
		"a store elsewhere that does not work": {func(s *observation.Snapshot) { s.PD.Stores[5].State = pd.StateDisconnected },
			"store 6 (kv-5) is Disconnected"},
		"one that is Down has no regions": {func(s *observation.Snapshot) { s.PD.Stores[5].State, s.PD.Stores[5].Regions = pd.StateDown, 0 },
			"store 6 (kv-5) is Down: bring it back"},
		"one that leaves": {func(s *observation.Snapshot) { s.PD.Stores[5].State = pd.StateOffline },
			"store 6 (kv-5) is being removed and still holds regions"},
		"a pod elsewhere that is being stopped": {func(s *observation.Snapshot) { says(s.Instances[3], v1alpha1.ReasonPodTerminating) },
			"the pod of Instance kv-3 is being stopped or recreated, and PD still takes store 4 for Up"},
		"a member that has moved to another zone": {func(s *observation.Snapshot) { s.PD.Stores[1].Labels["zone"] = "z2" },
			"store 2 (kv-1) is no longer in the same zone"},
		"a region that lacks a peer": {func(s *observation.Snapshot) {
			s.Regions = []pd.Region{{ID: "7", LeaderStore: "3", Missing: true, Peers: []pd.Peer{{StoreID: "1", Voter: true}, {StoreID: "3", Voter: true}}}}
		}, "a region lacks a peer, or has one that is down or pending, and may need the whole zone: kubectl -n ns exec svc/pd -- /pd-ctl region check miss-peer (likewise down-peer, pending-peer)"},
		"regions that could not be asked for": {func(s *observation.Snapshot) { s.RegionsErr = errors.New("no answer") }, "no answer"},
		"regions that were not asked for": {func(s *observation.Snapshot) {
			s.RegionsKnown, s.Lease = false, lease.NewState(lease.NewHolder(s.Instances[0]), now(), 0)
		}, "PD has not been asked about its regions yet"},
		"PD removes stores by force": {func(s *observation.Snapshot) { s.PD.MajorityLost, s.PD.ForceRemoved = true, []string{"8", "9"} },
			"PD was told to remove stores 8, 9 by force"},
		"PD has no quorum":    {func(s *observation.Snapshot) { s.PD.Leader = "" }, "PDGroup pd has no quorum"},
		"PD does not answer":  {func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("PD is away")} }, "PD is away"},
		"all is as it should": {func(*observation.Snapshot) {}, ""},
		"isolated by a larger place": {func(s *observation.Snapshot) {
			s.PD.LocationLabels, s.PD.IsolationLevel = []string{"region", "zone"}, "region"
			s.PD.Rules[0].LocationLabels, s.PD.Rules[0].IsolationLevel = s.PD.LocationLabels, "region"
			for n := range s.PD.Stores {
				s.PD.Stores[n].Labels["region"] = "r" + s.PD.Stores[n].Labels["zone"]
			}
		}, ""},
		"without placement rules":          {func(s *observation.Snapshot) { s.PD.PlacementRules, s.PD.Rules = false, nil }, ""},
		"a store of the zone that is down": {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDisconnected }, ""},
		"TiFlash with its rules": {func(s *observation.Snapshot) {
			s.PD.Rules = append(s.PD.Rules, pd.Rule{Group: "tiflash", ID: "table-1-r", Role: "learner", Count: 1})
			s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "fl-0.x:1", State: pd.StateUp, Started: true, Labels: map[string]string{"engine": "tiflash"}})
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := zoned()
			c.change(&s)
			got := cmp.Or(together(s).AllowsBatch(first(s)).Reason(), together(s).AllowsBatchNow(first(s)).Reason())
			if c.says == "" {
				assert.Empty(t, got)
			}
			assert.Contains(t, got, c.says)
		})
	}
}

func TestRegionsThatKeepAZoneFromBeingStopped(t *testing.T) {
	s := zoned()
	c := together(s)
	q := c.BatchQuestion(first(s))
	assert.Equal(t, []string{"1", "2"}, q.Stores)
	peers := func(ids ...string) (out []pd.Peer) {
		for _, id := range ids {
			out = append(out, pd.Peer{StoreID: id, Voter: true})
		}
		return out
	}
	assert.False(t, q.Sought(pd.Region{ID: "7", LeaderStore: "1", Peers: peers("1", "3", "5")}))
	for says, r := range map[string]pd.Region{
		"region 7 may need more than one peer of the same zone, from which PD moves it away: kubectl -n ns exec svc/pd -- /pd-ctl region 7": {ID: "7", LeaderStore: "1", Peers: peers("1", "2", "5")},
		"PD has not heard of the leader of region 8 since its own has changed":                                                              {ID: "8", Peers: peers("1", "3", "5")},
	} {
		assert.True(t, q.Sought(r))
		assert.Equal(t, says, c.AllowsByRegions(observation.RegionAnswer{Stores: q.Stores, Found: &r}).Reason())
	}
	// A peer that is on its way from one store of the zone to another counts twice.
	assert.True(t, q.Sought(pd.Region{ID: "9", LeaderStore: "1", Peers: append(peers("1", "3", "5"), pd.Peer{StoreID: "2"})}))
	// So do two learners that PD scatters there.
	assert.True(t, q.Sought(pd.Region{ID: "9", LeaderStore: "3", Peers: append(peers("3", "4", "5"), pd.Peer{StoreID: "1"}, pd.Peer{StoreID: "2"})}))
	// Two of five voters may be both of one half of a joint configuration.
	sick := pd.Region{ID: "9", LeaderStore: "3", Peers: peers("1", "3", "4", "5", "6")}
	assert.False(t, q.Sought(sick))
	sick.Peers[4].Pending = true
	assert.True(t, q.Sought(sick))
	assert.Equal(t, "the regions of the stores could not be read: no", c.AllowsByRegions(observation.RegionAnswer{Err: errors.New("no")}).Reason())
}

func TestStoresOfOneZoneAreRestartedTogether(t *testing.T) {
	s := zoned()
	with, alone := together(s).ChooseBatch(s.Instances[2], slices.Delete(slices.Clone(s.Instances), 2, 3))
	assert.False(t, alone.IsGiven())
	assert.Equal(t, []*v1alpha1.Instance{s.Instances[3]}, with)

	with, alone = tikv(kv(6), s).ChooseBatch(s.Instances[2], s.Instances)
	assert.Empty(t, with, "the spec does not ask for it")
	assert.False(t, alone.IsGiven())

	s.PD.IsolationLevel = ""
	with, alone = together(s).ChooseBatch(s.Instances[2], s.Instances[3:])
	assert.Empty(t, with)
	assert.Contains(t, alone.Text(), "kubectl -n ns exec svc/pd -- /pd-ctl config set isolation-level zone")
}
