package store_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// secluded is a label that keeps ordinary regions away.
func secluded() map[string]string { return map[string]string{"$k/exclusive": "true"} }

// beside is world with stores of another group, which are exclusive or not.
func beside(others int, exclusive bool) (*v1alpha1.TiKVGroup, observation.Snapshot) {
	g, s := world()
	s.PD.PlacementRules, s.PD.Bootstrapped = true, true
	for n := range others {
		other := pd.Store{ID: string(rune('7' + n)), Address: string(rune('a'+n)) + ".x-peer.ns.svc:20160", State: pd.StateUp, Started: true}
		if exclusive {
			other.Labels = secluded()
		}
		s.PD.Stores = append(s.PD.Stores, other)
	}
	return g, s
}

// seclude makes stores of the group kv exclusive.
func seclude(s *observation.Snapshot, stores ...int) {
	for _, n := range stores {
		s.PD.Stores[n].Labels = secluded()
	}
}

// rule is one that sends regions to exclusive stores.
func rule(count int) pd.Rule {
	return pd.Rule{Group: "placement", ID: "hot", Role: "voter", Count: count, Constraints: []pd.Constraint{{Key: "$k/exclusive", Op: "exists"}}}
}

// half is a rule of a table's policy for exclusive stores.
func half(table, role string, count int) pd.Rule {
	r := rule(count)
	r.Group, r.ID, r.Role = table, role, role
	return r
}

func TestKV26OrdinaryStoresAreNeededBesideExclusiveOnes(t *testing.T) {
	for name, c := range map[string]struct {
		others    int
		exclusive bool // the others, or else this group
		change    func(*observation.Snapshot)
		says      string
	}{
		"exclusive stores take no ordinary regions": {2, true, func(*observation.Snapshot) {}, "2 TiKV stores beside 2 exclusive would stay Up (store 2, store 3), and PD keeps 3 replicas"},
		"nor do they save a zone": {2, true, func(s *observation.Snapshot) {
			s.PD.MaxReplicas, s.PD.LocationLabels = 2, []string{"zone"}
			s.PD.Stores[0].Labels = map[string]string{"zone": "z1"}
			s.PD.Stores[3].Labels["zone"] = "z1"
		}, "no TiKV would stay Up in zone z1"},
		"without placement rules they are like all":   {1, true, func(s *observation.Snapshot) { s.PD.PlacementRules = false }, ""},
		"an exclusive store is missed by no region":   {3, false, func(s *observation.Snapshot) { seclude(s, 0, 1, 2) }, ""},
		"even if there are too few others anyway":     {2, false, func(s *observation.Snapshot) { seclude(s, 0, 1, 2) }, ""},
		"but PD itself removes none of so few":        {0, false, func(s *observation.Snapshot) { seclude(s, 0, 1, 2) }, "PD removes none while there are not more than its 3 replicas"},
		"a rule that names the label needs it":        {3, false, func(s *observation.Snapshot) { seclude(s, 0, 1, 2); s.PD.Rules = []pd.Rule{rule(3)} }, "PD's placement rule placement/hot wants 3 stores with $k/exclusive exists and 2 would stay Up"},
		"a rule that is content with those that stay": {3, false, func(s *observation.Snapshot) { seclude(s, 0, 1, 2); s.PD.Rules = []pd.Rule{rule(2)} }, ""},
		"a rule that does not name it counts without it": {3, false, func(s *observation.Snapshot) {
			seclude(s, 0, 1, 2)
			s.PD.Rules = []pd.Rule{{Group: "pd", ID: "default", Count: 3}}
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := beside(c.others, c.exclusive)
			c.change(&s)
			got := tikv(g, s).CanDoWithout(s.Instances[0]).Reason()
			assert.Contains(t, got, c.says)
			assert.Equal(t, c.says == "", got == "", got)
		})
	}
}

func TestKV26LeadersGoOnlyWhereTheirRegionsAre(t *testing.T) {
	restart := func(s observation.Snapshot) component.Disruption {
		return component.Disruption{Instance: s.Instances[0], Verb: member.Restart, Why: "a new image"}
	}
	g, s := beside(2, true)
	s.PD.Stores = append(s.PD.Stores[:1], s.PD.Stores[3:]...) // the only ordinary one
	assert.True(t, tikv(g, s).EvictLeaders(restart(s), now()).Ready, "those that are kept empty cannot lead its regions")
	s.PD.Stores[1].Regions = 4
	assert.NotEmpty(t, tikv(g, s).EvictLeaders(restart(s), now()).Calls, "one that is being emptied still can")

	g, s = beside(0, false)
	seclude(&s, 0, 1, 2)
	assert.NotEmpty(t, tikv(g, s).EvictLeaders(restart(s), now()).Calls, "exclusive ones lead for each other")
}

