package raftstore

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

// peer is one region's replica on this store. It belongs to the goroutine of Run,
// but for generation.
type peer struct {
	store    *Store
	log      *logStore
	raft     *raft.RawNode
	regionID uint64
	id       uint64
	// region is replaced, never changed. It has no peers until the first snapshot.
	region *metapb.Region
	// generation changes when data that a reader may be looking at goes away or
	// belongs to another region from then on.
	generation atomic.Uint64
	gone       bool

	applied     uint64
	appliedTerm uint64 // of the last entry that was applied since the start
	truncated   raft_serverpb.RaftTruncatedState
	size        int // bytes of data, about

	ready raft.Ready
	term  uint64 // with lead and state: as last looked at
	lead  uint64
	state raft.StateType

	proposals map[uint64]proposal // by the sequence in the command
	reads     reads
	snapshot  outgoing
	incoming  *metapb.Region          // of a snapshot that was received and not yet applied
	others    map[uint64]*metapb.Peer // who sent messages, for answers to peers that are not in region
	heard     map[uint64]time.Time    // when a peer was last heard of
	leaderAt  time.Time               // when the leader was last heard of
	askedPD   time.Time
	beats     beats
	splitting bool
	checkedAt time.Time // when the size was last looked at
}

type proposal struct {
	term   uint64
	answer func(result, *errorpb.Error)
}

// result is what became of a command.
type result struct{ regions []*metapb.Region }

const maxMessage = 1 << 20

func (s *Store) newPeer(region *metapb.Region, id uint64) *peer {
	now := time.Now()
	return &peer{
		store: s, regionID: region.Id, id: id, region: region, proposals: map[uint64]proposal{},
		reads: newReads(), others: map[uint64]*metapb.Peer{}, heard: map[uint64]time.Time{}, leaderAt: now, askedPD: now, checkedAt: now,
	}
}

func (p *peer) start() (err error) {
	p.raft, err = raft.NewRawNode(&raft.Config{
		ID: p.id, ElectionTick: p.store.config.ElectionTicks, HeartbeatTick: p.store.config.HeartbeatTicks,
		Storage: p.log, Applied: p.applied, MaxSizePerMsg: maxMessage, MaxInflightMsgs: 128,
		CheckQuorum: true, PreVote: true, ReadOnlyOption: raft.ReadOnlySafe, DisableProposalForwarding: true,
		StepDownOnRemoval: true, Logger: quiet{p.store.log, p.regionID},
	})
	if err != nil {
		return fmt.Errorf("start region %d: %w", p.regionID, err)
	}
	p.look()
	return nil
}

// loadPeer brings back a peer that the engine has.
func (s *Store) loadPeer(region *metapb.Region) (*peer, error) {
	self := peerOn(region, s.id)
	if self == nil {
		return nil, fmt.Errorf("load region %d: it has no peer on store %d", region.Id, s.id)
	}
	p := s.newPeer(region, self.Id)
	hard, err := s.loadHard(region.Id)
	if err != nil {
		return nil, err
	}
	value, err := s.engine.Get(engine.RaftKey(region.Id, engine.Apply))
	if err != nil {
		return nil, err
	}
	var state raft_serverpb.RaftApplyState
	if err := state.Unmarshal(value); err != nil {
		return nil, fmt.Errorf("load region %d: %w", region.Id, err)
	}
	p.applied, p.truncated = state.AppliedIndex, *state.GetTruncatedState()
	if p.log, err = newLog(p, hard, p.truncated.Index, p.truncated.Term); err != nil {
		return nil, err
	}
	if err := p.log.load(s.engine); err != nil {
		return nil, err
	}
	if err := p.measure(); err != nil {
		return nil, err
	}
	return p, p.start()
}

func (s *Store) loadHard(region uint64) (raftpb.HardState, error) {
	var hard raftpb.HardState
	value, err := s.engine.Get(engine.RaftKey(region, engine.HardState))
	if err != nil {
		return hard, err
	}
	if err := hard.Unmarshal(value); err != nil {
		return hard, fmt.Errorf("load region %d: %w", region, err)
	}
	return hard, nil
}

// emptyPeer makes a peer that waits for a snapshot. What an empty peer of the
// region voted for before a restart is kept.
func (s *Store) emptyPeer(region, id uint64) (*peer, error) {
	p := s.newPeer(&metapb.Region{Id: region}, id)
	hard, err := s.loadHard(region)
	if err != nil {
		return nil, err
	}
	if p.log, err = newLog(p, hard, 0, 0); err != nil {
		return nil, err
	}
	s.log.Info("made a peer", "region", region, "peer", id)
	return p, p.start()
}

func (p *peer) isInitialized() bool { return len(p.region.Peers) > 0 }

