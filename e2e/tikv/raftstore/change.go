package raftstore

import (
	"slices"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/raft_cmdpb"
	"go.etcd.io/raft/v3/raftpb"
)

// Order does what PD asks for in answer to a heartbeat, if it can be done.
func (s *Store) Order(order *pdpb.RegionHeartbeatResponse) {
	s.tryPost(func() {
		if p := s.peers[order.RegionId]; p != nil && p.isLeader() && !p.gone {
			p.order(order)
		}
	})
}

func (p *peer) order(order *pdpb.RegionHeartbeatResponse) {
	switch {
	case order.GetChangePeer() != nil:
		p.proposeChange(order, []*pdpb.ChangePeer{order.ChangePeer})
	case order.GetChangePeerV2() != nil:
		p.proposeChange(order, order.ChangePeerV2.Changes)
	case order.GetTransferLeader() != nil:
		p.transfer(order.TransferLeader)
	case order.GetSplitRegion() != nil:
		p.splitByPD(order.SplitRegion)
	case order.GetMerge() != nil:
		p.store.log.Warn("a merge is refused: regions are never merged here", "region", p.regionID)
	}
}

// transfer hands leadership to one of the peers that PD names, the one that has
// most of the log.
func (p *peer) transfer(order *pdpb.TransferLeader) {
	candidates := order.GetPeers()
	if len(candidates) == 0 {
		candidates = []*metapb.Peer{order.GetPeer()}
	}
	best, most := uint64(0), uint64(0)
	for id, progress := range p.raft.Status().Progress {
		named := slices.ContainsFunc(candidates, func(c *metapb.Peer) bool { return c.GetId() == id })
		if named && !progress.IsLearner && progress.Match >= most {
			best, most = id, progress.Match
		}
	}
	if best != 0 && best != p.id {
		p.raft.TransferLeader(best)
	}
}

// proposeChange proposes a change of the region's peers: one is simple, several
// enter a joint configuration, none leaves it.
func (p *peer) proposeChange(order *pdpb.RegionHeartbeatResponse, changes []*pdpb.ChangePeer) {
	if order.GetRegionEpoch() != nil && order.RegionEpoch.ConfVer != p.region.RegionEpoch.ConfVer {
		return // PD will see, and ask again
	}
	admin := &raft_cmdpb.ChangePeerV2Request{}
	var raftChange raftpb.ConfChangeV2
	if len(changes) > 1 {
		raftChange.Transition = raftpb.ConfChangeTransitionJointExplicit
	}
	for _, c := range changes {
		if !p.isValidChange(c) {
			p.store.log.Warn("a change of peers is refused", "region", p.regionID, "peer", c.GetPeer().GetId(), "type", c.GetChangeType())
			return
		}
		admin.Changes = append(admin.Changes, &raft_cmdpb.ChangePeerRequest{ChangeType: c.ChangeType, Peer: c.Peer})
		one := raftpb.ConfChangeSingle{NodeID: c.Peer.Id, Type: raftpb.ConfChangeAddNode}
		switch c.ChangeType {
		case eraftpb.ConfChangeType_RemoveNode:
			one.Type = raftpb.ConfChangeRemoveNode
		case eraftpb.ConfChangeType_AddLearnerNode:
			one.Type = raftpb.ConfChangeAddLearnerNode
		}
		raftChange.Changes = append(raftChange.Changes, one)
	}
	if isInJointState(p.region) != (len(changes) == 0) {
		return // it is left, or entered, already
	}
	command := &raft_cmdpb.RaftCmdRequest{
		Header:       &raft_cmdpb.RaftRequestHeader{RegionId: p.regionID, RegionEpoch: p.region.RegionEpoch},
		AdminRequest: &raft_cmdpb.AdminRequest{CmdType: raft_cmdpb.AdminCmdType_ChangePeerV2, ChangePeerV2: admin},
	}
	data, sequence, err := p.seal(command)
	if err == nil {
		raftChange.Context = data
		err = p.raft.ProposeConfChange(raftChange)
	}
	p.proposed(sequence, func(result, *errorpb.Error) {}, err)
}

// isValidChange says that a change makes sense for the peers as they are.
func (p *peer) isValidChange(c *pdpb.ChangePeer) bool {
	peer := peerByID(p.region, c.GetPeer().GetId())
	onStore := peerOn(p.region, c.GetPeer().GetStoreId())
	switch c.GetChangeType() {
	case eraftpb.ConfChangeType_RemoveNode:
		return peer != nil && peer.Id != p.id // who leads must hand over first
	case eraftpb.ConfChangeType_AddLearnerNode:
		return onStore == nil || (peer != nil && peer.Role == metapb.PeerRole_Voter)
	default:
		return onStore == nil || (peer != nil && peer.Role == metapb.PeerRole_Learner)
	}
}

// changePeers applies a change. The configuration version grows as TiKV's does: by
// one for each peer that changes.
func (p *peer) changePeers(admin *raft_cmdpb.ChangePeerV2Request, raftChange raftpb.ConfChangeV2) error {
	region := cloneRegion(p.region)
	if len(admin.Changes) == 0 {
		for _, peer := range region.Peers {
			switch peer.Role {
			case metapb.PeerRole_IncomingVoter:
				peer.Role = metapb.PeerRole_Voter
			case metapb.PeerRole_DemotingVoter:
				peer.Role = metapb.PeerRole_Learner
			default:
				continue
			}
			region.RegionEpoch.ConfVer++
		}
	}
	joint := len(admin.Changes) > 1
	for _, c := range admin.Changes {
		changePeer(region, c, joint)
		region.RegionEpoch.ConfVer++
	}
	p.region = region
	p.store.log.Info("changed the peers", "region", p.regionID, "epoch", region.RegionEpoch, "peers", region.Peers)
	// What Raft itself sees of the change is known from its kind alone.
	raftChange.Context = nil
	p.raft.ApplyConfChange(raftChange)
	for id := range p.heard {
		if peerByID(region, id) == nil {
			delete(p.heard, id)
		}
	}
	p.beats.soon = true
	if peerByID(region, p.id) == nil {
		p.store.log.Info("this peer was removed", "region", p.regionID, "peer", p.id)
		if err := p.saveApplied(); err != nil {
			return err
		}
		if err := p.store.batch.Commit(); err != nil {
			return err
		}
		return p.destroy()
	}
	return p.saveRegion()
}

func changePeer(region *metapb.Region, c *raft_cmdpb.ChangePeerRequest, joint bool) {
	at := slices.IndexFunc(region.Peers, func(p *metapb.Peer) bool { return p.Id == c.Peer.Id })
	if c.ChangeType == eraftpb.ConfChangeType_RemoveNode {
		if at >= 0 {
			region.Peers = slices.Delete(region.Peers, at, at+1)
		}
		return
	}
	if at < 0 {
		at = len(region.Peers)
		region.Peers = append(region.Peers, &metapb.Peer{Id: c.Peer.Id, StoreId: c.Peer.StoreId})
	}
	peer := region.Peers[at]
	learner := c.ChangeType == eraftpb.ConfChangeType_AddLearnerNode
	switch {
	case learner && joint && peer.Role == metapb.PeerRole_Voter:
		peer.Role = metapb.PeerRole_DemotingVoter
	case learner:
		peer.Role = metapb.PeerRole_Learner
	case joint:
		peer.Role = metapb.PeerRole_IncomingVoter
	default:
		peer.Role = metapb.PeerRole_Voter
	}
}
