package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/badger"
	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/raft_cmdpb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

const timeout = 60 * time.Second

var quickly = Config{
	Tick: 10 * time.Millisecond, ElectionTicks: 10, HeartbeatTicks: 2, RegionHeartbeat: 50 * time.Millisecond, MaxDown: time.Minute,
	MaxLeaderMissing: time.Second, SplitSize: 1 << 20, SplitCheck: time.Second, KeepEntries: 64,
}

// cluster is stores in one process, with a network that can be broken and a PD that
// gives IDs and remembers heartbeats.
type cluster struct {
	t     *testing.T
	dir   string
	nodes map[uint64]*node

	mu      sync.Mutex
	drop    float64                   // part of the messages that are lost
	cut     map[uint64]bool           // stores that nothing comes from or goes to
	regions map[uint64]*metapb.Region // as last heard of
	leaders map[uint64]*metapb.Peer
	id      uint64
}

type node struct {
	*cluster
	id     uint64
	engine *engine.Engine
	store  *Store
	stop   context.CancelFunc
	ended  chan error
	latch  sync.Mutex // lets one writer at a time decide here
	queue  chan *raft_serverpb.RaftMessage
}

func newCluster(t *testing.T, size int) *cluster {
	c := &cluster{
		t: t, dir: t.TempDir(), nodes: map[uint64]*node{}, cut: map[uint64]bool{},
		regions: map[uint64]*metapb.Region{}, leaders: map[uint64]*metapb.Peer{}, id: 1000,
	}
	for id := uint64(1); id <= uint64(size); id++ {
		n := &node{cluster: c, id: id, queue: make(chan *raft_serverpb.RaftMessage, 4096)}
		c.nodes[id] = n
		n.open()
		if id == 1 {
			b := n.engine.NewBatch()
			require.NoError(t, AddFirstRegion(b, &metapb.Region{
				Id: 1, RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1}, Peers: []*metapb.Peer{{Id: 101, StoreId: 1}},
			}))
			require.NoError(t, b.Commit())
		}
		n.start()
		go n.deliver(t.Context())
	}
	t.Cleanup(func() {
		for _, n := range c.nodes {
			n.end()
		}
	})
	return c
}

func (n *node) open() {
	var err error
	n.engine, err = engine.Open(filepath.Join(n.dir, fmt.Sprint(n.id)))
	require.NoError(n.t, err)
}

func (n *node) start() {
	out := io.Discard
	if testing.Verbose() && os.Getenv("RAFTSTORE_LOG") != "" {
		out = os.Stderr
	}
	log := slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})).With("store", n.id)
	store, err := New(n.id, quickly, n.engine, Surroundings{Transport: n, PD: n, Log: log})
	require.NoError(n.t, err)
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	n.ended = make(chan error, 1)
	n.mu.Lock()
	n.store = store
	n.mu.Unlock()
	go func() { n.ended <- store.Run(ctx) }()
}

func (n *node) end() {
	n.stop()
	require.NoError(n.t, <-n.ended)
	require.NoError(n.t, n.engine.Close())
}

// restart ends the store and brings it back from its directory.
func (n *node) restart() {
	n.latch.Lock() // no reader reads from an engine that is closed
	defer n.latch.Unlock()
	n.end()
	n.open()
	n.start()
}

func (n *node) current() *Store {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.store
}

// Send implements Transport.
func (n *node) Send(m *raft_serverpb.RaftMessage) {
	to := n.nodes[m.ToPeer.StoreId]
	n.mu.Lock()
	lost := n.cut[n.id] || n.cut[m.ToPeer.StoreId] || rand.Float64() < n.drop
	store := n.store
	n.mu.Unlock()
	if to == nil || lost {
		if IsSnapshot(m) {
			go store.SnapshotSent(m.RegionId, m.ToPeer.Id, false)
		}
		return
	}
	// Through bytes, so that nothing is shared.
	data, err := m.Marshal()
	if err != nil {
		panic(err)
	}
	other := &raft_serverpb.RaftMessage{}
	if err := other.Unmarshal(data); err != nil {
		panic(err)
	}
	select {
	case to.queue <- other:
		if IsSnapshot(m) {
			go store.SnapshotSent(m.RegionId, m.ToPeer.Id, true)
		}
	default:
		if IsSnapshot(m) {
			go store.SnapshotSent(m.RegionId, m.ToPeer.Id, false)
		}
	}
}

func (n *node) deliver(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case m := <-n.queue:
			n.current().Receive(m)
		}
	}
}

// Heartbeat implements PD.
func (n *node) Heartbeat(beat *pdpb.RegionHeartbeatRequest) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.regions[beat.Region.Id].GetRegionEpoch()
	now := beat.Region.RegionEpoch
	if known.GetVersion() > now.Version || known.GetConfVer() > now.ConfVer {
		return
	}
	n.regions[beat.Region.Id], n.leaders[beat.Region.Id] = beat.Region, beat.Leader
}

// AskBatchSplit implements PD.
func (n *node) AskBatchSplit(_ context.Context, region *metapb.Region, count int) (out []*pdpb.SplitID, _ error) {
	for range count {
		s := &pdpb.SplitID{NewRegionId: n.newID()}
		for range region.Peers {
			s.NewPeerIds = append(s.NewPeerIds, n.newID())
		}
		out = append(out, s)
	}
	return out, nil
}

