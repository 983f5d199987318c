package service

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
)

// alone is a store without others, and without a PD that answers.
type alone struct{ raftstore.PD }

func (alone) Send(*raft_serverpb.RaftMessage)        {}
func (alone) Heartbeat(*pdpb.RegionHeartbeatRequest) {}

// start makes the service of a store that has the only region, and the context that
// a client names the region with.
func start(t *testing.T) (*Server, *kvrpcpb.Context) {
	t.Helper()
	e, err := engine.Open(t.TempDir())
	require.NoError(t, err)
	region := &metapb.Region{Id: 2, RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1}, Peers: []*metapb.Peer{{Id: 3, StoreId: 1}}}
	b := e.NewBatch()
	require.NoError(t, raftstore.AddFirstRegion(b, region))
	require.NoError(t, b.Commit())
	store, err := raftstore.New(1, raftstore.Config{
		Tick: 10 * time.Millisecond, ElectionTicks: 10, HeartbeatTicks: 2, RegionHeartbeat: time.Hour, MaxDown: time.Hour,
		MaxLeaderMissing: time.Hour, SplitSize: 1 << 30, SplitCheck: time.Hour, KeepEntries: 100,
	}, e, raftstore.Surroundings{Transport: alone{}, PD: alone{}, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
		require.NoError(t, e.Close())
	})
	s := New(&metapb.Store{Id: 1}, store, e)
	c := &kvrpcpb.Context{RegionId: 2, RegionEpoch: region.RegionEpoch, Peer: region.Peers[0]}
	require.Eventually(t, func() bool {
		res, err := s.KvGet(t.Context(), &kvrpcpb.GetRequest{Context: c, Key: []byte("t"), Version: 1})
		return err == nil && res.RegionError == nil
	}, time.Minute, 10*time.Millisecond)
	return s, c
}

func TestACommitThatIsAskedForAgainSucceedsAgain(t *testing.T) {
	for name, op := range map[string]kvrpcpb.Op{"of a change": kvrpcpb.Op_Put, "of a lock alone": kvrpcpb.Op_Lock} {
		t.Run(name, func(t *testing.T) {
			s, c := start(t)
			key := []byte("tkey")
			prewritten, err := s.KvPrewrite(t.Context(), &kvrpcpb.PrewriteRequest{
				Context: c, Mutations: []*kvrpcpb.Mutation{{Op: op, Key: key, Value: []byte("value")}}, PrimaryLock: key,
				StartVersion: 10, LockTtl: 3000, UseAsyncCommit: true, TryOnePc: true,
			})
			require.NoError(t, err)
			require.Empty(t, prewritten.Errors)
			require.Nil(t, prewritten.RegionError)
			assert.Zero(t, prewritten.MinCommitTs+prewritten.OnePcCommitTs, "the client must commit in two phases")
			got, err := s.KvGet(t.Context(), &kvrpcpb.GetRequest{Context: c, Key: key, Version: 15})
			require.NoError(t, err)
			assert.Equal(t, op == kvrpcpb.Op_Put, got.GetError().GetLocked() != nil)
			for range 2 {
				committed, err := s.KvCommit(t.Context(), &kvrpcpb.CommitRequest{Context: c, Keys: [][]byte{key}, StartVersion: 10, CommitVersion: 20})
				require.NoError(t, err)
				require.Nil(t, committed.Error)
				require.Nil(t, committed.RegionError)
			}
			rolledBack, err := s.KvBatchRollback(t.Context(), &kvrpcpb.BatchRollbackRequest{Context: c, Keys: [][]byte{key}, StartVersion: 10})
			require.NoError(t, err)
			require.NotNil(t, rolledBack.Error, "what is committed stays")
			status, err := s.KvCheckTxnStatus(t.Context(), &kvrpcpb.CheckTxnStatusRequest{Context: c, PrimaryKey: key, LockTs: 10, CallerStartTs: 30, CurrentTs: 30})
			require.NoError(t, err)
			assert.Equal(t, uint64(20), status.CommitVersion)
		})
	}
}

func TestARequestForAnotherEpochIsRefused(t *testing.T) {
	s, c := start(t)
	c.RegionEpoch = &metapb.RegionEpoch{ConfVer: 1, Version: 7}
	res, err := s.KvGet(t.Context(), &kvrpcpb.GetRequest{Context: c, Key: []byte("t"), Version: 1})
	require.NoError(t, err)
	assert.NotNil(t, res.GetRegionError().GetEpochNotMatch())
	c.RegionEpoch, c.RegionId = nil, 77
	res, err = s.KvGet(t.Context(), &kvrpcpb.GetRequest{Context: c, Key: []byte("t"), Version: 1})
	require.NoError(t, err)
	assert.NotNil(t, res.GetRegionError().GetRegionNotFound())
}

func TestARangeIsDestroyed(t *testing.T) {
	s, c := start(t)
	put := func(key string, ts uint64) {
		t.Helper()
		_, err := s.KvPrewrite(t.Context(), &kvrpcpb.PrewriteRequest{
			Context: c, Mutations: []*kvrpcpb.Mutation{{Op: kvrpcpb.Op_Put, Key: []byte(key), Value: []byte("v")}}, PrimaryLock: []byte(key), StartVersion: ts,
		})
		require.NoError(t, err)
		res, err := s.KvCommit(t.Context(), &kvrpcpb.CommitRequest{Context: c, Keys: [][]byte{[]byte(key)}, StartVersion: ts, CommitVersion: ts + 1})
		require.NoError(t, err)
		require.Nil(t, res.Error)
	}
	for _, key := range []string{"ta", "tb", "tc"} {
		put(key, 10)
	}
	res, err := s.UnsafeDestroyRange(t.Context(), &kvrpcpb.UnsafeDestroyRangeRequest{StartKey: []byte("tb"), EndKey: []byte("tc")})
	require.NoError(t, err)
	require.Empty(t, res.Error)
	keys := func() (out []string) {
		res, err := s.KvScan(t.Context(), &kvrpcpb.ScanRequest{Context: c, StartKey: []byte("t"), Limit: 10, Version: 100})
		require.NoError(t, err)
		for _, pair := range res.Pairs {
			out = append(out, string(pair.Key))
		}
		return out
	}
	assert.Equal(t, []string{"ta", "tc"}, keys())
	put("tb", 50)
	assert.Equal(t, []string{"ta", "tb", "tc"}, keys())
}
