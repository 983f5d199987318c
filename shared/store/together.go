package store

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

var _ component.BatchRestarter = Component{}

// ChooseBatch implements group.Together: members of the same zone, or whatever place
// the group names, are restarted at the same time where PD keeps every two peers of
// a region in different ones.
func (c Component) ChooseBatch(first *v1alpha1.Instance, others []*v1alpha1.Instance) (with []*v1alpha1.Instance, alone string) {
	m := c.of(first)
	if c.RestartTogether == "" || c.Silence != "" || m.Store == nil || len(others) == 0 {
		return nil, ""
	}
	if reason := c.unproven(nil); reason != "" {
		return nil, reason
	}
	for _, i := range others {
		if other := c.of(i); other.Store != nil && other.Problem == "" && c.zoneOf(*other.Store) == c.zoneOf(*m.Store) {
			with = append(with, i)
		}
	}
	return with, ""
}

// WhyBatchUnsafe implements group.Together: PD is told to keep the peers of every
// region in different zones, the members are of one, and every other TiKV of the
// cluster works.
func (c Component) WhyBatchUnsafe(all []*v1alpha1.Instance) string {
	stopped, where := map[string]bool{}, ""
	if reason := c.silent(); reason != "" {
		return reason
	}
	for _, i := range all {
		m := c.of(i)
		if m.Problem != "" {
			return m.Problem
		}
		if m.Store == nil {
			continue
		}
		if zone := c.zoneOf(*m.Store); len(stopped) > 0 && zone != where {
			return fmt.Sprintf("store %s (%s) is not in the same %s any more", m.Store.ID, i.Name, c.RestartTogether)
		}
		where, stopped[m.Store.ID] = c.zoneOf(*m.Store), true
	}
	return cmp.Or(c.unproven(stopped), c.lameBeside(stopped))
}

// lameBeside names a store that does not work beside those that are stopped.
func (c Component) lameBeside(stopped map[string]bool) string {
	for _, other := range c.tikvs() {
		if stopped[other.ID] {
			continue
		}
		if reason := c.lame(other, member.PodReady, false); reason != "" {
			return reason
		}
	}
	return ""
}

// WhyBatchNotYet implements group.Together: one of the regions that lack something
// would lose its majority with the members' zone. Nobody is stopped before PD was asked
// about them.
func (c Component) WhyBatchNotYet(all []*v1alpha1.Instance) string {
	s := c.Snapshot
	switch _, zone := c.stopped(all); {
	case s.RegionsErr != nil:
		return s.RegionsErr.Error()
	case !s.RegionsKnown && slices.ContainsFunc(all, s.Lease.HeldBy):
		return "PD has not been asked about its regions yet"
	case slices.ContainsFunc(s.Regions, func(r pd.Region) bool { return c.loses(r, zone) }):
		return fmt.Sprintf("a region lacks a peer, or has one that is down or pending, and may need the whole zone: %s region check miss-peer (likewise down-peer, pending-peer)", ctl(c.Group))
	}
	return ""
}

// BatchQuestion implements group.Together: whether a region of the members' stores would
// be left without a majority.
func (c Component) BatchQuestion(all []*v1alpha1.Instance) observation.RegionQuestion {
	ids, zone := c.stopped(all)
	return observation.RegionQuestion{Stores: ids, Sought: func(r pd.Region) bool { return c.loses(r, zone) }}
}

// stopped returns the stores of members that are stopped together, by ID, and all
// stores of the zone that they are in.
func (c Component) stopped(all []*v1alpha1.Instance) (ids []string, zone map[string]bool) {
	where := ""
	for _, i := range all {
		if m := c.of(i); m.Store != nil {
			ids, where = append(ids, m.Store.ID), c.zoneOf(*m.Store)
		}
	}
	return ids, c.zone(where)
}

// WhyAnswerUnsafe implements group.Together.
func (c Component) WhyAnswerUnsafe(a observation.RegionAnswer) string {
	switch {
	case a.Err != nil:
		return "the regions of the stores could not be read: " + a.Err.Error()
	case a.Found != nil && a.Found.LeaderStore == "":
		return fmt.Sprintf("PD has not heard of the leader of region %s since its own has changed", a.Found.ID)
	case a.Found != nil:
		return fmt.Sprintf("region %s may need more than one peer of the same %s, from which PD moves it away: %s region %s", a.Found.ID, c.RestartTogether, ctl(c.Group), a.Found.ID)
	}
	return ""
}

// loses reports whether a region would be left without a majority of its voters if
// all stores of a zone stopped now, or soon: PD does not know of it, and may make a
// voter there of a new peer or of a learner. Two peers in the zone, of whatever kind,
// may be voters at any moment: PD scatters regions peer by peer, without regard to
// isolation. Of a joint configuration PD tells not which voter is in which half; all
// that are lost may be in the same one. Of a region whose leader PD has not heard of
// nothing is known.
func (c Component) loses(r pd.Region, zone map[string]bool) bool {
	left, voters, within, comes := 0, 0, 0, r.Missing
	for _, p := range r.Peers {
		if zone[p.StoreID] {
			within++
		}
		s, listed := c.Snapshot.PD.Store(p.StoreID)
		switch {
		case !p.Voter:
			comes = comes || zone[p.StoreID]
			continue
		case !zone[p.StoreID] && !p.Down && !p.Pending && listed && s.State == pd.StateUp:
			left++
		}
		voters++
	}
	comes = comes || voters < c.replicas()
	half := min(voters, c.replicas())
	return r.LeaderStore == "" || within > 1 || voters-left > half-pd.Majority(half) || comes && left < pd.Majority(voters+1)
}

