package raftstore

import (
	"fmt"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"go.etcd.io/raft/v3/raftpb"
)

// packMessage puts a message into TiKV's envelope. The message itself goes as bytes, in
// the form of the Raft library: stores of this kind understand only each other.
func packMessage(m raftpb.Message) (*eraftpb.Message, error) {
	data, err := m.Marshal()
	if err != nil {
		return nil, fmt.Errorf("pack a message: %w", err)
	}
	// The types of both have the same numbers.
	return &eraftpb.Message{MsgType: eraftpb.MessageType(m.Type), To: m.To, From: m.From, Term: m.Term, Context: data}, nil
}

func unpackMessage(m *raft_serverpb.RaftMessage) (raftpb.Message, error) {
	var out raftpb.Message
	if err := out.Unmarshal(m.GetMessage().GetContext()); err != nil {
		return out, fmt.Errorf("unpack a message: %w", err)
	}
	return out, nil
}

// IsSnapshot says that a message carries a region's data.
func IsSnapshot(m *raft_serverpb.RaftMessage) bool {
	return m.GetMessage().GetMsgType() == eraftpb.MessageType_MsgSnapshot
}

// mayCreatePeer says that a peer may be made for a message of this type.
func mayCreatePeer(t raftpb.MessageType) bool {
	return isVoteRequest(t) || t == raftpb.MsgApp || t == raftpb.MsgHeartbeat || t == raftpb.MsgSnap
}

func isVoteRequest(t raftpb.MessageType) bool { return t == raftpb.MsgVote || t == raftpb.MsgPreVote }

// confState is the Raft configuration of a region's peers.
func confState(region *metapb.Region) raftpb.ConfState {
	var c raftpb.ConfState
	joint := isInJointState(region)
	for _, p := range region.GetPeers() {
		switch p.Role {
		case metapb.PeerRole_Voter:
			c.Voters = append(c.Voters, p.Id)
			if joint {
				c.VotersOutgoing = append(c.VotersOutgoing, p.Id)
			}
		case metapb.PeerRole_IncomingVoter:
			c.Voters = append(c.Voters, p.Id)
		case metapb.PeerRole_DemotingVoter:
			c.VotersOutgoing = append(c.VotersOutgoing, p.Id)
			c.LearnersNext = append(c.LearnersNext, p.Id)
		case metapb.PeerRole_Learner:
			c.Learners = append(c.Learners, p.Id)
		}
	}
	return c
}

// isInJointState says that a change of several peers is under way.
func isInJointState(region *metapb.Region) bool {
	for _, p := range region.GetPeers() {
		if p.Role == metapb.PeerRole_IncomingVoter || p.Role == metapb.PeerRole_DemotingVoter {
			return true
		}
	}
	return false
}

func peerOn(region *metapb.Region, store uint64) *metapb.Peer {
	for _, p := range region.GetPeers() {
		if p.StoreId == store {
			return p
		}
	}
	return nil
}

func peerByID(region *metapb.Region, id uint64) *metapb.Peer {
	for _, p := range region.GetPeers() {
		if p.Id == id {
			return p
		}
	}
	return nil
}

// cloneRegion copies a region, so that who has the old one keeps it as it was.
func cloneRegion(region *metapb.Region) *metapb.Region {
	out := *region
	out.Peers = make([]*metapb.Peer, len(region.Peers))
	for i, p := range region.Peers {
		one := *p
		out.Peers[i] = &one
	}
	epoch := *region.GetRegionEpoch()
	out.RegionEpoch = &epoch
	return &out
}
