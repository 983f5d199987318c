package raftstore

import (
	"context"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"
)

// What PD hears of a region at least. PD merges a region with its neighbour if it has at
// most 20 MiB and 200,000 keys (max-merge-region-size and -keys), and regions are never
// merged here, so all tell of more keys. A region of more than 20 MiB costs PD's store
// limit a whole peer of the 15 a minute, a small one a fifth, and an empty one (1 MiB)
// is not moved for balance.
const (
	minSize = 2 << 20
	minKeys = 1 << 20
)

// beats is when PD hears of a region.
type beats struct {
	soon    bool // something changed that PD should know of at once
	last    time.Time
	pending int // peers that were behind in the last one
}

func (p *peer) beatInTime(now time.Time) {
	if now.Sub(p.beats.last) >= p.store.config.RegionHeartbeat {
		p.beat()
	}
}

// caughtUp tells PD at once that a peer is behind no more: as in TiKV all others are for
// a leader that has just been elected, until they answer it.
func (p *peer) caughtUp() {
	if p.beats.pending > 0 && p.isLeader() && len(p.behind()) < p.beats.pending {
		p.beat()
	}
}

// behind lists the peers that lack more than the log has, as far as is known: they need
// a snapshot.
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
		ApproximateSize: max(uint64(p.size), minSize), ApproximateKeys: max(uint64(p.size/100), minKeys),
		Interval: &pdpb.TimeInterval{StartTimestamp: uint64(p.beats.last.Unix()), EndTimestamp: uint64(now.Unix())},
	}
	for _, peer := range p.region.Peers {
		heard, known := p.heard[peer.Id]
		if !known {
			p.heard[peer.Id] = now
			continue
		}
		if unheard := now.Sub(heard); peer.Id != p.id && unheard >= p.store.config.MaxDown {
			beat.DownPeers = append(beat.DownPeers, &pdpb.PeerStats{Peer: peer, DownSeconds: uint64(unheard.Seconds())})
		}
	}
	p.beats = beats{last: now, pending: len(beat.PendingPeers)}
	p.store.pd.Heartbeat(beat)
}

// askWhetherGone asks PD about a region whose leader was not heard of for long: this peer
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
		s.tryPost(func() {
			if p.gone || s.peers[region] != p || time.Since(p.leaderAt) < wait {
				return
			}
			if known.GetRegionEpoch().GetConfVer() > p.region.GetRegionEpoch().GetConfVer() && peerByID(known, p.id) == nil {
				s.log.Info("PD says that this peer was removed", "region", region, "peer", p.id)
				s.remove(p)
			}
		})
	})
}