// unproven says what of PD's configuration does not keep the peers of every region
// in different zones, with what to type; empty if all does. stopped are stores that
// may be down on purpose.
func (c Component) unproven(stopped map[string]bool) string {
	v, label, order := c.Snapshot.PD, c.RestartTogether, ctl(c.Group)
	labels, isolation := v.LocationLabels, v.IsolationLevel
	if label == "" {
		return "spec.restartTogether has been taken away"
	}
	if at(labels, label) < 0 {
		return fmt.Sprintf("spec.restartTogether is %s, and PD's location-labels are %q: %s config set location-labels %s", label, strings.Join(labels, ","), order, strings.Join(append(slices.Clone(labels), label), ","))
	}
	if !c.isolates(labels, isolation) {
		return fmt.Sprintf("PD's isolation-level is %q, and regions may have several peers in the same %s: %s config set isolation-level %s", isolation, label, order, label)
	}
	if v.PlacementRules {
		rule, reason := c.only()
		if reason != "" {
			return reason
		}
		labels, isolation = rule.LocationLabels, rule.IsolationLevel
		if !c.isolates(labels, isolation) {
			return fmt.Sprintf("PD's placement rule %s/%s has the isolation level %q, and regions may have several peers in the same %s: %s config placement-rules rule-bundle get %s, and give it location_labels with %s and isolation_level %s",
				rule.Group, rule.ID, isolation, label, order, rule.Group, label, label)
		}
	}
	if n := c.replicas(); n < quorate {
		return fmt.Sprintf("PD keeps %d replicas of every region, which cannot do without one: %s config set max-replicas 3", n, order)
	}
	return c.tooFewZones(labels, isolation, stopped)
}

// isolates reports whether a level of isolation keeps peers out of the same zone:
// that level itself, or a larger place.
func (c Component) isolates(labels []string, isolation string) bool {
	level, zone := at(labels, isolation), at(labels, c.RestartTogether)
	return level >= 0 && zone >= 0 && level <= zone
}

// only returns the one rule that places voters. What several place together may
// share a zone, though each by itself does not.
func (c Component) only() (pd.Rule, string) {
	var out *pd.Rule
	for _, r := range c.Snapshot.PD.Rules {
		if r.Role == "learner" {
			continue
		}
		if out != nil || len(r.Constraints) > 0 || r.Role != "voter" {
			return r, fmt.Sprintf("PD's placement rule %s/%s says where voters are, beside or instead of one rule for all, and they may share a %s: %s config placement-rules show", r.Group, r.ID, c.RestartTogether, ctl(c.Group))
		}
		out = &r
	}
	if out == nil {
		return pd.Rule{}, fmt.Sprintf("PD has no placement rule for voters: %s config placement-rules show", ctl(c.Group))
	}
	return *out, ""
}

// replicas is how many voters PD keeps of a region.
func (c Component) replicas() int {
	if c.Snapshot.PD.PlacementRules {
		if rule, reason := c.only(); reason == "" {
			return rule.Count
		}
	}
	return c.Snapshot.PD.MaxReplicas
}

// tooFewZones compares the places that PD keeps peers in with the number of
// replicas. Every store has to be in one.
func (c Component) tooFewZones(labels []string, isolation string, stopped map[string]bool) string {
	level, found := at(labels, isolation), map[string]bool{}
	for _, s := range c.tikvs() {
		for _, key := range []string{c.RestartTogether, isolation} {
			if label(s, key) == "" {
				return fmt.Sprintf("store %s (%s) has no label %s: it comes from a label of its node, or %s store label %s %s=VALUE", s.ID, podName(s), key, ctl(c.Group), s.ID, key)
			}
		}
		if (s.State == pd.StateUp || stopped[s.ID]) && !c.secluded(s) {
			found[places(&s, labels)[level]] = true
		}
	}
	if n := c.replicas(); len(found) < n {
		return fmt.Sprintf("stores are Up in %s, and PD keeps %d replicas of every region in as many: add stores elsewhere", count(len(found), isolation), n)
	}
	return ""
}

// tikvs returns the stores of the cluster that have voters.
func (c Component) tikvs() []pd.Store {
	return slices.DeleteFunc(slices.Clone(c.Snapshot.PD.Stores), isTiFlash)
}

// zoneOf names the place of a store that the group restarts together: hosts of two
// zones may have the same name.
func (c Component) zoneOf(s pd.Store) string {
	labels := c.Snapshot.PD.LocationLabels
	level := at(labels, c.RestartTogether)
	if level < 0 {
		return ""
	}
	return places(&s, labels)[level]
}

// zone returns the stores of a place, by ID.
func (c Component) zone(where string) map[string]bool {
	out := map[string]bool{}
	for _, s := range c.tikvs() {
		if c.zoneOf(s) == where {
			out[s.ID] = true
		}
	}
	return out
}

// at returns the level of a location label, -1 if it is none. PD does not tell upper
// from lower case in keys.
func at(labels []string, key string) int {
	return slices.IndexFunc(labels, func(l string) bool { return strings.EqualFold(l, key) })
}
