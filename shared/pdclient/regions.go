package pdclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidb-groups/tidb-groups/shared/pd"

	pdhttp "github.com/tikv/pd/client/http"
)

// UnhealthyRegions implements Client. The answers are of different moments; of a
// region that is in several the first is kept, and what any says of its peers.
func (c *httpClient) UnhealthyRegions(ctx context.Context) ([]pd.Region, error) {
	defer c.transport.CloseIdleConnections()
	found := map[int64]pd.Region{}
	for _, ask := range []struct{ call, path string }{
		{callDownPeers, "/pd/api/v1/regions/check/down-peer"},
		{callPendingPeers, "/pd/api/v1/regions/check/pending-peer"},
		{callMissingPeers, "/pd/api/v1/regions/check/miss-peer"},
	} {
		var answer pdhttp.RegionsInfo
		err := c.request(ctx, ask.call, http.MethodGet, ask.path, &answer)
		switch {
		case errors.Is(err, pd.ErrNotBootstrapped):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("list unhealthy regions: %w", err)
		}
		for _, r := range answer.Regions {
			seen := region(r)
			seen.Missing = ask.call == callMissingPeers
			found[r.ID] = merged(found[r.ID], seen)
		}
	}
	out := make([]pd.Region, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}
	return out, nil
}

// region is a region as PD describes it.
func region(r pdhttp.RegionInfo) pd.Region {
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

// merged adds what a second answer says of the first and its peers.
func merged(a, b pd.Region) pd.Region {
	if a.ID == "" {
		return b
	}
	a.Missing = a.Missing || b.Missing
	for i, p := range a.Peers {
		if at := slices.IndexFunc(b.Peers, func(q pd.Peer) bool { return q.StoreID == p.StoreID }); at >= 0 {
			a.Peers[i].Down = p.Down || b.Peers[at].Down
			a.Peers[i].Pending = p.Pending || b.Peers[at].Pending
		}
	}
	return a
}