func (p *peer) self() *metapb.Peer {
	if self := peerByID(p.region, p.id); self != nil {
		return self
	}
	return &metapb.Peer{Id: p.id, StoreId: p.store.id}
}

func (p *peer) isLeader() bool { return p.state == raft.StateLeader }

// leader is the leader's peer; nil when there is none that is known.
func (p *peer) leader() *metapb.Peer {
	if p.lead == raft.None {
		return nil
	}
	return peerByID(p.region, p.lead)
}

func (p *peer) isOnlyPeer() bool {
	return len(p.region.Peers) == 1 && p.region.Peers[0].Id == p.id
}

func (p *peer) campaign() {
	if err := p.raft.Campaign(); err != nil {
		p.store.log.Debug("can't campaign", "region", p.regionID, "error", err)
	}
}

// isStranger says that the sender of a message was removed from the region.
func (p *peer) isStranger(m *raft_serverpb.RaftMessage) bool {
	sender := m.RegionEpoch.GetConfVer()
	return p.isInitialized() && sender > 0 && sender < p.region.RegionEpoch.ConfVer && peerByID(p.region, m.FromPeer.GetId()) == nil
}

func (p *peer) step(m *raft_serverpb.RaftMessage) {
	message, err := unpackMessage(m)
	if err != nil {
		p.store.log.Warn("a message is dropped", "region", p.regionID, "error", err)
		return
	}
	p.others[m.FromPeer.Id] = m.FromPeer
	p.heard[m.FromPeer.Id] = time.Now()
	if message.Type == raftpb.MsgSnap {
		region, _, err := openSnapshot(message.Snapshot.Data)
		if err != nil {
			p.store.log.Warn("a snapshot is dropped", "region", p.regionID, "error", err)
			return
		}
		if p.store.overlapping(p.regionID, region.StartKey, region.EndKey) != nil {
			p.store.log.Info("a snapshot must wait: another region here still has a part of its range", "region", p.regionID)
			return
		}
		p.incoming = region
	}
	if err := p.raft.Step(message); err != nil {
		p.store.log.Debug("a message is refused", "region", p.regionID, "type", message.Type, "error", err)
	}
	if message.Type == raftpb.MsgAppResp {
		p.caughtUp()
	}
}

// stage puts what must last before the next messages into the store's batch.
func (p *peer) stage() error {
	b := p.store.batch
	if !raft.IsEmptySnap(p.ready.Snapshot) {
		if err := p.stageSnapshot(); err != nil {
			return err
		}
	}
	p.incoming = nil
	if err := p.log.stage(b, p.ready.Entries); err != nil {
		return err
	}
	if raft.IsEmptyHardState(p.ready.HardState) {
		return nil
	}
	if err := p.log.SetHardState(p.ready.HardState); err != nil {
		return fmt.Errorf("save the state of region %d: %w", p.regionID, err)
	}
	return p.saveHard(p.ready.HardState)
}

func (p *peer) saveHard(hard raftpb.HardState) error {
	value, err := hard.Marshal()
	if err != nil {
		return fmt.Errorf("save the state of region %d: %w", p.regionID, err)
	}
	return p.store.batch.Set(engine.RaftKey(p.regionID, engine.HardState), value)
}

func (p *peer) saveApplied() error {
	truncated := p.truncated
	value, err := (&raft_serverpb.RaftApplyState{AppliedIndex: p.applied, TruncatedState: &truncated}).Marshal()
	if err != nil {
		return fmt.Errorf("save the state of region %d: %w", p.regionID, err)
	}
	return p.store.batch.Set(engine.RaftKey(p.regionID, engine.Apply), value)
}

func (p *peer) saveRegion() error {
	value, err := (&raft_serverpb.RegionLocalState{State: raft_serverpb.PeerState_Normal, Region: p.region}).Marshal()
	if err != nil {
		return fmt.Errorf("save the state of region %d: %w", p.regionID, err)
	}
	return p.store.batch.Set(engine.RaftKey(p.regionID, engine.Meta), value)
}

// destroy stages the end of this peer: its data goes, and that it was here stays.
func (p *peer) destroy() error {
	p.gone = true
	p.generation.Add(1)
	p.refuseAll(regionNotFound(p.regionID))
	delete(p.store.peers, p.regionID)
	b := p.store.batch
	if p.isInitialized() {
		if err := b.Remove(p.region.StartKey, p.region.EndKey); err != nil {
			return err
		}
	}
	if err := b.Unset(engine.RaftKey(p.regionID, 0), engine.RaftKey(p.regionID, ^byte(0))); err != nil {
		return fmt.Errorf("remove region %d: %w", p.regionID, err)
	}
	value, err := (&raft_serverpb.RegionLocalState{
		State: raft_serverpb.PeerState_Tombstone, Region: p.region, RemovedRecords: []*metapb.Peer{p.self()},
	}).Marshal()
	if err != nil {
		return fmt.Errorf("remove region %d: %w", p.regionID, err)
	}
	return b.Set(engine.RaftKey(p.regionID, engine.Meta), value)
}

