package model

import (
	"slices"
	"sort"
)

// Rules returns the placement rules of a group, or all for an empty group.
func (c *Cluster) Rules(group string) []Rule {
	c.lock()
	defer c.mu.Unlock()
	return c.rules(group)
}

func (c *Cluster) rules(group string) []Rule {
	var out []Rule
	for _, r := range c.st.Rules {
		if group == "" || r.GroupID == group {
			out = append(out, r)
		}
	}
	return out
}

// Rule returns one placement rule.
func (c *Cluster) Rule(group, id string) (Rule, bool) {
	c.lock()
	defer c.mu.Unlock()
	for _, r := range c.st.Rules {
		if r.GroupID == group && r.ID == id {
			return r, true
		}
	}
	return Rule{}, false
}

// SetRule adds or replaces a placement rule.
func (c *Cluster) SetRule(rule Rule) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	c.dropRule(rule.GroupID, rule.ID)
	c.st.Rules = append(c.st.Rules, rule)
	c.touchGroup(rule.GroupID)
	return c.save()
}

// DeleteRule removes a placement rule; one that is not there is no error.
func (c *Cluster) DeleteRule(group, id string) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	c.dropRule(group, id)
	return c.save()
}

// SetRuleGroup adds or replaces a rule group.
func (c *Cluster) SetRuleGroup(g RuleGroup) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	c.st.RuleGroups = slices.DeleteFunc(c.st.RuleGroups, func(o RuleGroup) bool { return o.ID == g.ID })
	c.st.RuleGroups = append(c.st.RuleGroups, g)
	return c.save()
}

// RuleBundle is a group with its rules.
type RuleBundle struct {
	Group RuleGroup
	Rules []Rule
}

// RuleBundles returns all groups with their rules, by index and id.
func (c *Cluster) RuleBundles() []RuleBundle {
	c.lock()
	defer c.mu.Unlock()
	groups := slices.Clone(c.st.RuleGroups)
	for _, r := range c.st.Rules {
		if !slices.ContainsFunc(groups, func(g RuleGroup) bool { return g.ID == r.GroupID }) {
			groups = append(groups, RuleGroup{ID: r.GroupID})
		}
	}
	sort.Slice(groups, func(i, j int) bool {
		if groups[i].Index != groups[j].Index {
			return groups[i].Index < groups[j].Index
		}
		return groups[i].ID < groups[j].ID
	})
	out := make([]RuleBundle, 0, len(groups))
	for _, g := range groups {
		out = append(out, RuleBundle{Group: g, Rules: c.rules(g.ID)})
	}
	return out
}

func (c *Cluster) dropRule(group, id string) {
	c.st.Rules = slices.DeleteFunc(c.st.Rules, func(r Rule) bool { return r.GroupID == group && r.ID == id })
}

func (c *Cluster) touchGroup(id string) {
	if id == "pd" || slices.ContainsFunc(c.st.RuleGroups, func(g RuleGroup) bool { return g.ID == id }) {
		return
	}
	c.st.RuleGroups = append(c.st.RuleGroups, RuleGroup{ID: id})
}

// syncDefaultRule keeps PD's own rule equal to the replication section.
func (c *Cluster) syncDefaultRule() {
	for i := range c.st.Rules {
		if r := &c.st.Rules[i]; r.GroupID == "pd" && r.ID == "default" {
			r.Count, r.LocationLabels, r.IsolationLevel = c.maxReplicas(), c.locationLabels(), c.isolationLevel()
		}
	}
}
