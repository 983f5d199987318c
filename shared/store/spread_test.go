package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// node is one that is open, at a host of a zone.
func node(zone, host string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: host, Labels: map[string]string{corev1.LabelTopologyZone: zone, corev1.LabelHostname: host}}}
}

// spread is a group with a store in each of some zones, and nodes in a, b and c.
func spread(zones ...string) (*v1alpha1.TiKVGroup, observation.Snapshot) {
	g, s := small(make([]int, len(zones)), 3)
	for n, zone := range zones {
		s.PD.Stores[n].Labels = map[string]string{"zone": zone}
	}
	s.PD.MaxReplicas, s.SchedulableNodes = 3, []corev1.Node{node("a", "a1"), node("b", "b1"), node("c", "c1")}
	g.Spec.Rebalance = "zone"
	return g, s
}

// added marks the last member as the one that was added.
func added(s *observation.Snapshot) {
	s.Instances[len(s.Instances)-1].Annotations = map[string]string{v1alpha1.AnnotationRebalance: "zone"}
}

// KV-19: what spec.rebalance finds, and why it does nothing.
func TestKV19AnUnevenSpreadOverZonesIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		zones                      []string
		change                     func(*v1alpha1.TiKVGroup, *observation.Snapshot, *corev1.PodTemplateSpec)
		unknown, uneven, fruitless string
		needless                   bool
	}{
		"as evenly as can be":       {zones: []string{"a", "b", "c", "a", "b"}},
		"two more than another one": {zones: []string{"a", "a", "b"}, uneven: "zone a has 2 stores of the group, zone c has 0"},
		"all in one":                {zones: []string{"b", "b", "b"}, uneven: "zone b has 3 stores of the group, zone a has 0"},
		"not asked for":             {zones: []string{"a", "a", "a"}, change: func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot, _ *corev1.PodTemplateSpec) { g.Spec.Rebalance = "" }},
		"the emptiest zone has no open node": {zones: []string{"a", "a", "b"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			s.SchedulableNodes = s.SchedulableNodes[:2]
		}},
		"the pods may not run there": {zones: []string{"a", "a", "b"}, change: func(_ *v1alpha1.TiKVGroup, _ *observation.Snapshot, p *corev1.PodTemplateSpec) {
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpNotIn, Values: []string{"c"}}}},
			}}}}
		}},
		"a taint keeps them off": {zones: []string{"a", "a", "b"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			s.SchedulableNodes[2].Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
		}},
		"a taint that they tolerate": {zones: []string{"a", "a", "b"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, p *corev1.PodTemplateSpec) {
			s.SchedulableNodes[2].Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}}
			p.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
		}, uneven: "zone c has 0"},
		"hosts of a zone": {zones: []string{"a", "a", "b", "b", "c", "c"}, change: func(g *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			g.Spec.Rebalance, s.PD.LocationLabels = "host", []string{"zone", "host"}
			s.SchedulableNodes = append(s.SchedulableNodes, node("b", "b2"))
			for n := range s.PD.Stores {
				s.PD.Stores[n].Labels["host"] = s.PD.Stores[n].Labels["zone"] + "1"
			}
		}, uneven: "host b1 has 2 stores of the group, host b2 has 0"},
		"hosts that are called alike in two zones": {zones: []string{"a", "a", "b", "b", "c", "c"}, change: func(g *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			g.Spec.Rebalance, s.PD.LocationLabels = "host", []string{"zone", "host"}
			s.SchedulableNodes = []corev1.Node{node("a", "1"), node("b", "1"), node("c", "1")}
			for n := range s.PD.Stores {
				s.PD.Stores[n].Labels["host"] = "1"
			}
		}},
		"the nodes tell where PD has no labels": {zones: []string{"a", "a", "b"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			s.PD.LocationLabels, s.Nodes = nil, map[string]map[string]string{"a1": node("a", "a1").Labels}
			for _, i := range s.Instances {
				i.Status.NodeName = "a1"
			}
		}, uneven: "zone a has 3 stores"},
		"PD knows no such label": {zones: []string{"a", "a", "a"}, change: func(g *v1alpha1.TiKVGroup, _ *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			g.Spec.Rebalance = "rack"
		},
			unknown: "spec.rebalance is rack, and PD's location-labels are zone: name one of these, or set location-labels to all labels, with rack where it belongs, from the largest to the smallest: kubectl -n ns exec svc/pd -- /pd-ctl config set location-labels"},
		"PD knows no such label, and its spec says which": {zones: []string{"a", "a", "a"}, change: func(g *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			g.Spec.Rebalance = "rack"
			s.PDGroup.Spec.Config = "[replication]\nlocation-labels = [\"zone\"]"
		},
			unknown: "from the largest to the smallest: set in spec.config (kubectl -n ns edit pdgroup pd) replication.location-labels to LABEL,LABEL"},
		"no node has it": {zones: []string{"a", "a", "a"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			s.SchedulableNodes = []corev1.Node{{}}
		}, unknown: "kubectl get nodes -L topology.kubernetes.io/zone"},
		"no nodes are read": {zones: []string{"a", "a", "a"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			s.SchedulableNodes = nil
		}, unknown: "the operators may not read nodes"},
		"a store has it not":         {zones: []string{"a", "a", ""}, unknown: "Instance kv-2 does not have all of the labels zone"},
		"PD does not answer":         {zones: []string{"a", "a", "a"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) { s.PD.Members = nil }, unknown: "no quorum"},
		"one was added":              {zones: []string{"a", "a", "b", "c"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) { added(s) }},
		"it came where it is":        {zones: []string{"a", "a", "b", "a"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) { added(s) }, uneven: "zone a has 3", fruitless: "Instance kv-3 was added so that another one can leave, but was scheduled to zone a, where it does not help"},
		"without it they lie evenly": {zones: []string{"a", "b", "c", "a"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) { added(s) }, needless: true, fruitless: "does not help"},
		"it has no place yet":        {zones: []string{"a", "b", "c", ""}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) { added(s) }, needless: true, unknown: "Instance kv-3"},
		"a user has named another one": {zones: []string{"a", "a", "b", "c"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			added(s)
			s.Instances[2].Annotations = map[string]string{v1alpha1.AnnotationRemoveFirst: ""}
		}, fruitless: "kubectl -n ns annotate instance kv-2 groups.tidb.dev/remove-first-"},
		"who would leave is needed": {zones: []string{"a", "a", "b", "c"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) {
			added(s)
			s.PD.MaxReplicas = 4
		}, fruitless: "can leave, but that one must stay: 3 TiKV stores would stay Up"},
		"it helps though it came elsewhere": {zones: []string{"a", "a", "a", "a", "b", "b"}, change: func(_ *v1alpha1.TiKVGroup, s *observation.Snapshot, _ *corev1.PodTemplateSpec) { added(s) },
			uneven: "zone a has 4 stores of the group, zone c has 0"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := spread(c.zones...)
			template := &corev1.PodTemplateSpec{}
			if c.change != nil {
				c.change(g, &s, template)
			}
			out := tikv(g, s).Spread(template, nil)
			assert.Equal(t, c.needless, out.Unneeded)
			for _, told := range []struct{ what, is, want string }{{"unknown", out.Unknown.Text(), c.unknown}, {"uneven", out.Uneven.Text(), c.uneven}, {"fruitless", out.NoGain.Text(), c.fruitless}} {
				if told.want == "" {
					assert.Empty(t, told.is, told.what)
				} else {
					assert.Contains(t, told.is, told.want, told.what)
				}
			}
		})
	}
}