// send gives the messages that are ready to the transport.
func (p *peer) send() {
	for _, m := range p.ready.Messages {
		to := peerByID(p.region, m.To)
		if to == nil {
			to = p.others[m.To]
		}
		if to == nil {
			continue
		}
		packed, err := packMessage(m)
		if err != nil {
			p.store.log.Error("a message is dropped", "region", p.regionID, "error", err)
			continue
		}
		p.store.transport.Send(&raft_serverpb.RaftMessage{
			RegionId: p.regionID, FromPeer: p.self(), ToPeer: to, Message: packed,
			RegionEpoch: p.region.RegionEpoch, StartKey: p.region.StartKey, EndKey: p.region.EndKey,
		})
	}
}

// finish ends the work on what was ready.
func (p *peer) finish() {
	if p.gone {
		return
	}
	p.raft.Advance(p.ready)
	p.ready = raft.Ready{}
	p.look()
	p.startSnapshot()
	if p.beats.soon && p.isLeader() {
		p.beat()
	}
}

// look notes who leads. What was asked of a leader that is none any more is refused.
func (p *peer) look() {
	now := p.raft.BasicStatus()
	// A learner never campaigns, so that its leader stays the same when no word comes any more.
	if now.RaftState == raft.StateLeader {
		p.leaderAt = time.Now()
	} else if heard := p.heard[now.Lead]; heard.After(p.leaderAt) {
		p.leaderAt = heard
	}
	if now.Term == p.term && now.Lead == p.lead && now.RaftState == p.state {
		return
	}
	became := now.RaftState == raft.StateLeader && (p.state != raft.StateLeader || p.term != now.Term)
	if p.state != now.RaftState || now.Lead != p.lead {
		p.store.log.Debug("leader", "region", p.regionID, "peer", p.id, "leader", now.Lead, "term", now.Term, "state", now.RaftState)
	}
	p.term, p.lead, p.state = now.Term, now.Lead, now.RaftState
	for sequence, one := range p.proposals {
		if one.term != p.term || !p.isLeader() {
			delete(p.proposals, sequence)
			// It may be committed yet: the client asks again and finds out.
			one.answer(result{}, staleCommand())
		}
	}
	p.refuseReads(notLeader(p.regionID, p.leader()))
	if became {
		since := time.Now()
		for _, other := range p.region.Peers {
			p.heard[other.Id] = since
		}
		p.beats.soon = true
	}
}

// refuseAll refuses whatever waits for this peer.
func (p *peer) refuseAll(why *errorpb.Error) {
	for sequence, one := range p.proposals {
		delete(p.proposals, sequence)
		one.answer(result{}, why)
	}
	p.refuseReads(why)
}

func (p *peer) tick() {
	p.raft.Tick()
	p.look()
	now := time.Now()
	p.refuseLateReads(now)
	if p.isLeader() {
		p.beatInTime(now)
		p.splitInTime(now)
		return
	}
	p.askWhetherGone(now)
}

func (p *peer) measure() error {
	view := p.store.engine.View()
	size, _, err := view.Size(p.region.StartKey, p.region.EndKey)
	if err != nil {
		return err
	}
	p.size = size
	return view.Close()
}

// quiet passes on only what Raft warns of.
type quiet struct {
	log    *slog.Logger
	region uint64
}

func (q quiet) Debug(...any)          {}
func (q quiet) Debugf(string, ...any) {}
func (q quiet) Info(...any)           {}
func (q quiet) Infof(string, ...any)  {}
func (q quiet) Warning(v ...any)      { q.log.Debug(fmt.Sprint(v...), "region", q.region) }
func (q quiet) Warningf(format string, v ...any) {
	q.log.Debug(fmt.Sprintf(format, v...), "region", q.region)
}
func (q quiet) Error(v ...any) { q.log.Error(fmt.Sprint(v...), "region", q.region) }
func (q quiet) Errorf(format string, v ...any) {
	q.log.Error(fmt.Sprintf(format, v...), "region", q.region)
}
func (q quiet) Fatal(v ...any)                 { panic(fmt.Sprint(v...)) }
func (q quiet) Fatalf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
func (q quiet) Panic(v ...any)                 { panic(fmt.Sprint(v...)) }
func (q quiet) Panicf(format string, v ...any) { panic(fmt.Sprintf(format, v...)) }
