package safety

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// ChooseBatch implements component.BatchRestarter: members of the same zone, or whatever place
// the group names, are restarted at the same time where PD keeps every two peers of
// a region in different ones.
func ChooseBatch(c storestate.State, first *v1alpha1.Instance, others []*v1alpha1.Instance) (with []*v1alpha1.Instance, alone verdict.Reason) {
	m := storestate.StoreOf(c, first)
	if c.RestartTogether == "" || !c.TrustPD.IsAllowed() || m.Store == nil || len(others) == 0 {
		return nil, verdict.Reason{}
	}
	if may := peersAreIsolated(c, nil); !may.IsAllowed() {
		return nil, may.WhyNot()
	}
	for _, i := range others {
		if other := storestate.StoreOf(c, i); other.Store != nil && other.Own.IsAllowed() && zoneOf(c, *other.Store) == zoneOf(c, *m.Store) {
			with = append(with, i)
		}
	}
	return with, verdict.Reason{}
}

// AllowsBatch implements component.BatchRestarter: it does if PD is configured to keep the peers of every
// region in different zones, the members are of one, and every other TiKV of the
// cluster works.
func AllowsBatch(c storestate.State, all []*v1alpha1.Instance) verdict.Verdict {
	stopped, where := map[string]bool{}, ""
	if may := verdict.RequireAll(storestate.PDKnown(c), noneIsForceRemoved(c)); !may.IsAllowed() {
		return may
	}
	for _, i := range all {
		m := storestate.StoreOf(c, i)
		if !m.Own.IsAllowed() {
			return m.Own
		}
		if m.Store == nil {
			continue
		}
		if zone := zoneOf(c, *m.Store); len(stopped) > 0 && zone != where {
			return verdict.Refusef("store %s (%s) is no longer in the same %s", m.Store.ID, i.Name, c.RestartTogether)
		}
		where, stopped[m.Store.ID] = zoneOf(c, *m.Store), true
	}
	return verdict.RequireAll(peersAreIsolated(c, stopped), othersWork(c, stopped))
}

// othersWork says whether every store works beside those that are stopped.
func othersWork(c storestate.State, stopped map[string]bool) verdict.Verdict {
	for _, other := range tikvStores(c) {
		if stopped[other.ID] {
			continue
		}
		if may := storeWorks(c, other, member.PodReady, false); !may.IsAllowed() {
			return may
		}
	}
	return verdict.Allow()
}

// AllowsBatchNow implements component.BatchRestarter: it does unless one of the regions that
// lack something would lose its majority with the members' zone. No member is stopped before PD was asked
// about them.
func AllowsBatchNow(c storestate.State, all []*v1alpha1.Instance) verdict.Verdict {
	s := c.Snapshot
	switch _, zone := batchStores(c, all); {
	case s.RegionsErr != nil:
		return verdict.Refuse(s.RegionsErr.Error())
	case !s.RegionsKnown && slices.ContainsFunc(all, s.Lease.IsHeldBy):
		return verdict.Refuse("PD has not been asked about its regions yet")
	case slices.ContainsFunc(s.Regions, func(r pd.Region) bool { return losesMajority(c, r, zone) }):
		return verdict.Refusef("a region lacks a peer, or has one that is down or pending, and may need the whole zone: %s region check miss-peer (likewise down-peer, pending-peer)", storestate.PDCtl(c.Group))
	}
	return verdict.Allow()
}

// BatchQuestion implements component.BatchRestarter: whether a region of the members' stores would
// be left without a majority.
func BatchQuestion(c storestate.State, all []*v1alpha1.Instance) observation.RegionQuestion {
	ids, zone := batchStores(c, all)
	return observation.RegionQuestion{Stores: ids, Sought: func(r pd.Region) bool { return losesMajority(c, r, zone) }}
}

// batchStores returns the stores of members that are stopped together, by ID, and all
// stores of the zone that they are in.
func batchStores(c storestate.State, all []*v1alpha1.Instance) (ids []string, zone map[string]bool) {
	where := ""
	for _, i := range all {
		if m := storestate.StoreOf(c, i); m.Store != nil {
			ids, where = append(ids, m.Store.ID), zoneOf(c, *m.Store)
		}
	}
	return ids, storesInZone(c, where)
}

// AllowsByRegions implements component.BatchRestarter.
func AllowsByRegions(c storestate.State, a observation.RegionAnswer) verdict.Verdict {
	switch {
	case a.Err != nil:
		return verdict.Refuse("the regions of the stores could not be read: " + a.Err.Error())
	case a.Found != nil && a.Found.LeaderStore == "":
		return verdict.Refusef("PD has not heard of the leader of region %s since its own has changed", a.Found.ID)
	case a.Found != nil:
		return verdict.Refusef("region %s may need more than one peer of the same %s, from which PD moves it away: %s region %s", a.Found.ID, c.RestartTogether, storestate.PDCtl(c.Group), a.Found.ID)
	}
	return verdict.Allow()
}

// losesMajority reports whether a region would be left without a majority of its voters if
// all stores of a zone stopped now, or soon: PD does not know of it, and may make a
// voter there of a new peer or of a learner. Two peers in the zone, of whatever kind,
// may be voters at any moment: PD scatters regions peer by peer, without regard to
// isolation. Of a joint configuration PD tells not which voter is in which half; all
// that are lost may be in the same one. Of a region whose leader PD has not heard of
// nothing is known.
func losesMajority(c storestate.State, r pd.Region, zone map[string]bool) bool {
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
	comes = comes || voters < replicaCount(c)
	half := min(voters, replicaCount(c))
	return r.LeaderStore == "" || within > 1 || voters-left > half-pd.Majority(half) || comes && left < pd.Majority(voters+1)
}

