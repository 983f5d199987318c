package raftstore

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"go.etcd.io/raft/v3"
)

// Ticket says that what this store has of a region is as new as the request that
// it was given for.
type Ticket struct {
	Region     *metapb.Region
	peer       *peer
	term       uint64 // 0 when the peer does not lead
	generation uint64
}

// Check says whether what was read since the ticket was given counts. Data may
// have gone to another region, or from this store, meanwhile.
func (t *Ticket) Check() *errorpb.Error {
	if t.peer.generation.Load() != t.generation {
		return epochNotMatch()
	}
	return nil
}

type read struct {
	context *kvrpcpb.Context
	replica bool
	since   time.Time
	index   uint64
	answer  func(*Ticket, *errorpb.Error)
}

// reads wait in three places, one after the other.
type reads struct {
	waiting []*read            // for the next round
	asked   map[uint64][]*read // for the leader to hear that it is one still, by round
	indexed []*read            // for what was committed then to be applied
}

func newReads() reads { return reads{asked: map[uint64][]*read{}} }

// Admit waits until what this store has of a region is as new as the call. A
// request that may be served by a follower says so in its context.
func (s *Store) Admit(ctx context.Context, c *kvrpcpb.Context) (*Ticket, *errorpb.Error) {
	type outcome struct {
		ticket *Ticket
		err    *errorpb.Error
	}
	done := make(chan outcome, 1)
	answer := func(t *Ticket, err *errorpb.Error) { done <- outcome{t, err} }
	if !s.tryPost(func() { s.admit(c, answer) }) {
		return nil, notLeader(c.GetRegionId(), nil)
	}
	select {
	case o := <-done:
		return o.ticket, o.err
	case <-ctx.Done():
		return nil, serverIsBusy("the request was given up")
	case <-s.stopped:
		return nil, notLeader(c.GetRegionId(), nil)
	}
}

func (s *Store) admit(c *kvrpcpb.Context, answer func(*Ticket, *errorpb.Error)) {
	p := s.peers[c.GetRegionId()]
	r := &read{context: c, replica: c.GetReplicaRead() || c.GetStaleRead(), since: time.Now(), answer: answer}
	if err := s.check(p, r); err != nil {
		answer(nil, err)
		return
	}
	p.reads.waiting = append(p.reads.waiting, r)
}

// check finds what is wrong with a request's region, as TiKV does: the version of
// the epoch must fit, the configuration's need not.
func (s *Store) check(p *peer, r *read) *errorpb.Error {
	c := r.context
	if asked := c.GetPeer(); asked != nil && asked.StoreId != s.id {
		return storeNotMatch(asked.StoreId, s.id)
	}
	if p == nil || p.gone || !p.isInitialized() || (c.GetPeer() != nil && c.GetPeer().Id != p.id) {
		return regionNotFound(c.GetRegionId())
	}
	if !r.replica && !p.isLeader() {
		return notLeader(p.regionID, p.leader())
	}
	if c.GetRegionEpoch().GetVersion() != p.region.RegionEpoch.Version {
		return epochNotMatch(p.region)
	}
	return nil
}

// startReads asks Raft once for all reads that came in.
func (p *peer) startReads() {
	if len(p.reads.waiting) == 0 {
		return
	}
	if !p.isLeader() && p.lead == raft.None {
		p.refuseReads(notLeader(p.regionID, nil))
		return
	}
	p.store.sequence++
	round := p.store.sequence
	p.reads.asked[round] = p.reads.waiting
	p.reads.waiting = nil
	p.raft.ReadIndex(binary.BigEndian.AppendUint64(nil, round))
}

// confirmReads takes Raft's answers.
func (p *peer) confirmReads() {
	for _, state := range p.ready.ReadStates {
		round := binary.BigEndian.Uint64(state.RequestCtx)
		for _, r := range p.reads.asked[round] {
			r.index = state.Index
			p.reads.indexed = append(p.reads.indexed, r)
		}
		delete(p.reads.asked, round)
	}
}

// appliedReads takes the reads that can be answered now that more was applied. A
// leader answers none before it has applied an entry of its own term: the log may
// hold older ones yet that a write must not be decided without.
func (p *peer) appliedReads() []*read {
	var now, later []*read
	for _, r := range p.reads.indexed {
		if r.index <= p.applied && (r.replica || p.appliedTerm == p.term) {
			now = append(now, r)
		} else {
			later = append(later, r)
		}
	}
	p.reads.indexed = later
	return now
}

// admitted answers a read.
func (p *peer) admitted(r *read) {
	if err := p.store.check(p, r); err != nil {
		r.answer(nil, err)
		return
	}
	t := &Ticket{Region: p.region, peer: p, generation: p.generation.Load()}
	if p.isLeader() {
		t.term = p.term
	}
	r.answer(t, nil)
}

func (p *peer) refuseReads(why *errorpb.Error) {
	all := slices.Concat(p.reads.waiting, p.reads.indexed)
	for _, some := range p.reads.asked {
		all = append(all, some...)
	}
	p.reads = newReads()
	for _, r := range all {
		r.answer(nil, why)
	}
}

// refuseLateReads gives up reads that Raft dropped without a word.
func (p *peer) refuseLateReads(now time.Time) {
	limit := 2 * time.Duration(p.store.config.ElectionTicks) * p.store.config.Tick
	for round, some := range p.reads.asked {
		if now.Sub(some[0].since) < limit {
			continue
		}
		delete(p.reads.asked, round)
		for _, r := range some {
			r.answer(nil, serverIsBusy("no leader answers"))
		}
	}
}
