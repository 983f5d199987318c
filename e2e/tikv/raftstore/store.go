// Package raftstore keeps the regions of one store: one Raft group for each, all
// driven by one goroutine. It replicates commands, answers whether and from when
// on a read may be done here, splits regions, changes their peers as PD orders,
// and hands regions to other stores as snapshots.
package raftstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

// Config is how regions behave. Names and meanings are TiKV's.
type Config struct {
	Tick             time.Duration // raft-base-tick-interval
	ElectionTicks    int           // raft-election-timeout-ticks
	HeartbeatTicks   int           // raft-heartbeat-ticks
	RegionHeartbeat  time.Duration // pd-heartbeat-tick-interval
	MaxDown          time.Duration // max-peer-down-duration
	MaxLeaderMissing time.Duration // after which a peer asks PD whether it still exists
	SplitSize        int           // region-split-size
	SplitCheck       time.Duration // split-region-check-tick-interval
	KeepEntries      int           // raft-log-gc-count-limit: of the log, for followers that lag
}

// Transport brings messages to other stores. Send must not wait; what it can't
// bring it may drop. The fate of a snapshot is told with Store.SnapshotSent.
type Transport interface {
	Send(m *raft_serverpb.RaftMessage)
}

// PD is what regions need of the placement driver.
type PD interface {
	// Heartbeat hands over a heartbeat and does not wait.
	Heartbeat(beat *pdpb.RegionHeartbeatRequest)
	AskBatchSplit(ctx context.Context, region *metapb.Region, count int) ([]*pdpb.SplitID, error)
	ReportBatchSplit(ctx context.Context, regions []*metapb.Region) error
	// RegionByID is nil for a region that PD doesn't know.
	RegionByID(ctx context.Context, id uint64) (*metapb.Region, error)
}

// Store is the regions of one store.
type Store struct {
	id        uint64
	config    Config
	log       *slog.Logger
	engine    *engine.Engine
	transport Transport
	pd        PD

	events  chan func()
	stopped chan struct{}
	work    sync.WaitGroup // goroutines that Run must outlive
	ctx     context.Context

	// The rest belongs to the goroutine of Run.
	peers map[uint64]*peer // by region
	// votes keeps the last vote request for a region that a split is going to
	// make here, so that its election need not wait for another one.
	votes    map[uint64]*raft_serverpb.RaftMessage
	sequence uint64
	batch    *engine.Batch
	failed   error
}

// eventLimit is how many events may wait, drainLimit how many are handled before
// what they led to is written.
const (
	eventLimit = 4096
	drainLimit = 512
)

// Surroundings are what a store talks to.
type Surroundings struct {
	Transport Transport
	PD        PD
	Log       *slog.Logger
}

