package placement

import (
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// countFitting counts the stores that a placement rule may place a peer on.
func countFitting(r pd.Rule, stores []pd.Store) int {
	n := 0
	for _, s := range stores {
		if fitsStore(r, s) {
			n++
		}
	}
	return n
}

// fitsStore reports whether a rule may place a peer on a store, as PD decides it: the
// store fulfils all constraints, and has no exclusive label that none of them
// names.
func fitsStore(r pd.Rule, s pd.Store) bool {
	for key := range s.Labels {
		if isExclusiveLabel(key) && !slices.ContainsFunc(r.Constraints, func(c pd.Constraint) bool { return strings.EqualFold(c.Key, key) }) {
			return false
		}
	}
	return !slices.ContainsFunc(r.Constraints, func(c pd.Constraint) bool { return !fulfilsConstraint(s, c) })
}

// isExclusiveLabel reports whether a label keeps the peers of a rule away that does not
// name it. PD has two such keys by name, and all that begin with $.
func isExclusiveLabel(key string) bool {
	return strings.HasPrefix(key, "$") || strings.EqualFold(key, pd.EngineLabel) || strings.EqualFold(key, "exclusive")
}

// IsKeptEmpty reports whether PD keeps ordinary regions away from a store that may have
// voters: only rules that name one of its labels place regions there (KV-26).
func IsKeptEmpty(c storestate.State, s pd.Store) bool {
	if !c.Snapshot.PD.PlacementRules {
		return false // PD looks at such labels for the sake of its rules only
	}
	for key := range s.Labels {
		if isExclusiveLabel(key) && !strings.EqualFold(key, pd.EngineLabel) {
			return true
		}
	}
	return false
}

// ordinaryStores returns the stores that are not secluded.
func ordinaryStores(c storestate.State, stores []pd.Store) []pd.Store {
	return slices.DeleteFunc(slices.Clone(stores), func(s pd.Store) bool { return IsKeptEmpty(c, s) })
}

// fulfilsConstraint reports whether a store fulfils a constraint. PD refuses rules with
// other operators than these four.
func fulfilsConstraint(s pd.Store, c pd.Constraint) bool {
	value := LabelOf(s, c.Key)
	switch c.Op {
	case "in":
		return value != "" && slices.Contains(c.Values, value)
	case "notIn":
		return !slices.Contains(c.Values, value)
	case "exists":
		return value != ""
	case "notExists":
		return value == ""
	}
	return true
}

// describeConstraints says in words what a rule asks of its stores.
func describeConstraints(r pd.Rule) string {
	var out []string
	for _, c := range r.Constraints {
		text := c.Key + " " + c.Op
		if len(c.Values) > 0 {
			text += " (" + strings.Join(c.Values, ", ") + ")"
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return ""
	}
	return " with " + strings.Join(out, " and ")
}

// LabelOf returns the value of a store's label; PD does not tell upper from lower
// case in keys.
func LabelOf(s pd.Store, key string) string {
	for k, value := range s.Labels {
		if strings.EqualFold(k, key) {
			return value
		}
	}
	return ""
}
