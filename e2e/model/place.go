package model

import (
	"slices"
	"strings"
)

// voterRules returns the rules that send the voters of regions to certain stores.
// PD's own rule takes any.
func (c *Cluster) voterRules() []Rule {
	if !c.hasPlacementRules() {
		return nil
	}
	var out []Rule
	for _, rule := range c.st.Rules {
		if rule.Role != "learner" && len(rule.LabelConstraints) > 0 {
			out = append(out, rule)
		}
	}
	return out
}

// hasPlacementRules reports whether PD places regions by rules, and so looks at exclusive labels.
func (c *Cluster) hasPlacementRules() bool {
	return c.parsed("replication")["enable-placement-rules"] == "true"
}

// admits reports whether a voter of a region may lie on a store: where a rule sends
// the region, or on any store that has no exclusive label. How many voters each of
// several rules wants does not matter here.
func (c *Cluster) admits(r *Region, s *Store, rules []Rule) bool {
	sent := false
	for _, rule := range rules {
		if !rule.covers(r) {
			continue
		}
		if sent = true; rule.fits(s) {
			return true
		}
	}
	return !sent && (!c.hasPlacementRules() || len(exclusiveKeys(s)) == 0)
}

// exclusiveKeys returns the keys of a store's labels that keep all regions away whose
// rules do not name them.
func exclusiveKeys(s *Store) []string {
	var out []string
	for _, l := range s.Meta.Labels {
		if strings.HasPrefix(l.Key, "$") {
			out = append(out, l.Key)
		}
	}
	return out
}

// names reports whether a rule has a constraint on a label.
func (rule Rule) names(key string) bool {
	return slices.ContainsFunc(rule.LabelConstraints, func(l LabelConstraint) bool { return strings.EqualFold(l.Key, key) })
}
