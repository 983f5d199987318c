package raftstore

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/raft_cmdpb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"go.etcd.io/raft/v3/raftpb"
)

// Split cuts a region at encoded keys and returns all parts in their order. Keys
// that are no boundary within it are left out.
func (s *Store) Split(ctx context.Context, t *Ticket, keys [][]byte) ([]*metapb.Region, *errorpb.Error) {
	keys = findSplitKeys(t.Region, keys)
	if len(keys) == 0 {
		return []*metapb.Region{t.Region}, nil
	}
	ids, err := s.pd.AskBatchSplit(ctx, t.Region, len(keys))
	if err != nil || len(ids) != len(keys) {
		s.log.Warn("PD gives no IDs for a split", "region", t.Region.Id, "error", err)
		return nil, serverIsBusy("PD gives no IDs for a split")
	}
	admin := &raft_cmdpb.BatchSplitRequest{RightDerive: true}
	for i, key := range keys {
		admin.Requests = append(admin.Requests, &raft_cmdpb.SplitRequest{
			SplitKey: key, NewRegionId: ids[i].NewRegionId, NewPeerIds: ids[i].NewPeerIds,
		})
	}
	command := &raft_cmdpb.RaftCmdRequest{
		Header:       &raft_cmdpb.RaftRequestHeader{RegionId: t.Region.Id, RegionEpoch: t.Region.RegionEpoch},
		AdminRequest: &raft_cmdpb.AdminRequest{CmdType: raft_cmdpb.AdminCmdType_BatchSplit, Splits: admin},
	}
	type outcome struct {
		regions []*metapb.Region
		err     *errorpb.Error
	}
	done := make(chan outcome, 1)
	s.tryPost(func() {
		t.peer.propose(t.term, command, func(r result, err *errorpb.Error) { done <- outcome{r.regions, err} })
	})
	select {
	case o := <-done:
		if o.err == nil {
			if err := s.pd.ReportBatchSplit(ctx, o.regions); err != nil {
				s.log.Warn("PD was not told of a split", "region", t.Region.Id, "error", err)
			}
		}
		return o.regions, o.err
	case <-s.stopped:
		return nil, notLeader(t.Region.Id, nil)
	}
}

// findSplitKeys are the keys strictly inside a region, sorted, each once.
func findSplitKeys(region *metapb.Region, keys [][]byte) [][]byte {
	inside := slices.DeleteFunc(slices.Clone(keys), func(k []byte) bool {
		return bytes.Compare(k, region.StartKey) <= 0 || (len(region.EndKey) > 0 && bytes.Compare(k, region.EndKey) >= 0)
	})
	slices.SortFunc(inside, bytes.Compare)
	return slices.CompactFunc(inside, bytes.Equal)
}

// split applies a split: the region keeps its last part, the others are new.
func (p *peer) split(admin *raft_cmdpb.BatchSplitRequest) ([]*metapb.Region, error) {
	s := p.store
	derived := cloneRegion(p.region)
	derived.RegionEpoch.Version += uint64(len(admin.Requests))
	start := p.region.StartKey
	var all []*metapb.Region
	for _, r := range admin.Requests {
		if len(r.NewPeerIds) != len(derived.Peers) {
			return nil, fmt.Errorf("split: %d IDs for %d peers", len(r.NewPeerIds), len(derived.Peers))
		}
		part := cloneRegion(derived)
		part.Id, part.StartKey, part.EndKey = r.NewRegionId, start, r.SplitKey
		for i, peer := range part.Peers {
			peer.Id = r.NewPeerIds[i]
		}
		start = r.SplitKey
		all = append(all, part)
	}
	derived.StartKey = start
	p.region = derived
	p.generation.Add(1)
	if err := p.saveRegion(); err != nil {
		return nil, err
	}
	s.log.Info("split", "region", p.regionID, "into", len(all)+1, "epoch", derived.RegionEpoch)
	p.size /= len(all) + 1
	for _, part := range all {
		child, err := s.newPart(part)
		if err != nil {
			return nil, err
		}
		if child == nil {
			continue
		}
		child.size = p.size
		s.peers[part.Id] = child
		if p.isLeader() {
			child.campaign()
		}
		if m := s.votes[part.Id]; m != nil {
			delete(s.votes, part.Id)
			child.step(m)
		}
	}
	p.beats.soon = true
	return append(all, derived), nil
}

