package store

import (
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// fitting counts the stores that a placement rule may place a peer on.
func fitting(r pd.Rule, stores []pd.Store) int {
	n := 0
	for _, s := range stores {
		if fits(r, s) {
			n++
		}
	}
	return n
}

// fits reports whether a rule may place a peer on a store, as PD decides it: the
// store fulfils all constraints, and has no exclusive label that none of them
// names.
func fits(r pd.Rule, s pd.Store) bool {
	for key := range s.Labels {
		if exclusive(key) && !slices.ContainsFunc(r.Constraints, func(c pd.Constraint) bool { return strings.EqualFold(c.Key, key) }) {
			return false
		}
	}
	return !slices.ContainsFunc(r.Constraints, func(c pd.Constraint) bool { return !fulfils(s, c) })
}

// exclusive reports whether a label keeps the peers of a rule away that does not
// name it. PD has two such keys by name, and all that begin with $.
func exclusive(key string) bool {
	return strings.HasPrefix(key, "$") || strings.EqualFold(key, engineLabel) || strings.EqualFold(key, "exclusive")
}

// secluded reports whether PD keeps ordinary regions away from a store that is no
// TiFlash: only rules that name one of its labels place regions there (KV-26).
func (c Component) secluded(s pd.Store) bool {
	if !c.Snapshot.PD.PlacementRules {
		return false // PD looks at such labels for the sake of its rules only
	}
	for key := range s.Labels {
		if exclusive(key) && !strings.EqualFold(key, engineLabel) {
			return true
		}
	}
	return false
}

// ordinary returns the stores that are not secluded.
func (c Component) ordinary(stores []pd.Store) []pd.Store {
	return slices.DeleteFunc(slices.Clone(stores), c.secluded)
}

// fulfils reports whether a store fulfils a constraint. PD refuses rules with
// other operators than these four.
func fulfils(s pd.Store, c pd.Constraint) bool {
	value := label(s, c.Key)
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

// where says in words what a rule asks of its stores.
func where(r pd.Rule) string {
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

// label returns the value of a store's label; PD does not tell upper from lower
// case in keys.
func label(s pd.Store, key string) string {
	for k, value := range s.Labels {
		if strings.EqualFold(k, key) {
			return value
		}
	}
	return ""
}
