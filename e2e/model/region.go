package model

import (
	"fmt"
	"slices"
	"time"
)

// index counts what lies on each store.
type index struct {
	peers    map[uint64]int
	leaders  map[uint64]int
	learners map[uint64]int
}

func (c *Cluster) index() index {
	idx := index{peers: map[uint64]int{}, leaders: map[uint64]int{}, learners: map[uint64]int{}}
	for _, r := range c.st.Regions {
		for _, p := range r.Peers {
			idx.peers[p.StoreID]++
			if p.Learner {
				idx.learners[p.StoreID]++
			}
			if p.ID == r.Leader {
				idx.leaders[p.StoreID]++
			}
		}
	}
	return idx
}

// RegionView is a region as PD shows it.
type RegionView struct {
	Region
	// Down holds the peers on stores that have sent no heartbeat for long.
	Down []DownPeer
	// Pending holds the peers that have not answered a leader yet that was just
	// elected: TiKV tells PD that it knows nothing of what they have.
	Pending []Peer
}

// DownPeer is a peer that its leader reports as down.
type DownPeer struct {
	Peer    Peer
	Seconds int
}

// LeaderPeer returns the leading peer.
func (r Region) LeaderPeer() (Peer, bool) {
	i := slices.IndexFunc(r.Peers, func(p Peer) bool { return p.ID == r.Leader })
	if i < 0 {
		return Peer{}, false
	}
	return r.Peers[i], true
}

// Regions returns all regions in key order.
func (c *Cluster) Regions() ([]RegionView, error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return nil, ErrNotBootstrapped
	}
	now := c.now()
	out := make([]RegionView, 0, len(c.st.Regions))
	for _, r := range c.st.Regions {
		v := RegionView{Region: *r}
		v.Peers = slices.Clone(r.Peers)
		if now.Sub(r.led) < c.opts.Timing.CatchUp {
			v.Pending = slices.DeleteFunc(slices.Clone(r.Peers), func(p Peer) bool { return p.ID == r.Leader })
		}
		for _, p := range r.Peers {
			s := c.st.Stores[p.StoreID]
			if s == nil || s.LastHeartbeat.IsZero() {
				continue
			}
			if unseen := now.Sub(s.lastSeen); unseen > 30*time.Second && c.opts.Timing.Disconnected < unseen {
				v.Down = append(v.Down, DownPeer{Peer: p, Seconds: int(unseen.Seconds())})
			}
		}
		out = append(out, v)
	}
	return out, nil
}

// RegionCheck names a defect that regions can be asked for.
type RegionCheck string

// The defects of regions.
const (
	MissPeer    RegionCheck = "miss-peer"
	ExtraPeer   RegionCheck = "extra-peer"
	DownPeers   RegionCheck = "down-peer"
	PendingPeer RegionCheck = "pending-peer"
	OfflinePeer RegionCheck = "offline-peer"
	LearnerPeer RegionCheck = "learner-peer"
	EmptyRegion RegionCheck = "empty-region"
)

// CheckRegions returns the regions that have a defect.
func (c *Cluster) CheckRegions(check RegionCheck) ([]RegionView, error) {
	all, err := c.Regions()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	want := c.maxReplicas()
	return slices.DeleteFunc(all, func(r RegionView) bool {
		switch check {
		case MissPeer:
			return countVoters(&r.Region) >= want
		case ExtraPeer:
			return countVoters(&r.Region) <= want
		case DownPeers:
			return len(r.Down) == 0
		case LearnerPeer:
			return countVoters(&r.Region) == len(r.Peers)
		case PendingPeer:
			return len(r.Pending) == 0
		case OfflinePeer, EmptyRegion:
			// PD does not count a peer on an Offline store while its rule is still
			// fulfilled.
			return true
		default:
			return true
		}
	}), nil
}

// split makes a grown cluster of one region, once, when its first store serves.
func (c *Cluster) split(s *Store) {
	if len(c.st.Regions) != 1 || c.opts.Regions <= 1 {
		return
	}
	first := c.st.Regions[0]
	first.End = tableKey(0)
	for i := 1; i < c.opts.Regions; i++ {
		r := &Region{ID: c.newID(), Start: tableKey(i - 1), ConfVer: first.ConfVer, Version: uint64(i) + 1}
		if i < c.opts.Regions-1 {
			r.End = tableKey(i)
		}
		for _, p := range first.Peers {
			q := Peer{ID: c.newID(), StoreID: p.StoreID, Learner: p.Learner}
			r.Peers = append(r.Peers, q)
			if p.ID == first.Leader {
				r.Leader = q.ID
			}
		}
		c.st.Regions = append(c.st.Regions, r)
	}
	first.Version = uint64(c.opts.Regions)
	// A young cluster has data on its first store only; replicas are made from now on.
	s.Node = NodeServing
	c.dirty = true
}

// tableKey is the encoded start of the i-th table, in hexadecimal.
func tableKey(i int) string {
	return fmt.Sprintf("7480000000000000FF%02X%02X000000000000F8", (i+2)*2%256, (i+2)*2/256)
}
