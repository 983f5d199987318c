package safety

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// describeRegionAtRisk says how to look at the regions that a stop waits for. It names none of
// them: while PD replicates these are others at every moment, and a message that
// follows them is written over and over again.
func describeRegionAtRisk(c storestate.State) string {
	return fmt.Sprintf("a region would be left without a majority of its voters, or may be: it waits until PD has replicated it, for which there have to be enough stores that its placement rules fit: "+
		"%s region check miss-peer (likewise down-peer, pending-peer); %s config placement-rules show", storestate.PDCtl(c.Group), storestate.PDCtl(c.Group))
}

// RegionsKeepMajority says whether every region would keep a majority if a member were stopped
// now, or soon, because PD may give it a voter there first (KV-13). The holder of the Lease is not stopped before PD was asked about its
// regions.
func RegionsKeepMajority(c storestate.State, i *v1alpha1.Instance) verdict.Verdict {
	m, s := storestate.StoreOf(c, i), c.Snapshot
	if m.Store == nil {
		return verdict.Allow()
	}
	few := isUnreplicated(c, *m.Store)
	switch {
	case few && countVoterStores(c) < observation.MinVoters:
		return verdict.Allow() // no region has three voters
	case s.RegionsErr != nil:
		return verdict.Refuse(s.RegionsErr.Error())
	case !s.RegionsKnown && s.Lease.IsHeldBy(i):
		return verdict.Refuse("PD has not been asked about its regions yet")
	case slices.ContainsFunc(s.Regions, func(r pd.Region) bool { return isAtRisk(r, s.PD, *m.Store, few) }):
		return verdict.Refuse(describeRegionAtRisk(c))
	}
	return verdict.Allow()
}

// RegionsAtRisk returns the regions, by ID, that would be left without a majority if a member
// were stopped.
func RegionsAtRisk(c storestate.State, i *v1alpha1.Instance) []string {
	m := storestate.StoreOf(c, i)
	if m.Store == nil || !c.TrustPD.IsAllowed() {
		return nil
	}
	few := isUnreplicated(c, *m.Store)
	if few && countVoterStores(c) < observation.MinVoters {
		return nil
	}
	var out []string
	for _, r := range c.Snapshot.Regions {
		if isAtRisk(r, c.Snapshot.PD, *m.Store, few) {
			out = append(out, r.ID)
		}
	}
	return out
}

// isAtRisk reports whether a region would be left without a majority if a store were
// stopped. few says that the store is unreplicated.
func isAtRisk(r pd.Region, view pd.View, on pd.Store, few bool) bool {
	left, voters := observation.CountSurvivors(r, view, on.ID)
	at := slices.IndexFunc(r.Peers, func(p pd.Peer) bool { return p.StoreID == on.ID })
	switch {
	case voters < observation.MinVoters && (few || !r.Missing && onTiKV(r, view) < observation.MinVoters):
		return false // no more are wanted, or there are no more such stores
	case at >= 0 && r.Peers[at].Voter:
		return left < pd.Majority(voters)
	}
	// PD does not know that the store is about to stop, and may make a voter there of
	// a new peer or of a learner. The second of two is then half of them, which is no
	// majority; so is the fourth if one of the other three does not work.
	comes := on.State == pd.StateUp && (r.Missing || at >= 0)
	return comes && left >= pd.Majority(voters) && left < pd.Majority(voters+1)
}

// isUnreplicated reports whether no region of a store could do without one of its
// voters, because there are to be fewer than three. Nothing is gained then by
// waiting. A placement rule may want more for its regions than PD does for all
// others, and an exclusive store has the regions of the rules that name it, which
// need stores that fit them (KV-26).
func isUnreplicated(c storestate.State, on pd.Store) bool {
	view, most, named := c.Snapshot.PD, 0, false
	var stores []pd.Store
	alike := 0
	for _, s := range view.Stores {
		if s.HasLearnersOnly() || s.State == pd.StateOffline {
			continue
		}
		stores = append(stores, s)
		if placement.IsKeptEmpty(c, s) == placement.IsKeptEmpty(c, on) {
			alike++
		}
	}
	for _, rules := range placement.Claims(view.Rules) {
		takers := rules.VoterStores(stores)
		if slices.ContainsFunc(takers, func(s pd.Store) bool { return s.ID == on.ID }) {
			named, most = true, max(most, min(rules.Voters(), len(takers)))
		}
	}
	if !named || !placement.IsKeptEmpty(c, on) {
		most = max(most, min(view.MaxReplicas, alike))
	}
	return most < observation.MinVoters
}

// countVoterStores is how many stores may have voters.
func countVoterStores(c storestate.State) int {
	n := 0
	for _, s := range c.Snapshot.PD.Stores {
		if !s.HasLearnersOnly() {
			n++
		}
	}
	return n
}

// onTiKV counts the peers of a region that are voters or may become some.
func onTiKV(r pd.Region, view pd.View) int {
	n := 0
	for _, p := range r.Peers {
		if s, listed := view.Store(p.StoreID); !listed || !s.HasLearnersOnly() {
			n++
		}
	}
	return n
}
