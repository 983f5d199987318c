package tikv

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	logbackuppb "github.com/pingcap/kvproto/pkg/logbackuppb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const timeout = time.Minute

// start runs a store on the directory and returns its configuration, and a
// function that ends it and returns what Run returned.
func start(t *testing.T, pd *pdserver.PD, dir string) (*Config, func() error) {
	t.Helper()
	cfg := &Config{
		Addr: loopback.Address(t), StatusAddr: loopback.Address(t), DataDir: dir, PD: []string{"http://" + pd.Addr},
		Labels: map[string]string{"zone": "z1"}, Heartbeat: 50 * time.Millisecond, RegionHeartbeat: 50 * time.Millisecond,
		Version: DefaultVersion, Document: map[string]any{"pd": "shown"},
	}
	cfg.AdvertiseAddr, cfg.AdvertiseStatusAddr = cfg.Addr, cfg.StatusAddr
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, slog.New(slog.DiscardHandler), cfg) }()
	ended := false
	end := func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		select {
		case err := <-done:
			return err
		case <-time.After(timeout):
			require.Fail(t, "the store did not end")
			return nil
		}
	}
	t.Cleanup(func() { _ = end() })
	return cfg, end
}

func TestKV17AStoreHasNoLogBackupsToFlush(t *testing.T) {
	pd := pdserver.Start(t)
	cfg, _ := start(t, pd, t.TempDir())
	connection, err := grpc.NewClient("passthrough:///"+cfg.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	defer func() { _ = connection.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	answer, err := logbackuppb.NewLogBackupClient(connection).FlushNow(ctx, &logbackuppb.FlushNowRequest{}, grpc.WaitForReady(true))
	require.NoError(t, err)
	assert.Empty(t, answer.GetResults())
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { require.NoError(t, res.Body.Close()) }()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}

func beatOf(t *testing.T, pd *pdserver.PD, store uint64) {
	t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case id := <-pd.Beats:
			if id == store {
				return
			}
		case <-deadline:
			require.Fail(t, "no heartbeat", "store %d", store)
		}
	}
}

func regionBeat(t *testing.T, pd *pdserver.PD, what string, is func(r *pdpb.RegionHeartbeatRequest) bool) {
	t.Helper()
	deadline := time.After(timeout)
	for {
		select {
		case r := <-pd.Regions:
			if is(r) {
				return
			}
		case <-deadline:
			require.Fail(t, "no such region heartbeat", what)
		}
	}
}

func TestAStoreRegistersKeepsItsIDAndIsServedOnItsStatusPort(t *testing.T) {
	pd, dir := pdserver.Start(t), t.TempDir()
	cfg, end := start(t, pd, dir)
	beatOf(t, pd, 1)
	store := pd.Store(1)
	require.NotNil(t, store)
	assert.Equal(t, cfg.Addr, store.GetAddress())
	assert.Equal(t, cfg.StatusAddr, store.GetStatusAddress())
	assert.Equal(t, "8.5.7", store.GetVersion())
	assert.Equal(t, []*metapb.StoreLabel{{Key: "zone", Value: "z1"}}, store.GetLabels())
	require.Eventually(t, func() bool { code, _ := get(t, "http://"+cfg.StatusAddr+"/status"); return code == 200 }, timeout, 10*time.Millisecond)
	code, _ := get(t, "http://"+cfg.StatusAddr+"/ready")
	assert.Equal(t, 200, code)
	_, text := get(t, "http://"+cfg.StatusAddr+"/metrics")
	assert.Contains(t, text, `tikv_raftstore_region_count{type="leader"} 33`, "PD's own number")
	_, text = get(t, "http://"+cfg.StatusAddr+"/config")
	assert.Contains(t, text, `"pd":"shown"`)
	code, _ = get(t, "http://"+cfg.StatusAddr+"/nosuch")
	assert.Equal(t, 404, code)

	require.NoError(t, end(), "a stop on request is no failure")
	cfg, end = start(t, pd, dir)
	require.Eventually(t, func() bool { return pd.Store(1).GetAddress() == cfg.Addr }, timeout, 10*time.Millisecond, "the same store at a new address")
	assert.Equal(t, 1, pd.Count())
	require.NoError(t, end())

	require.NoError(t, os.Remove(filepath.Join(dir, "store.json")))
	require.NoError(t, os.Remove(filepath.Join(dir, "regions.json")))
	start(t, pd, dir)
	require.Eventually(t, func() bool { return pd.Count() == 2 }, timeout, 10*time.Millisecond, "an emptied directory is an emptied store")
}

