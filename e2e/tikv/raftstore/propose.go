package raftstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/raft_cmdpb"
	"go.etcd.io/raft/v3"
)

// Write replicates changes and waits until they are applied here. It is refused
// when the peer did not lead all the time since the ticket was given: another
// leader may then have changed what the request was decided on. A write that was
// refused may yet be applied, by another leader, but not while this peer leads:
// so nothing that still waits for its turn here was decided on too old data.
func (s *Store) Write(t *Ticket, requests []*raft_cmdpb.Request) *errorpb.Error {
	done := make(chan *errorpb.Error, 1)
	command := &raft_cmdpb.RaftCmdRequest{
		Header:   &raft_cmdpb.RaftRequestHeader{RegionId: t.Region.Id, RegionEpoch: t.Region.RegionEpoch},
		Requests: requests,
	}
	posted := s.tryPost(func() {
		t.peer.propose(t.term, command, func(_ result, err *errorpb.Error) { done <- err })
	})
	if !posted {
		return notLeader(t.Region.Id, nil)
	}
	select {
	case err := <-done:
		return err
	case <-s.stopped:
		return notLeader(t.Region.Id, nil)
	}
}

func (p *peer) propose(term uint64, command *raft_cmdpb.RaftCmdRequest, answer func(result, *errorpb.Error)) {
	switch {
	case p.gone:
		answer(result{}, regionNotFound(p.regionID))
		return
	case !p.isLeader():
		answer(result{}, notLeader(p.regionID, p.leader()))
		return
	case term != p.term:
		answer(result{}, staleCommand())
		return
	case command.Header.RegionEpoch.Version != p.region.RegionEpoch.Version:
		answer(result{}, epochNotMatch(p.region))
		return
	}
	data, sequence, err := p.seal(command)
	if err == nil {
		err = p.raft.Propose(data)
	}
	p.proposed(sequence, answer, err)
}

// seal gives a command the number by which its proposer knows it again.
func (p *peer) seal(command *raft_cmdpb.RaftCmdRequest) (data []byte, sequence uint64, err error) {
	p.store.sequence++
	command.Header.Uuid = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.id), p.store.sequence)
	data, err = command.Marshal()
	return data, p.store.sequence, err
}

func (p *peer) proposed(sequence uint64, answer func(result, *errorpb.Error), err error) {
	switch {
	case err == nil:
		p.proposals[sequence] = proposal{term: p.term, answer: answer}
	case errors.Is(err, raft.ErrProposalDropped):
		// The leader is about to hand over, or has too much to do.
		answer(result{}, notLeader(p.regionID, nil))
	default:
		p.store.log.Warn("can't propose", "region", p.regionID, "error", err)
		answer(result{}, serverIsBusy("can't propose"))
	}
}

// answerOf finds who waits for a command here; nil when no request does.
func (p *peer) answerOf(h *raft_cmdpb.RaftRequestHeader) func(result, *errorpb.Error) {
	if len(h.GetUuid()) != 16 || binary.BigEndian.Uint64(h.Uuid) != p.id {
		return nil
	}
	sequence := binary.BigEndian.Uint64(h.Uuid[8:])
	one, waits := p.proposals[sequence]
	if !waits {
		return nil
	}
	delete(p.proposals, sequence)
	return one.answer
}

// DestroyRange deletes everything between two encoded keys from the regions that
// this store leads.
func (s *Store) DestroyRange(ctx context.Context, start, end []byte) error {
	var tickets []*Ticket
	err := s.ask(ctx, func() {
		for _, p := range s.peers {
			if p.isLeader() && p.overlaps(start, end) {
				tickets = append(tickets, p.ticket())
			}
		}
	})
	if err != nil {
		return err
	}
	for _, t := range tickets {
		from, to := t.Region.StartKey, t.Region.EndKey
		if bytes.Compare(start, from) > 0 {
			from = start
		}
		if len(to) == 0 || (len(end) > 0 && bytes.Compare(end, to) < 0) {
			to = end
		}
		refused := s.Write(t, []*raft_cmdpb.Request{{
			CmdType: raft_cmdpb.CmdType_DeleteRange, DeleteRange: &raft_cmdpb.DeleteRangeRequest{StartKey: from, EndKey: to},
		}})
		if refused != nil {
			return fmt.Errorf("destroy a range of region %d: %s", t.Region.Id, refused.Message)
		}
	}
	return nil
}