// KV-19: however the stores lie, and wherever the scheduler puts those that are added,
// it comes to an end: with an even spread if each comes to the emptiest place, and
// never with a store more than one that does not help.
func TestKV19ARebalanceEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lie := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 10).Draw(t, "places")
		honest := rapid.Bool().Draw(t, "the scheduler takes the emptiest place")
		label := rapid.SampledFrom([]string{"zone", "host"}).Draw(t, "label")
		place := func(n int) map[string]string {
			return map[string]string{"zone": fmt.Sprint("z", n/2), "host": fmt.Sprint("h", n%2)}
		}
		look := func(marked bool) (component.Spread, []string) {
			g, s := small(make([]int, len(lie)), 1)
			s.PD.LocationLabels, g.Spec.Rebalance = []string{"zone", "host"}, label
			for n, at := range lie {
				s.PD.Stores[n].Labels = place(at)
			}
			for n := range 6 {
				s.SchedulableNodes = append(s.SchedulableNodes, node(fmt.Sprint("z", n/2), fmt.Sprint("h", n%2)))
			}
			if marked {
				added(&s)
			}
			c := tikv(g, s)
			return c.Spread(&corev1.PodTemplateSpec{}, nil), leaving(c)
		}
		for round := 0; ; round++ {
			now, _ := look(false)
			if !now.Uneven.IsGiven() {
				return
			}
			if round > len(lie)*len(lie) {
				t.Fatalf("no end: %v", lie)
			}
			where := rapid.IntRange(0, 5).Draw(t, "comes to")
			if honest {
				where = emptiest(lie)
			}
			lie = append(lie, where)
			then, order := look(true)
			if then.Unneeded {
				t.Fatalf("it was not needed: %v", lie)
			}
			if then.NoGain.IsGiven() {
				if honest {
					t.Fatalf("it does not help: %v: %s", lie, then.NoGain.Text())
				}
				return
			}
			var leaver int
			if _, err := fmt.Sscanf(order[0], "kv-%d", &leaver); err != nil {
				t.Fatal(err)
			}
			lie = append(lie[:leaver], lie[leaver+1:]...)
		}
	})
}

// emptiest is the place that a scheduler takes which spreads over zones first, and
// then over hosts.
func emptiest(lie []int) int {
	zones, hosts := [3]int{}, [6]int{}
	for _, at := range lie {
		zones[at/2]++
		hosts[at]++
	}
	best := 0
	for at := range hosts {
		if zones[at/2] < zones[best/2] || zones[at/2] == zones[best/2] && hosts[at] < hosts[best] {
			best = at
		}
	}
	return best
}
