package store_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// kind of a store in a small world: a number for the zone, the group and the
// state.
const (
	zonesOf, groupsOf, statesOf = 4, 2, 4 // zone 0 is none
	kinds                       = zonesOf * groupsOf * statesOf
)

// small is a world of stores of those kinds: what the group kv knows of the
// cluster. Stores of the other group have no Instance here. The store of state 3
// is leaving, before PD knows.
func small(stores []int, replicas int) (*v1alpha1.TiKVGroup, observation.Snapshot) {
	g, s := kv(0), snapshot(nil)
	s.PD.Leader, s.PD.MaxReplicas, s.PD.Bootstrapped = "pd-0", replicas, true
	s.PD.Members = []pd.Member{{Name: "pd-0", ID: "1", Healthy: true}}
	s.PD.LocationLabels = []string{"zone"}
	for n, kind := range stores {
		zone, foreign, state := kind%zonesOf, kind/zonesOf%groupsOf == 1, kind/zonesOf/groupsOf
		store := at(n, fmt.Sprint(n+1), []string{pd.StateUp, pd.StateDown, pd.StateOffline, pd.StateUp}[state])
		if zone > 0 {
			store.Labels = map[string]string{"zone": fmt.Sprint("z", zone)}
		}
		if foreign {
			store.Address = strings.Replace(store.Address, "kv-peer", "other-peer", 1)
		} else {
			i := storeInstance(int32(n), store.ID, served()...)
			i.UID, i.Status.PodUID, i.Status.NodeName = types.UID(i.Name), "pod", "node"
			i.Spec.Retire = state == 3
			s.Instances = append(s.Instances, i)
		}
		s.PD.Stores = append(s.PD.Stores, store)
	}
	return g, s
}

// serving returns the stores that are Up and not leaving, and their
// zones, without some.
func serving(s observation.Snapshot, without ...*v1alpha1.Instance) (up int, zones map[string]bool) {
	zones = map[string]bool{}
	for _, store := range s.PD.Stores {
		at := slices.IndexFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Status.Member.ID == store.ID })
		out := store.State != pd.StateUp || at >= 0 && (s.Instances[at].Spec.Retire || slices.Contains(without, s.Instances[at]))
		if out {
			continue
		}
		up++
		if zone := store.Labels["zone"]; zone != "" {
			zones[zone] = true
		}
	}
	return up, zones
}

// isCanonical reports whether stores are the first of those that differ only in the
// names of their zones. Their kinds are sorted.
func isCanonical(stores []int) bool {
	for _, renamed := range [][zonesOf]int{{0, 1, 3, 2}, {0, 2, 1, 3}, {0, 2, 3, 1}, {0, 3, 1, 2}, {0, 3, 2, 1}} {
		var other [6]int
		for n, kind := range stores {
			other[n] = kind - kind%zonesOf + renamed[kind%zonesOf]
		}
		slices.Sort(other[:len(stores)])
		if slices.Compare(other[:len(stores)], stores) < 0 {
			return false
		}
	}
	return true
}

// areAlike reports whether two members cannot be told apart.
func areAlike(s observation.Snapshot, a, b int) bool {
	x, y := s.Instances[a], s.Instances[b]
	p, _ := s.PD.Store(x.Status.Member.ID)
	q, _ := s.PD.Store(y.Status.Member.ID)
	return x.Spec.Retire == y.Spec.Retire && p.State == q.State && p.Labels["zone"] == q.Labels["zone"]
}

