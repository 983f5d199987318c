package store_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// P1: whatever voters a region of up to five stores has, and wherever PD puts one
// more before the store stops, a majority of them lives on without it.
func TestNoRegionLosesItsMajorityByWhatPDDoesMeanwhile(t *testing.T) {
	const wanted = 3
	stopped, held := 0, 0
	for stores := wanted; stores <= 5; stores++ {
		for set := 1; set < 1<<stores; set++ {
			for sick := 0; sick <= stores; sick++ {
				g, s := world()
				s.PD.Stores = s.PD.Stores[:0]
				r := pd.Region{ID: "7"}
				for n := range stores {
					id := fmt.Sprint(n + 1)
					s.PD.Stores = append(s.PD.Stores, at(n, id, pd.StateUp))
					if set>>n&1 == 1 {
						r.Peers = append(r.Peers, pd.Peer{StoreID: id, Voter: true, Down: n+1 == sick})
					}
				}
				r.Missing = len(r.Peers) < wanted
				if len(r.Peers) > wanted || majority(r, "") != "" {
					continue // PD drops it first, or it is lost already.
				}
				s.Regions, s.RegionsKnown = []pd.Region{r}, true
				if tikv(g, s).Endangered(s.Instances[0]) != "" {
					held++
					continue
				}
				stopped++
				for _, next := range following(r, s) {
					assert.Empty(t, majority(next, "1"), "voters %+v, then %+v", r.Peers, next.Peers)
				}
			}
		}
	}
	t.Logf("%d states: store 1 is stopped in %d of them and held in %d", stopped+held, stopped, held)
	assert.Positive(t, stopped)
	assert.Positive(t, held)
}

// following returns a region as it is, and with one voter more on every store that
// PD could put one on.
func following(r pd.Region, s group.Snapshot) []pd.Region {
	out := []pd.Region{r}
	for _, to := range s.PD.Stores {
		has := false
		for _, p := range r.Peers {
			has = has || p.StoreID == to.ID
		}
		if r.Missing && !has {
			more := r
			more.Peers = append(append([]pd.Peer(nil), r.Peers...), pd.Peer{StoreID: to.ID, Voter: true})
			out = append(out, more)
		}
	}
	return out
}

// majority says what a region lacks for a majority of its voters while a store is
// stopped; empty if nothing.
func majority(r pd.Region, without string) string {
	alive := 0
	for _, p := range r.Peers {
		if p.StoreID != without && !p.Down {
			alive++
		}
	}
	if alive >= len(r.Peers)/2+1 {
		return ""
	}
	return fmt.Sprintf("%d of %d voters", alive, len(r.Peers))
}
