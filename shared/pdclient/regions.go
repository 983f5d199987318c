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

	pdhttp "github.com/tikv/pd/client/http"
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
		answer := regionsAnswer{bytes: maxUnhealthy, most: maxRegions, each: func(id int64, seen pd.Region) error {
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
			found[id] = merged(before, seen)
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
	found, ok := pd.Region{}, false
	answer := regionsAnswer{bytes: maxStoreRegions, most: math.MaxInt, counted: true, each: func(_ int64, next pd.Region) error {
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
		return pd.Region{}, false, &pd.Unreachable{URL: c.url, Cause: ctx.Err()}
	case err != nil:
		return pd.Region{}, false, err
	}
	return pd.Region{}, false, nil
}

// regionsAnswer is an answer of PD, an object with a list of regions and how many
// there are, which is read one region at a time.
type regionsAnswer struct {
	bytes int64
	most  int
	// counted refuses an answer that holds fewer regions than it says.
	counted bool
	// each is given one after the other. Its error ends the reading.
	each func(id int64, region pd.Region) error
}

func (a *regionsAnswer) total() int64 { return a.bytes }

func (a *regionsAnswer) read(r *reader) error {
	count, seen := -1, 0
	err := r.object(func(key string) error {
		switch key {
		case "count":
			return r.value(&count)
		case "regions":
			return r.list(a.most, key, func() error {
				var next pdhttp.RegionInfo
				if err := r.value(&next); err != nil {
					return err
				}
				if err := few(max(len(next.Peers), len(next.DownPeers), len(next.PendingPeers)), "peers"); err != nil {
					return err
				}
				seen++
				return a.each(next.ID, region(next))
			})
		}
		return r.skip()
	})
	if err == nil && a.counted && count != seen {
		err = fmt.Errorf("it has %d regions and says %d", seen, count)
	}
	return err
}

var (
	errFound   = errors.New("found")
	errRegions = fmt.Errorf("it has more than %d regions", maxRegions)
	errPeers   = fmt.Errorf("its regions have more than %d peers", maxPeers)
)
