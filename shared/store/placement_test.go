package store_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// policy is PD's own rule, and the rules of a table whose policy asks for voters in
// given zones, or anywhere.
func policy(voters int, zones ...string) []pd.Rule {
	out := []pd.Rule{{Group: "pd", ID: "default", Role: "voter", Count: 1}}
	table := pd.Rule{Group: "TiDB_DDL_45", Start: "7480", End: "7481", Role: "voter", Count: voters, ID: "table_rule_45_0"}
	if len(zones) == 0 {
		return append(out, table)
	}
	for n, zone := range zones {
		next := table
		next.ID = fmt.Sprint("table_rule_45_", n)
		next.Constraints = []pd.Constraint{{Key: "zone", Op: "in", Values: strings.Split(zone, ",")}}
		out = append(out, next)
	}
	return out
}

// KV-03: whatever rules a table has: a removal is accepted if and only if a region
// of it finds a store for each peer, all different, or found as few before.
func TestARemovalLeavesAPlaceForEachPeerOfAPolicy(t *testing.T) {
	refused, accepted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		zones := rapid.SliceOfN(rapid.IntRange(1, 3), 1, 5).Draw(t, "zones")
		kinds := make([]int, len(zones))
		copy(kinds, zones)
		g, s := small(kinds, 1)
		s.PD.LocationLabels = nil
		rules := policy(1)[:1]
		for n := range rapid.IntRange(1, 3).Draw(t, "rules") {
			var values []string
			for zone := 1; zone <= 3; zone++ {
				if rapid.Bool().Draw(t, "in") {
					values = append(values, fmt.Sprint("z", zone))
				}
			}
			r := policy(rapid.IntRange(1, 2).Draw(t, "count"), strings.Join(values, ","))[1]
			r.ID = fmt.Sprint(n)
			rules = append(rules, r)
		}
		s.PD.Rules = rules
		leaves := rapid.IntRange(0, len(zones)-1).Draw(t, "leaves")
		before := most(rules[1:], zones, 0, -1)
		after := most(rules[1:], zones, 0, leaves)
		got := tikv(g, s).CanDoWithout(s.Instances[leaves]).Reason()
		if strings.Contains(got, "would stay, and PD removes none") || strings.Contains(got, "TiKV store") {
			t.Skip("PD itself would refuse")
		}
		if (got != "") != (after < before) {
			t.Fatalf("zones %v, rules %+v, without %d: %d of %d places, and %q", zones, rules, leaves, after, before, got)
		}
		if got == "" {
			accepted++
		} else {
			refused++
		}
	})
	assert.Positive(t, accepted)
	assert.Positive(t, refused)
}

// most is for how many peers of some rules there are stores, by trying all ways; used
// are the stores that are taken.
func most(rules []pd.Rule, zones []int, used, without int) int {
	if len(rules) == 0 {
		return 0
	}
	rest := rules[1:]
	if rules[0].Count > 1 {
		one := rules[0]
		one.Count--
		rest = append([]pd.Rule{one}, rest...)
	}
	best := most(rest, zones, used, without)
	for n, zone := range zones {
		fits := strings.Contains(strings.Join(rules[0].Constraints[0].Values, ","), fmt.Sprint("z", zone))
		if n != without && used>>n&1 == 0 && fits {
			best = max(best, 1+most(rest, zones, used|1<<n, without))
		}
	}
	return best
}

func TestAPolicyThatWouldLackStoresIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		zones []int
		rules []pd.Rule
		says  []string
	}{
		"any stores": {[]int{1, 2, 3}, policy(3), []string{"the placement policy of the table or partition with ID 45 wants 3 stores and 2 would stay Up: add such a store first", "tidb_table_id = 45"}},
		"one zone":   {[]int{1, 1, 2, 3}, policy(2, "z1"), []string{"wants 2 stores with zone in (z1) and 1 would stay Up: "}},
		"two rules that one store cannot serve both": {[]int{1, 2, 3, 3}, policy(1, "z1,z2", "z1,z2"),
			[]string{"wants 1 store with zone in (z1, z2), 1 store with zone in (z1, z2) and 1 would stay Up for all of them: "}},
		"three rules of which two share": {[]int{1, 2, 3, 3}, policy(1, "z3", "z1,z2", "z2"),
			[]string{"wants 1 store with zone in (z1, z2), 1 store with zone in (z2) and 1 would stay Up for all of them"}},
		"enough":                {[]int{1, 1, 2, 3}, policy(1, "z1", "z2", "z3"), nil},
		"what was short before": {[]int{1, 2, 3, 3}, policy(2, "z2"), nil},
		"ranges have nothing to do with each other": {[]int{1, 2, 2, 3}, append(policy(1, "z2"), pd.Rule{Group: "TiDB_DDL_45", ID: "partition", Start: "7490", Role: "voter", Count: 2,
			Constraints: []pd.Constraint{{Key: "zone", Op: "in", Values: []string{"z2"}}}}), nil},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := small(c.zones, 1)
			s.PD.LocationLabels, s.PD.Rules = nil, c.rules
			got := tikv(g, s).CanDoWithout(s.Instances[0]).Reason()
			for _, words := range c.says {
				assert.Contains(t, got, words)
			}
			if c.says == nil {
				assert.Empty(t, got)
			}
		})
	}
}
