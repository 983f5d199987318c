package pdclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

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

// FindRegion implements Client. The answer may be longer than any other by far: it
// is not held in memory.
func (c *httpClient) FindRegion(ctx context.Context, storeID string, sought func(pd.Region) bool) (pd.Region, bool, error) {
	defer c.transport.CloseIdleConnections()
	begin, code := time.Now(), codeNone
	defer func() { c.metrics.observe(callStoreRegions, code, time.Since(begin)) }()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/pd/api/v1/regions/store/"+storeID, http.NoBody)
	if err != nil {
		return pd.Region{}, false, fmt.Errorf("make request %s: %w", callStoreRegions, err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return pd.Region{}, false, &pd.Unreachable{URL: c.url, Cause: err}
	}
	if resp.StatusCode != http.StatusOK {
		return pd.Region{}, false, c.read(callStoreRegions, resp, nil)
	}
	defer func() { _ = resp.Body.Close() }() // what is left is not wanted
	code = strconv.Itoa(resp.StatusCode)
	found, ok, err := findRegion(resp.Body, sought)
	switch {
	case err != nil && ctx.Err() != nil:
		return pd.Region{}, false, &pd.Unreachable{URL: c.url, Cause: ctx.Err()}
	case err != nil:
		return pd.Region{}, false, &pd.Malformed{Call: callStoreRegions, Why: err.Error()}
	}
	return found, ok, nil
}

// findRegion reads an answer of PD, an object with a list of regions and how many
// there are, one region at a time. One that ends too soon or holds fewer than it
// says is none.
func findRegion(answer io.Reader, sought func(pd.Region) bool) (pd.Region, bool, error) {
	in := json.NewDecoder(answer)
	if t, err := in.Token(); err != nil {
		return pd.Region{}, false, err
	} else if t != json.Delim('{') {
		return pd.Region{}, false, errNoObject
	}
	count, seen := -1, 0
	for in.More() {
		key, err := in.Token()
		switch {
		case err != nil:
			return pd.Region{}, false, err
		case key == "count":
			err = in.Decode(&count)
		case key == "regions":
			var region pd.Region
			var found bool
			if region, found, seen, err = findIn(in, sought); found {
				return region, true, nil
			}
		default:
			var other json.RawMessage
			err = in.Decode(&other)
		}
		if err != nil {
			return pd.Region{}, false, err
		}
	}
	if _, err := in.Token(); err != nil {
		return pd.Region{}, false, err
	}
	if count != seen {
		return pd.Region{}, false, fmt.Errorf("it has %d regions and says %d", seen, count)
	}
	return pd.Region{}, false, nil
}

// findIn reads a list of regions, which is null if there are none, until one is
// sought, and counts them.
func findIn(in *json.Decoder, sought func(pd.Region) bool) (_ pd.Region, found bool, seen int, _ error) {
	t, err := in.Token()
	if err != nil || t != json.Delim('[') {
		if err == nil && t != nil {
			err = errNoList
		}
		return pd.Region{}, false, 0, err
	}
	for in.More() {
		var next pdhttp.RegionInfo
		if err := in.Decode(&next); err != nil {
			return pd.Region{}, false, seen, err
		}
		seen++
		if r := region(next); sought(r) {
			return r, true, seen, nil
		}
	}
	_, err = in.Token()
	return pd.Region{}, false, seen, err
}

var (
	errNoList   = errors.New("its regions are no list")
	errNoObject = errors.New("it is no object")
)
