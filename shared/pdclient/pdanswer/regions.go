package pdanswer

import (
	"fmt"
	"slices"
	"strconv"

	pdhttp "github.com/tikv/pd/client/http"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// convertRegion is a region as PD describes it.
func convertRegion(r pdhttp.RegionInfo) pd.Region {
	out := pd.Region{ID: strconv.FormatInt(r.ID, 10)}
	if r.Leader.StoreID != 0 {
		out.LeaderStore = strconv.FormatInt(r.Leader.StoreID, 10)
	}
	for _, p := range r.Peers {
		is := func(q pdhttp.RegionPeer) bool { return q.ID == p.ID }
		out.Peers = append(out.Peers, pd.Peer{
			StoreID: strconv.FormatInt(p.StoreID, 10), Voter: !p.IsLearner,
			Down:    slices.ContainsFunc(r.DownPeers, func(q pdhttp.RegionPeerStat) bool { return is(q.Peer) }),
			Pending: slices.ContainsFunc(r.PendingPeers, is),
		})
	}
	return out
}

// Regions is an answer of PD, an object with a list of regions and how many
// there are, which is read one region at a time.
type Regions struct {
	// Bytes is how long it may be, and Most how many regions it may have.
	Bytes int64
	Most  int
	// Counted refuses an answer that holds fewer regions than it says.
	Counted bool
	// Each is given one after the other. Its error ends the reading.
	Each func(id int64, region pd.Region) error
}

func (a *Regions) total() int64 { return a.Bytes }

func (a *Regions) read(r *reader) error {
	count, seen := -1, 0
	err := r.object(func(key string) error {
		switch key {
		case "count":
			return r.value(&count)
		case "regions":
			return r.list(a.Most, key, func() error {
				var next pdhttp.RegionInfo
				if err := r.value(&next); err != nil {
					return err
				}
				if err := checkCount(max(len(next.Peers), len(next.DownPeers), len(next.PendingPeers)), "peers"); err != nil {
					return err
				}
				seen++
				return a.Each(next.ID, convertRegion(next))
			})
		}
		return r.skip()
	})
	if err == nil && a.Counted && count != seen {
		err = fmt.Errorf("it has %d regions and says %d", seen, count)
	}
	return err
}
