package pdclient

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

const (
	// leaderProbe is after how long without an answer a member is asked whether it knows of a
	// leader. PD of v8.5 waits three seconds for one before it says that there is none.
	leaderProbe = 1500 * time.Millisecond
	// followerHandle is the header by which a member answers for itself.
	followerHandle = "PD-Allow-follower-handle"
	// noLeader is how older members say so.
	noLeader = "no leader"
)

// callLed makes a call, and gives it up when it takes long because the member waits for a leader.
func (c *httpClient) callLed(ctx context.Context, name string, call func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var leaderless atomic.Bool
	probe := time.AfterFunc(c.timing.probe, func() {
		if c.lacksLeader(ctx) {
			leaderless.Store(true)
			cancel()
		}
	})
	defer probe.Stop()
	err := call(ctx)
	if err != nil && leaderless.Load() {
		return &pd.Refused{Call: name, Status: http.StatusServiceUnavailable, Body: noLeader}
	}
	return err
}

// lacksLeader reports whether a member says that it knows of no leader.
func (c *httpClient) lacksLeader(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url+"/pd/api/v1/leader", http.NoBody)
	if err != nil {
		return false
	}
	req.Header.Set(followerHandle, "true")
	resp, err := c.http.Do(req)
	if err != nil {
		return false
	}
	defer func() { _ = resp.Body.Close() }() // what it says has been read
	var leader json.RawMessage
	return resp.StatusCode == http.StatusOK && c.decode(callMembers, resp.Body, &leader) == nil && string(leader) == "null"
}
