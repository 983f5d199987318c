package pdclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient/pdanswer"
)

// What the lists of regions may hold at most, and regions of several of them together.
const (
	// maxUnhealthy bounds a list of unhealthy regions, in bytes; one takes about 1 kB.
	maxUnhealthy = 64 << 20
	// maxStoreRegions bounds the list of a store's regions, in bytes. No more than one
	// region of it is ever held.
	maxStoreRegions = 1 << 30
	maxRegions      = 40_000
	// maxPeers bounds the peers of all regions of an answer together.
	maxPeers = 5 * maxRegions
)

// UnhealthyRegions implements Client. The answers are of different moments; of a
// region that is in several the first is kept, and what any says of its peers.
func (c *httpClient) UnhealthyRegions(ctx context.Context) ([]pd.Region, error) {
	found := map[int64]pd.Region{}
	peers := 0
	for _, ask := range []struct{ call, path string }{
		{callDownPeers, "/pd/api/v1/regions/check/down-peer"},
		{callPendingPeers, "/pd/api/v1/regions/check/pending-peer"},
		{callMissingPeers, "/pd/api/v1/regions/check/miss-peer"},
	} {
		answer := pdanswer.Regions{Bytes: maxUnhealthy, Most: maxRegions, Each: func(id int64, seen pd.Region) error {
			seen.Missing = ask.call == callMissingPeers
			before, known := found[id]
			if !known {
				peers += len(seen.Peers)
			}
			switch {
			case !known && len(found) == maxRegions:
				return errRegions
			case peers > maxPeers:
				return errPeers
			}
			found[id] = mergeRegions(before, seen)
			return nil
		}}
		err := c.request(ctx, ask.call, http.MethodGet, ask.path, &answer)
		switch {
		case errors.Is(err, pd.ErrNotBootstrapped):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("list unhealthy regions: %w", err)
		}
	}
	out := make([]pd.Region, 0, len(found))
	for _, id := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[id])
	}
	return out, nil
}

// mergeRegions adds what a second answer says of the first and its peers.
func mergeRegions(a, b pd.Region) pd.Region {
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

// RemovedStores implements Client.
func (c *httpClient) RemovedStores(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timing.answer)
	defer cancel()
	var tombstones pdanswer.Stores
	err := c.request(ctx, callTombstones, http.MethodGet, "/pd/api/v1/stores/check?state=tombstone", &tombstones)
	if err := ignoreStatus(err, http.StatusNotFound); err != nil { // of a PD before v6.1
		return nil, err
	}
	return pdanswer.RemovedStores(tombstones), nil
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
		return pd.Region{}, false, &pd.Unreachable{URL: c.address(), Cause: err}
	}
	if resp.StatusCode != http.StatusOK {
		return pd.Region{}, false, c.read(callStoreRegions, resp, nil)
	}
	defer func() { _ = resp.Body.Close() }() // what is left is not wanted
	code = strconv.Itoa(resp.StatusCode)
	found, ok := pd.Region{}, false
	answer := pdanswer.Regions{Bytes: maxStoreRegions, Most: math.MaxInt, Counted: true, Each: func(_ int64, next pd.Region) error {
		if ok = sought(next); ok {
			found = next
			return errFound
		}
		return nil
	}}
	err = c.decode(callStoreRegions, resp.Body, &answer)
	switch {
	case ok:
		return found, true, nil
	case err != nil && ctx.Err() != nil:
		return pd.Region{}, false, &pd.Unreachable{URL: c.address(), Cause: ctx.Err()}
	case err != nil:
		return pd.Region{}, false, err
	}
	return pd.Region{}, false, nil
}

var (
	errFound   = errors.New("found")
	errRegions = fmt.Errorf("it has more than %d regions", maxRegions)
	errPeers   = fmt.Errorf("its regions have more than %d peers", maxPeers)
)