// KV-03: every world of up to six stores in two groups and three zones, in every
// state, and every set of one or two of the group's members. Stores are told apart
// by nothing else, so that the order in which they are listed does not matter.
func TestKV03AnAcceptedRemovalLeavesEnoughStores(t *testing.T) {
	t.Parallel()
	worlds, states, accepted, refused := 0, 0, 0, 0
	try := func(stores []int, replicas int) {
		g, s := small(stores, replicas)
		worlds++
		c := tikv(g, s)
		_, zonesBefore := serving(s)
		for a := range s.Instances {
			for b := a; b < len(s.Instances); b++ {
				if a > 0 && areAlike(s, a, a-1) || b > a+1 && areAlike(s, b, b-1) {
					continue // a store like it has just been tried
				}
				leave := s.Instances[a : a+1]
				if b > a {
					leave = []*v1alpha1.Instance{s.Instances[a], s.Instances[b]}
				}
				states++
				if c.CanDoWithout(leave...).Reason() != "" {
					refused++
					continue
				}
				accepted++
				up, zones := serving(s, leave...)
				before, _ := serving(s)
				if up < replicas && up < before {
					t.Fatalf("%v without %v and %v: %d stores stay Up for %d replicas", stores, a, b, up, replicas)
				}
				if len(zones) < min(len(zonesBefore), replicas) {
					t.Fatalf("%v without %v and %v: %d of %d zones stay for %d replicas", stores, a, b, len(zones), len(zonesBefore), replicas)
				}
			}
		}
	}
	var walk func(stores []int, from, left int)
	walk = func(stores []int, from, left int) {
		if left == 0 {
			if isCanonical(stores) {
				try(stores, 3)
			}
			return
		}
		for kind := from; kind < kinds; kind++ {
			if foreign, leaving := kind/zonesOf%groupsOf == 1, kind/zonesOf/groupsOf == 3; !foreign || !leaving {
				walk(append(stores, kind), kind, left-1)
			}
		}
	}
	for n := 1; n <= 6; n++ {
		walk(nil, 0, n)
	}
	fmt.Printf("removals: %d worlds of up to 6 stores, %d removals: %d accepted, %d refused\n", worlds, states, accepted, refused)
	require.Positive(t, accepted)
	require.Positive(t, refused)
}

// rules as TiDB and a user would set them.
func TestFL05KV03PlacementRulesAreKept(t *testing.T) {
	flash := pd.Rule{Group: "tiflash", ID: "table-45-r", Role: "learner", Count: 2, Constraints: []pd.Constraint{{Key: "engine", Op: "in", Values: []string{"tiflash"}}}}
	hot := func(op string, count int) pd.Rule {
		return pd.Rule{Group: "pd", ID: "hot", Role: "voter", Count: count, Constraints: []pd.Constraint{{Key: "disk", Op: op, Values: []string{"ssd"}}}}
	}
	for name, c := range map[string]struct {
		tiflash bool
		rule    pd.Rule
		labels  map[string]string // of every store
		says    string
	}{
		"a table has as many replicas as stores": {true, flash, map[string]string{"engine": "tiflash"},
			"the table with ID 45 has 2 TiFlash replicas and 1 TiFlash store would stay Up: its owner must lower that first: ALTER TABLE ... SET TIFLASH REPLICA 1 " +
				"(its name, or of the table of that partition: SELECT table_schema, table_name FROM information_schema.tables WHERE tidb_table_id = 45, or the same of information_schema.partitions WHERE tidb_partition_id = 45)"},
		"a table has fewer":                         {true, pd.Rule{Group: "tiflash", ID: "table-45-r", Count: 1, Constraints: flash.Constraints}, map[string]string{"engine": "tiflash"}, ""},
		"a table of other stores":                   {true, pd.Rule{Group: "tiflash", ID: "table-45-r", Count: 2}, map[string]string{"engine": "tiflash"}, ""},
		"the rule of a table does not ask for TiKV": {false, flash, nil, ""},
		"a rule that needs both stores":             {false, hot("in", 2), map[string]string{"Disk": "ssd"}, "PD's placement rule pd/hot wants 2 stores with disk in (ssd) and 1 would stay Up"},
		"a rule that one store will do for":         {false, hot("in", 1), map[string]string{"disk": "ssd"}, ""},
		"a rule that nothing ever fulfilled":        {false, hot("in", 2), map[string]string{"disk": "hdd"}, ""},
		"a rule for all but some":                   {false, hot("notIn", 2), map[string]string{"disk": "hdd"}, "wants 2 stores with disk notIn (ssd)"},
		"a rule for stores with the label":          {false, hot("exists", 2), map[string]string{"disk": "hdd"}, "with disk exists"},
		"a rule for stores without the label":       {false, hot("notExists", 2), nil, "with disk notExists"},
		"a rule for every store":                    {false, pd.Rule{Group: "pd", ID: "default", Count: 2}, nil, "wants 2 stores and 1 would stay Up"},
		"exclusive stores are for those who ask":    {false, pd.Rule{Group: "pd", ID: "default", Count: 2}, map[string]string{"$special": "1"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := small([]int{0, 0}, 1)
			s.PD.Rules = []pd.Rule{c.rule}
			for n := range s.PD.Stores {
				s.PD.Stores[n].Labels = c.labels
			}
			kind := tikv(g, s)
			kind.HasLeaders = !c.tiflash
			got := kind.CanDoWithout(s.Instances[0]).Reason()
			assert.Contains(t, got, c.says)
			assert.Equal(t, c.says == "", got == "", got)
		})
	}
}