func TestAStoreOfAnotherClusterIsRefused(t *testing.T) {
	pd, dir := pdserver.Start(t), t.TempDir()
	_, end := start(t, pd, dir)
	beatOf(t, pd, 1)
	require.NoError(t, end())
	pd.SetClusterID(42)
	err := runToEnd(t, pd, dir)
	require.ErrorContains(t, err, "cluster ID mismatch")
	require.ErrorContains(t, err, "42")
}

// runToEnd runs a store that is expected to give up by itself.
func runToEnd(t *testing.T, pd *pdserver.PD, dir string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return Run(ctx, slog.New(slog.DiscardHandler), &Config{
		Addr: loopback.Address(t), AdvertiseAddr: "x:1", StatusAddr: loopback.Address(t), DataDir: dir, PD: []string{pd.Addr},
		Heartbeat: time.Second, RegionHeartbeat: time.Second,
	})
}

func TestATombstoneDoesNotStart(t *testing.T) {
	pd := pdserver.Start(t)
	pd.Refuse(1, pdpb.ErrorType_STORE_TOMBSTONE)
	require.ErrorContains(t, runToEnd(t, pd, t.TempDir()), "STORE_TOMBSTONE")
}

func TestTwoStoresOnOneDirectoryAreRefused(t *testing.T) {
	pd, dir := pdserver.Start(t), t.TempDir()
	start(t, pd, dir)
	beatOf(t, pd, 1)
	require.ErrorContains(t, runToEnd(t, pd, dir), "another instance")
}

func TestAStoreWaitsForPDAndOutlivesIt(t *testing.T) {
	pd := pdserver.Start(t)
	pd.SetDown(true)
	_, end := start(t, pd, t.TempDir())
	assert.Zero(t, pd.Count())
	pd.SetDown(false)
	beatOf(t, pd, 1)
	pd.SetDown(true)
	for len(pd.Beats) > 0 {
		<-pd.Beats
	}
	pd.SetDown(false)
	beatOf(t, pd, 1)
	require.NoError(t, end())
}

func TestRegionsFollowPDsOrders(t *testing.T) {
	pd := pdserver.Start(t)
	start(t, pd, t.TempDir())
	regionBeat(t, pd, "of the first region", func(r *pdpb.RegionHeartbeatRequest) bool { return r.GetLeader().GetStoreId() == 1 })
	start(t, pd, t.TempDir())
	var second uint64
	require.Eventually(t, func() bool {
		for id := uint64(2); id < 10; id++ {
			if pd.Store(id) != nil {
				second = id
			}
		}
		return second != 0
	}, timeout, 10*time.Millisecond)
	peer := &metapb.Peer{Id: 100, StoreId: second}

	pd.Orders <- &pdpb.RegionHeartbeatResponse{ChangePeer: &pdpb.ChangePeer{Peer: peer, ChangeType: eraftpb.ConfChangeType_AddLearnerNode}}
	regionBeat(t, pd, "with a learner", func(r *pdpb.RegionHeartbeatRequest) bool {
		return len(r.GetRegion().GetPeers()) == 2 && r.GetRegion().GetPeers()[1].GetRole() == metapb.PeerRole_Learner
	})
	pd.Orders <- &pdpb.RegionHeartbeatResponse{ChangePeer: &pdpb.ChangePeer{Peer: peer, ChangeType: eraftpb.ConfChangeType_AddNode}}
	regionBeat(t, pd, "with a voter", func(r *pdpb.RegionHeartbeatRequest) bool {
		return len(r.GetRegion().GetPeers()) == 2 && r.GetRegion().GetPeers()[1].GetRole() == metapb.PeerRole_Voter &&
			r.GetRegion().GetRegionEpoch().GetConfVer() == 3
	})
	pd.Orders <- &pdpb.RegionHeartbeatResponse{TransferLeader: &pdpb.TransferLeader{Peer: peer}}
	regionBeat(t, pd, "from the new leader", func(r *pdpb.RegionHeartbeatRequest) bool { return r.GetLeader().GetStoreId() == second })
}
