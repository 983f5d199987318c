package raftstore

import (
	"context"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// minSize is the least size that PD hears of a region: more than that of a region
// that it would merge with its neighbour.
const minSize = 64 << 20

// beats is when PD hears of a region.
type beats struct {
	soon    bool // something changed that PD should know of at once
	last    time.Time
	pending int // peers that were behind in the last one
}

// lookEvery is how often a leader looks for peers that have caught up.
const lookEvery = time.Second

func (p *peer) beatInTime(now time.Time) {
	since := now.Sub(p.beats.last)
	if since >= p.store.config.RegionHeartbeat || (since >= lookEvery && p.beats.pending > 0 && len(p.behind()) != p.beats.pending) {
		p.beat()
	}
}

// behind lists the peers that lack more than the log has: they need a snapshot.
func (p *peer) behind() []*metapb.Peer {
	var out []*metapb.Peer
	p.raft.WithProgress(func(id uint64, _ raft.ProgressType, progress tracker.Progress) {
		if peer := peerByID(p.region, id); peer != nil && id != p.id && progress.Match < p.truncated.Index {
			out = append(out, peer)
		}
	})
	return out
}

func (p *peer) beat() {
	now := time.Now()
	beat := &pdpb.RegionHeartbeatRequest{
		Region: p.region, Leader: p.self(), Term: p.term, PendingPeers: p.behind(),
		ApproximateSize: max(uint64(p.size), minSize), ApproximateKeys: uint64(p.size / 100),
		Interval: &pdpb.TimeInterval{StartTimestamp: uint64(p.beats.last.Unix()), EndTimestamp: uint64(now.Unix())},
	}
	for _, peer := range p.region.Peers {
		heard, known := p.heard[peer.Id]
		if !known {
			p.heard[peer.Id] = now
			continue
		}
		if silent := now.Sub(heard); peer.Id != p.id && silent >= p.store.config.MaxDown {
			beat.DownPeers = append(beat.DownPeers, &pdpb.PeerStats{Peer: peer, DownSeconds: uint64(silent.Seconds())})
		}
	}
	p.beats = beats{last: now, pending: len(beat.PendingPeers)}
	p.store.pd.Heartbeat(beat)
}

// askWhetherGone asks PD about a region that has had no leader for long: this peer
// may have been removed while it could not hear of it.
func (p *peer) askWhetherGone(now time.Time) {
	wait := p.store.config.MaxLeaderMissing
	if now.Sub(p.leaderAt) < wait || now.Sub(p.askedPD) < wait {
		return
	}
	p.askedPD = now
	s, region := p.store, p.regionID
	s.background(func(ctx context.Context) {
		known, err := s.pd.RegionByID(ctx, region)
		if err != nil || known == nil {
			return
		}
		s.post(func() {
			if p.gone || s.peers[region] != p || p.lead != raft.None {
				return
			}
			if known.GetRegionEpoch().GetConfVer() > p.region.GetRegionEpoch().GetConfVer() && peerByID(known, p.id) == nil {
				s.log.Info("PD says that this peer was removed", "region", region, "peer", p.id)
				s.remove(p)
			}
		})
	})
}