func TestARemovalThatPDWouldRefuseIsRefusedFirst(t *testing.T) {
	g, s := world()
	s.PD.Stores[0].State = pd.StateDown
	c := tikv(g, s)
	assert.Contains(t, c.CanDoWithout(s.Instances[0]).Reason(), "2 stores would stay, and PD removes none while there are not more than its 3 replicas")
	assert.Contains(t, c.AllowsRemoval(s.Instances[:1]).Reason(), "spec.replicas is 3, and nothing is removed: ")
	assert.Contains(t, c.AllowsRemoval(s.Instances[:1]).Reason(), "to set it back: kubectl -n ns scale tikvgroup kv --replicas=4")
	owned := g.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{Kind: v1alpha1.KindTidbCluster, Name: "x", Controller: ptr.To(true)}}
	assert.Contains(t, tikv(owned, s).AllowsRemoval(s.Instances[:1]).Reason(), "to set it back: set spec.tikv[kv].replicas to 4: kubectl -n ns edit tidbcluster x")
	owned.Annotations = map[string]string{v1alpha1.AnnotationEntryRemoved: "x"}
	assert.Contains(t, tikv(owned, s).AllowsRemoval(s.Instances[:1]).Reason(), "spec.replicas is 3, and nothing is removed: ")
	assert.Contains(t, tikv(owned, s).AllowsRemoval(s.Instances[:1]).Reason(), "to set it back: kubectl -n ns scale tikvgroup kv --replicas=4", "the entry is gone")
	s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "f-0.f-peer.ns.svc:3930", State: pd.StateUp, Labels: map[string]string{"engine": "tiflash"}})
	assert.Empty(t, tikv(g, s).CanDoWithout(s.Instances[0]).Reason(), "a TiFlash counts for PD, and the store is Down anyway")
	s.PD.Stores[0].State = pd.StateUp
	assert.Contains(t, tikv(g, s).CanDoWithout(s.Instances[0]).Reason(), "2 TiKV stores would stay Up (store 2, store 3), and PD keeps 3 replicas")
}

// KV-19: whatever stores there are, members leave one after the other from the
// fullest zone of the group, and in it from the fullest host.
func TestMembersLeaveTheFullestZoneFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.SliceOfN(rapid.IntRange(0, 8), 2, 12).Draw(t, "places")
		g, s := small(make([]int, len(places)), 1)
		s.PD.LocationLabels = []string{"zone", "host"}
		where := map[string][2]string{}
		for n, place := range places {
			s.PD.Stores[n].Labels = map[string]string{"zone": fmt.Sprint(place / 3), "host": fmt.Sprint(place % 3)}
			where[s.Instances[n].Name] = [2]string{fmt.Sprint(place / 3), fmt.Sprint(place)}
		}
		c := tikv(g, s)
		left := slices.Clone(s.Instances)
		slices.SortFunc(left, func(a, b *v1alpha1.Instance) int {
			return c.Rank(component.Disruption{Instance: a, Verb: member.Remove}) - c.Rank(component.Disruption{Instance: b, Verb: member.Remove})
		})
		for ; len(left) > 0; left = left[1:] {
			zones, hosts := map[string]int{}, map[string]int{}
			for _, i := range left {
				zones[where[i.Name][0]]++
				hosts[where[i.Name][1]]++
			}
			first := where[left[0].Name]
			for _, i := range left {
				if zones[where[i.Name][0]] > zones[first[0]] || where[i.Name][0] == first[0] && hosts[where[i.Name][1]] > hosts[first[1]] {
					t.Fatalf("%v leaves before %v", first, where[i.Name])
				}
			}
		}
	})
}

