package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// P1: whatever peers a region of up to six stores has, one of them maybe down, and
// whatever PD adds or promotes before the store stops, a majority lives on without
// it.
func TestNoRegionLosesItsMajorityWhilePDMovesPeers(t *testing.T) {
	stopped, held := 0, 0
	for _, world := range []struct{ stores, wanted int }{{3, 3}, {4, 3}, {5, 3}, {5, 5}, {6, 5}} {
		for _, r := range regionsOf(world.stores, world.wanted) {
			s := on(world.stores, world.wanted)
			s.Regions, s.RegionsKnown = []pd.Region{r}, true
			if tikv(kv(3), s).RegionsKeepMajority(s.Instances[0]).Reason() != "" {
				held++
				continue
			}
			stopped++
			for _, next := range following(r, s) {
				assert.Empty(t, short(next, "1"), "peers %+v, then %+v", r.Peers, next.Peers)
			}
		}
	}
	t.Logf("%d states: store 1 is stopped in %d of them and held in %d", stopped+held, stopped, held)
	assert.Positive(t, stopped)
	assert.Positive(t, held)
}

// on returns a cluster of some stores, of which the first three are the group's.
func on(stores, wanted int) observation.Snapshot {
	_, s := world()
	s.PD.MaxReplicas = wanted
	for n := len(s.PD.Stores); n < stores; n++ {
		s.PD.Stores = append(s.PD.Stores, at(n, fmt.Sprint(n+1), pd.StateUp))
	}
	return s
}

// regionsOf returns every region that has its majority and no voter too many.
func regionsOf(stores, wanted int) []pd.Region {
	const none, voter, learner = 0, 1, 2
	var out []pd.Region
	all := 1
	for range stores {
		all *= 3
	}
	for code := range all {
		for sick := 0; sick <= stores; sick++ {
			r := pd.Region{ID: "7"}
			voters, left := 0, code
			for n := range stores {
				kind := left % 3
				left /= 3
				if kind == none {
					continue
				}
				if kind == voter {
					voters++
				}
				r.Peers = append(r.Peers, pd.Peer{StoreID: fmt.Sprint(n + 1), Voter: kind == voter, Pending: kind == learner, Down: n+1 == sick})
			}
			r.Missing = len(r.Peers) < wanted
			if voters > 0 && voters <= wanted && short(r, "") == "" {
				out = append(out, r)
			}
		}
	}
	return out
}

// following returns a region as it is, and with every voter more that PD could give
// it next: on a store without a peer if it has too few, of a learner, or of all
// learners at once.
func following(r pd.Region, s observation.Snapshot) []pd.Region {
	all := r
	all.Peers = slices.Clone(r.Peers)
	for n, p := range all.Peers {
		all.Peers[n].Voter = p.Voter || !p.Down
	}
	out := []pd.Region{r, all}
	for _, to := range s.PD.Stores {
		more := r
		more.Peers = slices.Clone(r.Peers)
		at := slices.IndexFunc(more.Peers, func(p pd.Peer) bool { return p.StoreID == to.ID })
		switch {
		case at < 0 && r.Missing:
			more.Peers = append(more.Peers, pd.Peer{StoreID: to.ID, Voter: true})
		case at >= 0 && !more.Peers[at].Voter && !more.Peers[at].Down:
			more.Peers[at].Voter = true
		default:
			continue
		}
		out = append(out, more)
	}
	return out
}

// short says what a region lacks for a majority of its voters while a store is
// stopped; empty if nothing.
func short(r pd.Region, without string) string {
	alive, voters := 0, 0
	for _, p := range r.Peers {
		if !p.Voter {
			continue
		}
		voters++
		if p.StoreID != without && !p.Down {
			alive++
		}
	}
	if alive >= voters/2+1 {
		return ""
	}
	return fmt.Sprintf("%d of %d voters", alive, voters)
}