// peersAreIsolated says whether PD's configuration keeps the peers of every region in different
// zones, and if not, what to type. stopped are stores that
// may be down on purpose.
func peersAreIsolated(c storestate.State, stopped map[string]bool) verdict.Verdict {
	v, label, order := c.Snapshot.PD, c.RestartTogether, storestate.PDCtl(c.Group)
	labels, isolation := v.LocationLabels, v.IsolationLevel
	if label == "" {
		return verdict.Refuse("spec.restartTogether has been taken away")
	}
	if placement.LevelOf(labels, label) < 0 {
		all := label
		if len(labels) > 0 { // PD compares them in their order
			all = "LABEL,LABEL, with " + label + " where it belongs, from the largest to the smallest"
		}
		return verdict.Refusef("spec.restartTogether is %s, and PD's location-labels are %q: %s", label, strings.Join(labels, ","), storestate.SetCommand(c, "location-labels", all))
	}
	// PD gives a region that has a replica in every zone no other one beside these.
	if may := enoughZones(c, labels, label, stopped); !may.IsAllowed() {
		return may
	}
	if !isIsolated(c, labels, isolation) {
		return verdict.Refusef("PD's isolation-level is %q, and regions may have several peers in the same %s: %s", isolation, label, storestate.SetCommand(c, "isolation-level", label))
	}
	if v.PlacementRules {
		rule, reason := onlyVoterRule(c)
		if reason != "" {
			return verdict.Refuse(reason)
		}
		labels, isolation = rule.LocationLabels, rule.IsolationLevel
		if !isIsolated(c, labels, isolation) {
			return verdict.Refusef("PD's placement rule %s/%s has the isolation level %q, and regions may have several peers in the same %s: %s config placement-rules rule-bundle get %s, and give it location_labels with %s and isolation_level %s",
				rule.Group, rule.ID, isolation, label, order, rule.Group, label, label)
		}
	}
	if n := replicaCount(c); n < observation.MinVoters {
		return verdict.Refusef("PD keeps %d replicas of every region, which cannot do without one: %s", n, storestate.SetCommand(c, "max-replicas", "3"))
	}
	return enoughZones(c, labels, isolation, stopped)
}

// isIsolated reports whether a level of isolation keeps peers out of the same zone:
// that level itself, or a larger place.
func isIsolated(c storestate.State, labels []string, isolation string) bool {
	level, zone := placement.LevelOf(labels, isolation), placement.LevelOf(labels, c.RestartTogether)
	return level >= 0 && zone >= 0 && level <= zone
}

// onlyVoterRule returns the one rule that places voters. What several place together may
// share a zone, though each by itself does not.
func onlyVoterRule(c storestate.State) (pd.Rule, string) {
	var out *pd.Rule
	for _, r := range c.Snapshot.PD.Rules {
		if r.Role == "learner" {
			continue
		}
		if out != nil || len(r.Constraints) > 0 || r.Role != "voter" {
			return r, fmt.Sprintf("PD's placement rule %s/%s says where voters are, beside or instead of one rule for all, and they may share a %s: %s config placement-rules show", r.Group, r.ID, c.RestartTogether, storestate.PDCtl(c.Group))
		}
		out = &r
	}
	if out == nil {
		return pd.Rule{}, fmt.Sprintf("PD has no placement rule for voters: %s config placement-rules show", storestate.PDCtl(c.Group))
	}
	return *out, ""
}

// replicaCount is how many voters PD keeps of a region.
func replicaCount(c storestate.State) int {
	if c.Snapshot.PD.PlacementRules {
		if rule, reason := onlyVoterRule(c); reason == "" {
			return rule.Count
		}
	}
	return c.Snapshot.PD.MaxReplicas
}

// enoughZones compares the places that PD keeps peers in with the number of
// replicas. Every store has to be in one.
func enoughZones(c storestate.State, labels []string, isolation string, stopped map[string]bool) verdict.Verdict {
	level, found := placement.LevelOf(labels, isolation), map[string]bool{}
	for _, s := range tikvStores(c) {
		for _, key := range []string{c.RestartTogether, isolation} {
			if placement.LabelOf(s, key) == "" {
				return verdict.Refusef("store %s (%s) has no label %s: it comes from a label of its node, or %s store label %s %s=VALUE", s.ID, s.PodName(), key, storestate.PDCtl(c.Group), s.ID, key)
			}
		}
		if (s.State == pd.StateUp || stopped[s.ID]) && !placement.IsKeptEmpty(c, s) {
			found[placement.LabelPlaces(&s, labels)[level]] = true
		}
	}
	if n := replicaCount(c); len(found) < n {
		return verdict.Refusef("stores are Up in %s, and PD keeps %d replicas of every region, which need as many: add stores elsewhere", storestate.FormatCount(len(found), isolation), n)
	}
	return verdict.Allow()
}

// tikvStores returns the stores of the cluster that have voters.
func tikvStores(c storestate.State) []pd.Store {
	return slices.DeleteFunc(slices.Clone(c.Snapshot.PD.Stores), pd.Store.HasLearnersOnly)
}

// zoneOf names the place of a store that the group restarts together: hosts of two
// zones may have the same name.
func zoneOf(c storestate.State, s pd.Store) string {
	labels := c.Snapshot.PD.LocationLabels
	level := placement.LevelOf(labels, c.RestartTogether)
	if level < 0 {
		return ""
	}
	return placement.LabelPlaces(&s, labels)[level]
}

// storesInZone returns the stores of a place, by ID.
func storesInZone(c storestate.State, where string) map[string]bool {
	out := map[string]bool{}
	for _, s := range tikvStores(c) {
		if zoneOf(c, s) == where {
			out[s.ID] = true
		}
	}
	return out
}