// KV-09: stores that do not serve leave before those that do. One that PD has only
// lost sight of serves.
func TestKV09StoresThatDoNotServeLeaveFirst(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		first  bool
	}{
		"a store that is Down though its pod is ready": {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDown }, true},
		"one that is Disconnected and whose pod is not ready": {func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateDisconnected
			podIs(s.Instances[0], v1alpha1.ReasonPodNotReady)
		}, true},
		"one that PD has lost sight of": {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDisconnected }, false},
		"one that is Up for PD":         {func(s *observation.Snapshot) { podIs(s.Instances[0], v1alpha1.ReasonPodNotReady) }, false},
	} {
		g, s := small([]int{1, 1, 2, 3}, 3)
		c.change(&s)
		assert.Equal(t, c.first, leaving(tikv(g, s))[0] == "kv-0", name)
	}
}

// KV-19: the zones and hosts of nodes count where PD has no location-labels.
func TestKV19NodesTellTheZonesWherePDHasNoLabels(t *testing.T) {
	g, s := small([]int{0, 0, 0, 0, 0}, 1)
	s.PD.LocationLabels, s.Nodes = nil, map[string]map[string]string{}
	for n, zone := range []string{"a", "b", "b", "b", "c"} {
		node := fmt.Sprint("node-", n)
		if n == 2 {
			node = "node-1"
		}
		s.Instances[n].Status.NodeName = node
		s.Nodes[node] = map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelHostname: node}
	}
	assert.Equal(t, []string{"kv-2", "kv-3", "kv-4", "kv-1", "kv-0"}, leaving(tikv(g, s)), "of the fullest host in the fullest zone")
	s.Nodes = nil
	assert.Equal(t, []string{"kv-4", "kv-3", "kv-2", "kv-1", "kv-0"}, leaving(tikv(g, s)), "nodes are not known")
}

// A store that blinks makes no removal feasible that is not.
func TestARefusedRemovalStaysRefusedWhileStoresAreDisconnected(t *testing.T) {
	for blinking := range 8 {
		g, s := world()
		for n := range s.PD.Stores {
			if blinking>>n&1 == 1 {
				s.PD.Stores[n].State = pd.StateDisconnected
			}
		}
		// For PD itself, which counts it too, there are enough stores.
		s.PD.Stores = append(s.PD.Stores, pd.Store{ID: "9", Address: "f-0.f-peer.ns.svc:3930", State: pd.StateUp, Labels: map[string]string{"engine": "tiflash"}})
		c := tikv(g, s)
		for _, i := range s.Instances {
			assert.NotEmpty(t, c.CanDoWithout(i).Reason(), "%03b", blinking)
			assert.NotEmpty(t, c.AllowsRemoval([]*v1alpha1.Instance{i}).Reason(), "%03b", blinking)
		}
	}
	g, s := small([]int{1, 2, 3, 1}, 3)
	s.PD.Stores[1].State = pd.StateDisconnected
	assert.Contains(t, tikv(g, s).CanDoWithout(s.Instances[1]).Reason(), "no TiKV would stay Up in zone z2")
	s.PD.Stores[1].State = pd.StateDown
	assert.Empty(t, tikv(g, s).CanDoWithout(s.Instances[1]).Reason(), "PD has given it up")
}

// leaving names members in the order in which they leave.
func leaving(c store.Component) []string {
	left := slices.Clone(c.Snapshot.Instances)
	slices.SortFunc(left, func(a, b *v1alpha1.Instance) int {
		return c.Rank(component.Disruption{Instance: a, Verb: member.Remove}) - c.Rank(component.Disruption{Instance: b, Verb: member.Remove})
	})
	var out []string
	for _, i := range left {
		out = append(out, i.Name)
	}
	return out
}

func TestKV09UnusedAndNamedStoresLeaveFirst(t *testing.T) {
	g, s := small([]int{1, 1, 1, 2, 3}, 3)
	s.Instances[3].Annotations = map[string]string{v1alpha1.AnnotationRemoveFirst: ""}
	s.Instances[4].Status.PodUID = ""
	s.Instances[0].Spec.Retire = true
	assert.Equal(t, []string{"kv-0", "kv-3", "kv-4", "kv-2", "kv-1"}, leaving(tikv(g, s)))
}