// New makes a store of what the engine has. Run must be called for it to live.
func New(id uint64, config Config, e *engine.Engine, around Surroundings) (*Store, error) {
	s := &Store{
		id: id, config: config, log: around.Log, engine: e, transport: around.Transport, pd: around.PD,
		events: make(chan func(), eventLimit), stopped: make(chan struct{}),
		peers: map[uint64]*peer{}, votes: map[uint64]*raft_serverpb.RaftMessage{}, batch: e.NewBatch(),
		// Commands of this process are told apart from those of the one before.
		sequence: uint64(time.Now().UnixNano()),
	}
	err := e.Metas(func(value []byte) error {
		var state raft_serverpb.RegionLocalState
		if err := state.Unmarshal(value); err != nil {
			return fmt.Errorf("read a region: %w", err)
		}
		if state.State == raft_serverpb.PeerState_Tombstone {
			return nil
		}
		p, err := s.loadPeer(state.Region)
		if err != nil {
			return err
		}
		s.peers[p.regionID] = p
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Run drives the regions until ctx ends. It returns an error when the store must
// not go on.
func (s *Store) Run(ctx context.Context) error {
	s.ctx = ctx
	defer s.work.Wait()
	defer close(s.stopped)
	tick := time.NewTicker(s.config.Tick)
	defer tick.Stop()
	for _, p := range s.peers {
		if p.isOnlyPeer() {
			p.campaign()
		}
	}
	for s.failed == nil {
		select {
		case <-ctx.Done():
			for _, p := range s.peers {
				p.refuseAll(notLeader(p.regionID, nil))
			}
			return nil
		case <-tick.C:
			for _, p := range s.peers {
				p.tick()
			}
		case event := <-s.events:
			event()
			s.drain()
		}
		if s.failed == nil {
			s.failed = s.advance()
		}
	}
	return s.failed
}

func (s *Store) drain() {
	for range drainLimit {
		select {
		case event := <-s.events:
			event()
		default:
			return
		}
	}
}

// errStopped says that the store does not run any more.
var errStopped = errors.New("the store has stopped")

// tryPost hands a function to the goroutine of Run; false when that has ended.
func (s *Store) tryPost(event func()) bool {
	select {
	case s.events <- event:
		return true
	case <-s.stopped:
		return false
	}
}

// background runs something that may wait, outside of the goroutine of Run.
func (s *Store) background(do func(ctx context.Context)) {
	s.work.Go(func() { do(s.ctx) })
}

// advance writes, sends and applies until no region has anything left to do.
func (s *Store) advance() error {
	for {
		var ready []*peer
		for _, p := range s.peers {
			p.startReads()
			if p.raft.HasReady() {
				ready = append(ready, p)
			}
		}
		if len(ready) == 0 {
			return nil
		}
		for _, p := range ready {
			p.ready = p.raft.Ready()
			if err := p.stage(); err != nil {
				return err
			}
		}
		// Everything is written before a message says so.
		if err := s.batch.Commit(); err != nil {
			return err
		}
		for _, p := range ready {
			p.send()
		}
		var answers []func()
		for _, p := range ready {
			more, err := p.apply()
			if err != nil {
				return err
			}
			answers = append(answers, more...)
		}
		if err := s.batch.Commit(); err != nil {
			return err
		}
		for _, answer := range answers {
			answer()
		}
		for _, p := range ready {
			p.finish()
		}
	}
}

// Receive takes a message from another store.
func (s *Store) Receive(m *raft_serverpb.RaftMessage) {
	s.tryPost(func() { s.receive(m) })
}

func (s *Store) receive(m *raft_serverpb.RaftMessage) {
	if m.GetToPeer().GetStoreId() != s.id {
		return
	}
	p := s.peers[m.RegionId]
	if p != nil && m.ToPeer.Id < p.id {
		return // for a peer that was here before
	}
	if m.IsTombstone {
		if p != nil && p.id == m.ToPeer.Id && m.RegionEpoch.GetConfVer() > p.region.GetRegionEpoch().GetConfVer() {
			s.log.Info("others removed this peer", "region", p.regionID, "peer", p.id)
			s.remove(p)
		}
		return
	}
	if p != nil && m.ToPeer.Id > p.id {
		// Another peer of the region was given to this store, so the one that is here was removed.
		s.log.Info("this peer has a successor", "region", p.regionID, "peer", p.id, "successor", m.ToPeer.Id)
		s.remove(p)
		p = nil
	}
	if p == nil {
		var err error
		if p, err = s.makePeer(m); err != nil {
			s.failed = err
			return
		}
		if p == nil {
			return
		}
	}
	if p.isStranger(m) {
		s.transport.Send(&raft_serverpb.RaftMessage{
			RegionId: m.RegionId, FromPeer: m.ToPeer, ToPeer: m.FromPeer, RegionEpoch: p.region.RegionEpoch, IsTombstone: true,
		})
		return
	}
	p.step(m)
}

// makePeer makes the peer that a message is for, empty until a snapshot comes. It
// is nil when there must not be one.
func (s *Store) makePeer(m *raft_serverpb.RaftMessage) (*peer, error) {
	message, err := unpackMessage(m)
	if err != nil || !mayCreatePeer(message.Type) {
		return nil, nil
	}
	value, err := s.engine.Get(engine.RaftKey(m.RegionId, engine.Meta))
	if err != nil {
		return nil, err
	}
	if value != nil {
		var state raft_serverpb.RegionLocalState
		if err := state.Unmarshal(value); err != nil {
			return nil, fmt.Errorf("read region %d: %w", m.RegionId, err)
		}
		for _, removed := range state.RemovedRecords {
			if m.ToPeer.Id <= removed.Id {
				return nil, nil
			}
		}
	}
	if other := s.overlapping(m.RegionId, m.StartKey, m.EndKey); other != nil {
		// A split that was not yet applied here will make it.
		if isVoteRequest(message.Type) {
			s.votes[m.RegionId] = m
		}
		return nil, nil
	}
	p, err := s.emptyPeer(m.RegionId, m.ToPeer.Id)
	if err != nil {
		return nil, err
	}
	s.peers[m.RegionId] = p
	return p, nil
}

// overlapping finds another region here that has a part of a range.
func (s *Store) overlapping(region uint64, start, end []byte) *peer {
	for _, p := range s.peers {
		if p.regionID != region && p.overlaps(start, end) {
			return p
		}
	}
	return nil
}

// overlaps says that this region, or what it is about to become, has a part of a range.
func (p *peer) overlaps(start, end []byte) bool {
	for _, r := range []*metapb.Region{p.region, p.incoming} {
		if len(r.GetPeers()) > 0 && (len(end) == 0 || bytes.Compare(r.StartKey, end) < 0) &&
			(len(r.EndKey) == 0 || bytes.Compare(start, r.EndKey) < 0) {
			return true
		}
	}
	return false
}

// remove takes a peer and its data from this store, for good.
func (s *Store) remove(p *peer) {
	if err := p.destroy(); err != nil {
		s.failed = err
		return
	}
	if err := s.batch.Commit(); err != nil {
		s.failed = err
	}
}

// Unreachable tells that a message did not reach a peer.
func (s *Store) Unreachable(region, to uint64) {
	s.tryPost(func() {
		if p := s.peers[region]; p != nil {
			p.raft.ReportUnreachable(to)
		}
	})
}