// newPart makes this store's peer of a region that a split made.
func (s *Store) newPart(region *metapb.Region) (*peer, error) {
	self := peerOn(region, s.id)
	if self == nil {
		return nil, fmt.Errorf("split: region %d has no peer on store %d", region.Id, s.id)
	}
	hard := raftpb.HardState{Term: firstTerm, Commit: firstIndex}
	if old := s.peers[region.Id]; old != nil {
		if old.isInitialized() || old.id != self.Id {
			return nil, fmt.Errorf("split: region %d is here already", region.Id)
		}
		// A message came before the split; what was promised then holds.
		if voted := old.raft.BasicStatus().HardState; voted.Term > hard.Term {
			hard.Term, hard.Vote = voted.Term, voted.Vote
		}
		old.gone = true
		old.refuseAll(regionNotFound(region.Id))
	}
	p := s.newPeer(region, self.Id)
	p.applied = firstIndex
	p.truncated = raft_serverpb.RaftTruncatedState{Index: firstIndex, Term: firstTerm}
	var err error
	if p.log, err = newLog(p, hard, firstIndex, firstTerm); err != nil {
		return nil, err
	}
	if err := p.clearLog(); err != nil {
		return nil, err
	}
	if err := p.saveHard(hard); err != nil {
		return nil, err
	}
	if err := p.saveApplied(); err != nil {
		return nil, err
	}
	if err := p.saveRegion(); err != nil {
		return nil, err
	}
	return p, p.start()
}

// ticket is what a split that no client asked for needs.
func (p *peer) ticket() *Ticket {
	return &Ticket{Region: p.region, peer: p, term: p.term, generation: p.generation.Load()}
}

func (p *peer) splitByPD(order *pdpb.SplitRegion) {
	if order.Policy == pdpb.CheckPolicy_USEKEY {
		p.splitAt(func() ([][]byte, error) { return order.Keys, nil })
		return
	}
	p.splitInTheMiddle()
}

func (p *peer) splitInTheMiddle() {
	region, e := p.region, p.store.engine
	p.splitAt(func() ([][]byte, error) {
		view := e.View()
		key, err := view.Middle(region.StartKey, region.EndKey)
		if err := view.Close(); err != nil {
			return nil, err
		}
		if key == nil {
			return nil, err
		}
		return [][]byte{key}, err
	})
}

// splitAt splits at the keys that are found in the background.
func (p *peer) splitAt(find func() ([][]byte, error)) {
	if p.splitting {
		return
	}
	p.splitting = true
	ticket, s := p.ticket(), p.store
	s.background(func(ctx context.Context) {
		keys, err := find()
		if err != nil {
			s.log.Warn("no key to split at", "region", ticket.Region.Id, "error", err)
		} else if _, refused := s.Split(ctx, ticket, keys); refused != nil {
			s.log.Info("a split was refused", "region", ticket.Region.Id, "error", refused.Message)
		}
		s.tryPost(func() { p.splitting = false })
	})
}

// splitInTime splits a region that has become large.
func (p *peer) splitInTime(now time.Time) {
	if now.Sub(p.checkedAt) < p.store.config.SplitCheck {
		return
	}
	p.checkedAt = now
	if p.size < p.store.config.SplitSize {
		return
	}
	// What was counted includes what was overwritten.
	if err := p.measure(); err != nil {
		p.store.failed = err
		return
	}
	if p.size >= p.store.config.SplitSize {
		p.splitInTheMiddle()
	}
}
