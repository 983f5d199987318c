package model

import (
	"slices"
	"strings"
	"time"
)

// tryMoveLearner makes one change to the learners of a region. A learner on a store
// that leaves stays there until another store can take it, or no rule wants it.
func (c *Cluster) tryMoveLearner(r *Region, rules []Rule, idx index, now time.Time) bool {
	// held are the peers that a rule has found, by their place in the region.
	held := map[int]bool{}
	for _, rule := range rules {
		if !rule.covers(r) {
			continue
		}
		var have, going []int
		for i, p := range r.Peers {
			s := c.st.Stores[p.StoreID]
			switch {
			case !p.Learner || held[i] || s == nil || !rule.fits(s):
			case c.isLeaving(p.StoreID, now):
				going = append(going, i)
			default:
				have = append(have, i)
			}
		}
		if len(have) < rule.Count {
			if to := c.learnerTarget(r, rule, idx, now); to != nil {
				r.Peers = append(r.Peers, Peer{ID: c.newID(), StoreID: to.Meta.ID, Learner: true})
				r.ConfVer++
				if len(going) > 0 && len(have)+len(going) >= rule.Count {
					c.dropPeer(r, going[0], now)
				}
				return true
			}
		}
		// Of too many, those go first that are on stores which leave.
		slices.SortStableFunc(have, func(a, b int) int { return idx.learners[r.Peers[a].StoreID] - idx.learners[r.Peers[b].StoreID] })
		wanted := slices.Concat(have, going)
		for _, i := range wanted[:min(rule.Count, len(wanted))] {
			held[i] = true
		}
	}
	for i, p := range r.Peers {
		if p.Learner && !held[i] {
			c.dropPeer(r, i, now)
			return true
		}
	}
	return false
}

// learnerRules returns the rules that want learners.
func (c *Cluster) learnerRules() []Rule {
	var out []Rule
	for _, rule := range c.st.Rules {
		if rule.Role == "learner" {
			out = append(out, rule)
		}
	}
	if len(out) > 0 && !c.hasPlacementRules() {
		return nil
	}
	return out
}

// covers reports whether some of a region lies in the range of a rule. PD splits
// regions where a rule begins and ends; here they stay as they are.
func (rule Rule) covers(r *Region) bool {
	before := func(start, end string) bool { return end == "" || strings.ToUpper(start) < strings.ToUpper(end) }
	return before(r.Start, rule.EndKeyHex) && before(rule.StartKeyHex, r.End)
}

// fits reports whether a rule allows for a store. TiFlash takes only what asks for
// it, and a store with an exclusive label what names that, as in PD.
func (rule Rule) fits(s *Store) bool {
	asked := false
	for _, key := range exclusiveKeys(s) {
		if !rule.names(key) {
			return false
		}
	}
	for _, l := range rule.LabelConstraints {
		value := labelOf(s, l.Key)
		in := slices.Contains(l.Values, value)
		asked = asked || l.Key == "engine" && l.Op == "in" && in
		switch l.Op {
		case "in":
			if !in {
				return false
			}
		case "notIn":
			if in {
				return false
			}
		case "exists":
			if value == "" {
				return false
			}
		case "notExists":
			if value != "" {
				return false
			}
		}
	}
	return asked || !s.Meta.IsTiFlash()
}

// learnerTarget is the emptiest store for one more learner of a region.
func (c *Cluster) learnerTarget(r *Region, rule Rule, idx index, now time.Time) *Store {
	var best *Store
	for id, s := range c.st.Stores {
		taken := slices.ContainsFunc(r.Peers, func(p Peer) bool { return p.StoreID == id })
		if taken || s.State != StoreUp || c.stateName(s, now) != "Up" || s.liveness == livenessDead || !rule.fits(s) {
			continue
		}
		if best == nil || idx.peers[id] < idx.peers[best.Meta.ID] || idx.peers[id] == idx.peers[best.Meta.ID] && id < best.Meta.ID {
			best = s
		}
	}
	return best
}

// Learners counts, of every region, the learners that placement rules want on
// stores that serve, and those that there are.
func (c *Cluster) Learners() (wanted, have int) {
	c.lock()
	defer c.mu.Unlock()
	rules := c.learnerRules()
	for _, r := range c.st.Regions {
		for _, rule := range rules {
			if !rule.covers(r) {
				continue
			}
			stores := 0
			for _, s := range c.st.Stores {
				if s.State == StoreUp && rule.fits(s) {
					stores++
				}
			}
			wanted += min(rule.Count, stores)
			for _, p := range r.Peers {
				if s := c.st.Stores[p.StoreID]; p.Learner && s != nil && s.State == StoreUp && rule.fits(s) {
					have++
				}
			}
		}
	}
	return wanted, have
}
