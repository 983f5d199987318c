package placement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// Claim is the rules of one group for one range of keys. A region in it has as many
// peers as they count together, each on a store of its own: a store that two rules
// fit serves one of them only.
type Claim []pd.Rule

// Claims returns the rules of a PD by group and range, in PD's order.
func Claims(rules []pd.Rule) []Claim {
	type of struct{ group, start, end string }
	at := map[of]int{}
	var out []Claim
	for _, r := range rules {
		key := of{r.Group, r.Start, r.End}
		n, known := at[key]
		if !known {
			n = len(out)
			at[key] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], r)
	}
	return out
}

// requirementKey writes down what a claim asks for. Claims that ask for the same find places
// alike, and there may be one for each of thousands of tables.
func (c Claim) requirementKey() string {
	var out strings.Builder
	for _, r := range c {
		fmt.Fprintf(&out, "%d %q;", r.Count, r.Constraints)
	}
	return out.String()
}

// Voters is how many voters a region of the claim has.
func (c Claim) Voters() int {
	n := 0
	for _, r := range c {
		if r.Role != "learner" {
			n += r.Count
		}
	}
	return n
}

// VoterStores returns the stores that a voter of the claim may lie on.
func (c Claim) VoterStores(stores []pd.Store) []pd.Store {
	var out []pd.Store
	for _, s := range stores {
		if slices.ContainsFunc(c, func(r pd.Rule) bool { return r.Role != "learner" && fitsStore(r, s) }) {
			out = append(out, s)
		}
	}
	return out
}

// place finds stores for the peers of a region. It returns for how many it has, and
// if that is not all, a set of rules that have fewer stores between them than they
// count, and how many these are (Hall's condition).
func (c Claim) place(stores []pd.Store) (placed int, short []pd.Rule, among int) {
	holder := make([]int, len(stores)) // the rule that has the store, plus 1
	for r := range c {
		for range c[r].Count {
			tried := make([]bool, len(stores))
			if c.canPlacePeer(r, stores, holder, tried) {
				placed++
				continue
			}
			if short == nil {
				short, among = c.competingRules(r, holder, tried)
			}
			break // the next of the same rule finds no more
		}
	}
	return placed, short, among
}

// canPlacePeer finds a store for one more peer of a rule, and another one for the peer that
// has to make room. It never takes back what has been placed.
func (c Claim) canPlacePeer(r int, stores []pd.Store, holder []int, tried []bool) bool {
	for n := range stores {
		if tried[n] || !fitsStore(c[r], stores[n]) {
			continue
		}
		tried[n] = true
		if holder[n] == 0 || c.canPlacePeer(holder[n]-1, stores, holder, tried) {
			holder[n] = r + 1
			return true
		}
	}
	return false
}

// competingRules returns a rule that found no place and all that share the stores which it
// has tried, and how many stores these are.
func (c Claim) competingRules(r int, holder []int, tried []bool) (rules []pd.Rule, stores int) {
	in := make([]bool, len(c))
	in[r] = true
	for n := range tried {
		if tried[n] {
			stores++
			in[holder[n]-1] = true
		}
	}
	for n := range c {
		if in[n] {
			rules = append(rules, c[n])
		}
	}
	return rules, stores
}

// describeOwner names whose rules they are.
func describeOwner(rules []pd.Rule) string {
	first := rules[0]
	switch id, policy := strings.CutPrefix(first.Group, policyRules); {
	case policy:
		return fmt.Sprintf("the placement policy of the table or partition with ID %s", id)
	case len(rules) > 1:
		return "PD's placement rules of group " + first.Group
	}
	return fmt.Sprintf("PD's placement rule %s/%s", first.Group, first.ID)
}

// remedyForRules says how to have the rules ask for less.
func remedyForRules(c storestate.State, rules []pd.Rule) string {
	id, policy := strings.CutPrefix(rules[0].Group, policyRules)
	if !policy {
		return "change the rule: " + storestate.PDCtl(c.Group) + " config placement-rules show"
	}
	return fmt.Sprintf("have its owner change the policy: ALTER PLACEMENT POLICY ... (which: SELECT table_schema, table_name, tidb_placement_policy_name FROM information_schema.tables WHERE tidb_table_id = %s, or the same of information_schema.partitions WHERE tidb_partition_id = %s)", id, id)
}

// policyRules is how the rule groups begin in which TiDB keeps the placement policy
// of a table or partition; its ID follows.
const policyRules = "TiDB_DDL_"