func TestKV26LeadersOfAStoreThatIsBeingEmptiedAreNotWaitedFor(t *testing.T) {
	back := func(regions, leaders int, exclusive bool) bool {
		g, s := beside(3, false)
		s.PD.Stores[0].Regions, s.PD.Stores[0].Leaders = regions, leaders
		s.Instances[0].Status.Conditions[0].LastTransitionTime.Time = now().Add(-time.Second)
		if exclusive {
			seclude(&s, 0)
		}
		return tikv(g, s).RestoreLeaders(s.Instances[0], lease.NewState(lease.NewHolder(s.Instances[0]), now(), 30)).Ready
	}
	assert.True(t, back(0, 0, true), "it is empty")
	assert.False(t, back(0, 0, false), "an ordinary store is filled again")
	assert.True(t, back(6, 4, true), "as many as its regions")
	assert.False(t, back(30, 4, true), "a rule sends its regions there")
}

func TestKV26AnExclusiveStoreMayHaveRegionsWithFewVoters(t *testing.T) {
	few := []pd.Region{{ID: "5", Missing: true, Peers: []pd.Peer{{StoreID: "1", Voter: true}, {StoreID: "2", Voter: true}}}}
	for name, c := range map[string]struct {
		secluded []int
		rules    []pd.Rule
		says     string
	}{
		"an ordinary region catches up":                   {nil, nil, endangered},
		"there are no more such stores":                   {[]int{0, 1}, nil, ""},
		"a rule wants no more":                            {[]int{0, 1, 2}, []pd.Rule{rule(2)}, ""},
		"a rule wants more, and it catches up":            {[]int{0, 1, 2}, []pd.Rule{rule(3)}, endangered},
		"two rules of a group are for the same regions":   {[]int{0, 1, 2}, []pd.Rule{half("a", "leader", 1), half("a", "follower", 2)}, endangered},
		"a table that wants fewer says nothing of others": {[]int{0, 1, 2}, []pd.Rule{half("b", "voter", 1), half("a", "voter", 3)}, endangered},
		"a learner is no voter":                           {[]int{0, 1, 2}, []pd.Rule{half("b", "learner", 3), half("a", "voter", 2)}, ""},
		"an ordinary store has none beside those":         {[]int{1, 2}, nil, ""},
		"two ordinary ones have no third beside one":      {[]int{2}, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := beside(0, false)
			s.Regions, s.RegionsKnown = few, true
			seclude(&s, c.secluded...)
			s.PD.Rules = c.rules
			got := tikv(g, s).RegionsKeepMajority(s.Instances[0]).Reason()
			assert.Contains(t, got, c.says)
			assert.Equal(t, c.says == "", got == "", got)
		})
	}
}

func TestKV26TheLabelsOfAnExclusiveGroup(t *testing.T) {
	for name, c := range map[string]struct {
		exclusive bool
		has       map[string]string
		want      map[string]string
	}{
		"they are set":                         {true, nil, map[string]string{"$k/exclusive": "true", "k/tikvgroup": "ns.kv"}},
		"what is there is not set again":       {true, map[string]string{"$K/Exclusive": "true", "k/tikvgroup": "ns.kv"}, nil},
		"another group's name is not kept":     {true, map[string]string{"$k/exclusive": "true", "k/tikvgroup": "ns.hot"}, map[string]string{"k/tikvgroup": "ns.kv"}},
		"an ordinary group has none":           {false, nil, nil},
		"the one that keeps regions away goes": {false, map[string]string{"$k/exclusive": "true", "k/tikvgroup": "ns.kv"}, map[string]string{"$k/exclusive": ""}},
		"a user's own exclusive label is left": {false, map[string]string{"$mine": "x"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := kv(1)
			g.Spec.Placement = &v1alpha1.StorePlacement{Exclusive: c.exclusive}
			s := snapshot([]*v1alpha1.Instance{storeInstance(0, "1")}, at(0, "1", "Up"))
			s.PD.Stores[0].Labels = c.has
			changes := placement.LabelChanges(s, storestate.Matches(g, s, v1alpha1.PortTiKV), nil, placement.OperatorLabels(g))
			if c.want == nil {
				assert.Empty(t, changes)
				return
			}
			assert.Equal(t, []placement.LabelChange{{Instance: "kv-0", StoreID: "1", Labels: c.want}}, changes)
			pending := placement.LabelsPending(changes)
			assert.Equal(t, step.KindWait, pending.Kind)
			if !c.exclusive {
				assert.Contains(t, pending.Message, "setting labels $k/exclusive- of store 1")
			}
		})
	}
}