// ReportBatchSplit implements PD.
func (n *node) ReportBatchSplit(context.Context, []*metapb.Region) error { return nil }

// RegionByID implements PD.
func (n *node) RegionByID(_ context.Context, id uint64) (*metapb.Region, error) {
	return n.region(id), nil
}

func (c *cluster) newID() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.id++
	return c.id
}

func (c *cluster) region(id uint64) *metapb.Region {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.regions[id]
}

// regionOf finds the region that a user's key is in, as PD knows it.
func (c *cluster) regionOf(key string) (*metapb.Region, *metapb.Peer) {
	encoded := engine.EncodeKey([]byte(key))
	c.mu.Lock()
	defer c.mu.Unlock()
	var best *metapb.Region
	for _, r := range c.regions {
		if slices.Compare(r.StartKey, encoded) <= 0 && (len(r.EndKey) == 0 || slices.Compare(encoded, r.EndKey) < 0) &&
			best.GetRegionEpoch().GetVersion() < r.RegionEpoch.Version {
			best = r
		}
	}
	return best, c.leaders[best.GetId()]
}

func (c *cluster) network(drop float64, cut ...uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop, c.cut = drop, map[uint64]bool{}
	for _, id := range cut {
		c.cut[id] = true
	}
}

// order gives an order to a region's leader again and again until something holds.
func (c *cluster) order(region uint64, what string, order *pdpb.RegionHeartbeatResponse, until func(r *metapb.Region, leader *metapb.Peer) bool) {
	c.t.Helper()
	order.RegionId = region
	c.until(what, func() bool {
		c.mu.Lock()
		r, leader := c.regions[region], c.leaders[region]
		c.mu.Unlock()
		if r != nil && until(r, leader) {
			return true
		}
		if leader != nil {
			c.nodes[leader.StoreId].current().Order(order)
		}
		return false
	})
}

func (c *cluster) until(what string, is func() bool) {
	c.t.Helper()
	require.Eventually(c.t, is, timeout, 20*time.Millisecond, what)
}

// write sets a key to what next makes of its value, where the region's leader is.
func (c *cluster) write(key string, next func(old string) string) (string, error) {
	region, leader := c.regionOf(key)
	if region == nil || leader == nil {
		return "", fmt.Errorf("no leader is known")
	}
	n := c.nodes[leader.StoreId]
	n.latch.Lock()
	defer n.latch.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	store := n.current()
	ticket, refused := store.Admit(ctx, &kvrpcpb.Context{RegionId: region.Id, RegionEpoch: region.RegionEpoch, Peer: leader})
	if refused != nil {
		return "", refusal(refused)
	}
	old, ts, err := n.read(key)
	if err != nil {
		return "", err
	}
	if refused := ticket.Check(); refused != nil {
		return "", refusal(refused)
	}
	value := next(old)
	refused = store.Write(ticket, []*raft_cmdpb.Request{{CmdType: raft_cmdpb.CmdType_Put, Put: &raft_cmdpb.PutRequest{
		Cf: engine.DataCF, Key: engine.VersionedKey([]byte(key), ts+1), Value: engine.DataValue(ts, []byte(value)),
	}}})
	if refused != nil {
		return "", refusal(refused)
	}
	return value, nil
}

func refusal(e *errorpb.Error) error { return fmt.Errorf("refused: %s", e.Message) }

// read is what this store itself has of a key.
func (n *node) read(key string) (value string, ts uint64, err error) {
	txn := n.engine.Read.NewTransaction(false)
	defer txn.Discard()
	txn.SetReadTS(1 << 60)
	item, err := txn.Get([]byte(key))
	if errors.Is(err, badger.ErrKeyNotFound) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	raw, err := item.ValueCopy(nil)
	return string(raw), item.Version(), err
}

// must writes until it succeeds.
func (c *cluster) must(key, value string) {
	c.t.Helper()
	c.until("write "+key, func() bool {
		_, err := c.write(key, func(string) string { return value })
		return err == nil
	})
}

// agree waits until all replicas of all regions have applied the same and are equal.
func (c *cluster) agree() map[uint64]Report {
	c.t.Helper()
	var why string
	var out map[uint64]Report
	defer func() {
		if c.t.Failed() {
			c.t.Log("last:", why)
		}
	}()
	c.until("all replicas are equal", func() bool {
		out, why = map[uint64]Report{}, ""
		replicas := map[uint64]int{}
		for _, n := range c.nodes {
			reports, err := n.current().Reports(context.Background(), true)
			if err != nil {
				why = err.Error()
				return false
			}
			for _, r := range reports {
				if len(r.Region.Peers) == 0 {
					why = fmt.Sprintf("store %d: region %d is empty", n.id, r.Region.Id)
					return false
				}
				replicas[r.Region.Id]++
				first, seen := out[r.Region.Id]
				if seen && (first.Applied != r.Applied || first.Region.RegionEpoch.String() != r.Region.RegionEpoch.String()) {
					why = fmt.Sprintf("store %d: %+v, another: %+v", n.id, r, first)
					return false
				}
				require.False(c.t, seen && first.Checksum != r.Checksum, "store %d: %+v, another: %+v", n.id, r, first)
				out[r.Region.Id] = r
			}
		}
		for id, r := range out {
			if replicas[id] != len(r.Region.Peers) {
				why = fmt.Sprintf("region %d has %d replicas of %d", id, replicas[id], len(r.Region.Peers))
				return false
			}
		}
		return true
	})
	return out
}
