package store

import (
	"fmt"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// quorate is the number of voters from which on a region can do without one.
const quorate = 3

// Endangered says which region would be left without a majority if a member were
// stopped now; empty if none would (KV-13). Who holds the Lease is not stopped
// before PD was asked about its regions.
func (c Component) Endangered(i *v1alpha1.Instance) string {
	m, s := c.of(i), c.Snapshot
	switch {
	case m.Store == nil, !c.secluded(*m.Store) && c.unreplicated(*m.Store):
		return ""
	case s.RegionsErr != nil:
		return s.RegionsErr.Error()
	case !s.RegionsKnown && s.Lease.HeldBy(i):
		return "PD has not been asked about its regions yet"
	}
	for _, r := range s.Regions {
		left, voters := survivors(r, s.PD, m.Store.ID)
		if c.unreplicated(*m.Store) && voters < quorate {
			continue // no more are wanted, or there are no more such stores
		}
		if voters > 0 && left < voters/2+1 {
			return fmt.Sprintf("region %s has %d voters, of which %d would be left: it waits for the others to catch up: pd-ctl region %s", r.ID, voters, left, r.ID)
		}
	}
	return ""
}

// unreplicated reports whether no region of a store could do without one of its
// voters, because there are to be fewer than three. Nothing is gained then by
// waiting. An exclusive store has the regions of the rules that name it, which
// need other such stores (KV-26).
func (c Component) unreplicated(on pd.Store) bool {
	wanted := c.Snapshot.PD.MaxReplicas
	if c.secluded(on) {
		for _, r := range c.Snapshot.PD.Rules {
			if fits(r, on) {
				wanted = min(wanted, r.Count)
			}
		}
	}
	stores := 0
	for _, s := range c.Snapshot.PD.Stores {
		if !isTiFlash(s) && s.State != pd.StateOffline && c.secluded(s) == c.secluded(on) {
			stores++
		}
	}
	return min(stores, wanted) < quorate
}

// survivors counts the voters of a region, and those that would be left of them
// without a store: none of a region that has no voter there.
func survivors(r pd.Region, view pd.View, without string) (left, voters int) {
	if !slices.ContainsFunc(r.Peers, func(p pd.Peer) bool { return p.StoreID == without && p.Voter }) {
		return 0, 0
	}
	for _, p := range r.Peers {
		if !p.Voter {
			continue
		}
		voters++
		s, listed := view.Store(p.StoreID)
		if p.StoreID != without && !p.Down && !p.Pending && listed && s.State == pd.StateUp {
			left++
		}
	}
	return left, voters
}
