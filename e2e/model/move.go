package model

import (
	"slices"
	"strings"
	"time"
)

// advance lets everything happen that has happened by itself until now.
func (c *Cluster) advance(now time.Time) {
	const finest = time.Second
	if !c.isBootstrapped() {
		c.lastStep = now
		return
	}
	if now.Sub(c.lastStep) < shortest {
		return
	}
	step := finest
	for c.lastStep.Before(now) {
		next := c.lastStep.Add(step)
		if next.After(now) {
			next = now
		}
		elapsed := next.Sub(c.lastStep).Seconds()
		c.lastStep = next
		c.beatLiving(next)
		c.peerCredit += elapsed * c.opts.Timing.PeerMoves
		c.leaderCredit += elapsed * c.opts.Timing.LeaderMoves
		moved := c.tryElectLeaders(next)
		for c.leaderCredit >= 1 && c.tryMoveLeader(next) {
			c.leaderCredit--
			moved = true
		}
		for c.peerCredit >= 1 && c.tryMovePeer(next) {
			c.peerCredit--
			moved = true
		}
		// Idle time can't be saved up for later.
		c.peerCredit, c.leaderCredit = min(c.peerCredit, 1), min(c.leaderCredit, 1)
		moved = c.tryRemoveEmptyStores() || moved
		c.dirty = c.dirty || moved
		if moved {
			c.promote(next)
			step = finest
		} else {
			step = min(2*step, coarsestStep(now.Sub(c.lastStep)))
		}
	}
}

// shortest is the shortest step through time: many questions at one moment are one step.
const shortest = 10 * time.Millisecond

// coarsestStep is the longest step through time in which nothing happens. A test
// that lets days pass does not look at minutes.
func coarsestStep(left time.Duration) time.Duration {
	if left > 2*time.Hour {
		return 10 * time.Minute
	}
	return time.Minute
}

// tryRemoveEmptyStores turns Offline stores without peers into tombstones.
func (c *Cluster) tryRemoveEmptyStores() bool {
	var idx index
	removed := false
	for id, s := range c.st.Stores {
		if s.State != StoreOffline {
			continue
		}
		if idx.peers == nil {
			idx = c.index()
		}
		if idx.peers[id] == 0 {
			s.State, s.Node = StoreTombstone, NodeRemoved
			c.dropFromSchedulers(id)
			removed = true
		}
	}
	return removed
}

// isDead says whether the other peers of a region would elect another leader.
func (c *Cluster) isDead(s *Store, now time.Time) bool {
	if s == nil || s.liveness == livenessDead {
		return true
	}
	return s.liveness == livenessUnknown && now.Sub(s.lastSeen) > c.opts.Timing.Disconnected
}

// tryElectLeaders gives regions whose leader is dead another one, as Raft does by itself.
func (c *Cluster) tryElectLeaders(now time.Time) bool {
	moved := false
	for _, r := range c.st.Regions {
		p, ok := r.LeaderPeer()
		if ok && !c.isDead(c.st.Stores[p.StoreID], now) {
			continue
		}
		alive, total := []Peer{}, 0
		for _, q := range r.Peers {
			if q.Learner {
				continue
			}
			total++
			if !c.isDead(c.st.Stores[q.StoreID], now) {
				alive = append(alive, q)
			}
		}
		if len(alive) >= total/2+1 {
			r.lead(alive[int(r.ID)%len(alive)].ID, now)
			moved = true
		}
	}
	return moved
}

// tryMoveLeader moves one leader, first away from stores that shall have none,
// then for balance. It says whether there was one to move.
func (c *Cluster) tryMoveLeader(now time.Time) bool {
	evicted := c.evicted()
	idx := c.index()
	barred := func(id uint64) bool {
		s := c.st.Stores[id]
		return s == nil || evicted[id] || s.State != StoreUp || c.isDead(s, now) || s.Meta.IsTiFlash()
	}
	var best *Region
	var bestPeer uint64
	gain := 1
	for _, r := range c.st.Regions {
		from, ok := r.LeaderPeer()
		if !ok || c.isDead(c.st.Stores[from.StoreID], now) {
			continue
		}
		for _, to := range r.Peers {
			if to.ID == from.ID || to.Learner || barred(to.StoreID) {
				continue
			}
			g := idx.leaders[from.StoreID] - idx.leaders[to.StoreID]
			if barred(from.StoreID) {
				g += 1 << 20
			}
			if g > gain {
				gain, best, bestPeer = g, r, to.ID
			}
		}
	}
	if best == nil {
		return false
	}
	best.lead(bestPeer, now)
	return true
}

// tryMovePeer makes one change to the replicas of one region: a missing one is
// added, one on a store that leaves, is Down or is not for it is replaced, one too
// many is dropped, or one is moved for balance. The same goes for learners, of which
// the placement rules say how many there are to be and where. A schedule limit of 0
// stops its kind of move ("PD Configuration File", replica- and region-schedule-limit).
func (c *Cluster) tryMovePeer(now time.Time) bool {
	idx := c.index()
	return c.allowsMoves("replica-schedule-limit") && c.tryRepairRegion(idx, now) ||
		c.allowsMoves("region-schedule-limit") && c.tryBalancePeer(c.voterRules(), idx, now)
}

// allowsMoves says whether PD may make moves of which it counts so many at a time.
func (c *Cluster) allowsMoves(limit string) bool {
	n, isNumber := c.parsed("schedule")[limit].(float64)
	return !isNumber || n > 0
}

// tryRepairRegion makes one change to a region that is not as it is to be.
func (c *Cluster) tryRepairRegion(idx index, now time.Time) bool {
	want, rules, sent := c.maxReplicas(), c.learnerRules(), c.voterRules()
	leaving := map[uint64]bool{}
	for id := range c.st.Stores {
		leaving[id] = c.isLeaving(id, now)
	}
	for _, r := range c.st.Regions {
		if n := countVoters(r); n < want {
			if to := c.bestTarget(r, 0, sent, idx, now); to != nil {
				c.addPeer(r, to.Meta.ID)
				return true
			}
		}
		for i, p := range r.Peers {
			if s := c.st.Stores[p.StoreID]; p.Learner || s != nil && !leaving[p.StoreID] && c.admits(r, s, sent) {
				continue
			}
			if countVoters(r) > want {
				c.dropPeer(r, i, now)
				return true
			}
			if to := c.bestTarget(r, p.StoreID, sent, idx, now); to != nil {
				c.addPeer(r, to.Meta.ID)
				c.dropPeer(r, i, now)
				return true
			}
		}
		if countVoters(r) > want {
			c.dropPeer(r, c.fullest(r, idx), now)
			return true
		}
		if i := c.crowded(r); i >= 0 {
			if to := c.bestTarget(r, r.Peers[i].StoreID, sent, idx, now); to != nil {
				c.addPeer(r, to.Meta.ID)
				c.dropPeer(r, i, now)
				return true
			}
		}
		if c.tryMoveLearner(r, rules, idx, now) {
			return true
		}
	}
	return false
}

func (c *Cluster) isLeaving(id uint64, now time.Time) bool {
	s := c.st.Stores[id]
	if s == nil || s.State != StoreUp {
		return true
	}
	// A store that this PD has not heard of yet is not called Down by its patrol.
	return c.stateName(s, now) == "Down" && !s.LastHeartbeat.IsZero() &&
		now.Sub(s.lastSeen) > c.duration("schedule", "max-store-down-time")
}

// bestTarget is the store for one more peer of r, in the place of the peer on
// the store without (0 for none): the best isolated, then the emptiest, of those
// that the rules admit.
func (c *Cluster) bestTarget(r *Region, without uint64, rules []Rule, idx index, now time.Time) *Store {
	var best *Store
	bestScore := -1
	for id, s := range c.st.Stores {
		if !c.isEligible(s, now) || !c.admits(r, s, rules) || c.sharesPlace(r, s, without) || slices.ContainsFunc(r.Peers, func(p Peer) bool { return p.StoreID == id }) {
			continue
		}
		score := c.isolation(r, s, without)
		better := best == nil || score > bestScore ||
			score == bestScore && (idx.peers[id] < idx.peers[best.Meta.ID] ||
				idx.peers[id] == idx.peers[best.Meta.ID] && id < best.Meta.ID)
		if better {
			best, bestScore = s, score
		}
	}
	return best
}

func (c *Cluster) isEligible(s *Store, now time.Time) bool {
	return s.State == StoreUp && !s.Meta.IsTiFlash() && c.stateName(s, now) == "Up" && s.liveness != livenessDead
}

// isolation scores how far a store is from the other peers of a region by the
// location labels: higher is better.
func (c *Cluster) isolation(r *Region, s *Store, without uint64) int {
	levels := c.locationLabels()
	score := 0
	for _, p := range r.Peers {
		other := c.st.Stores[p.StoreID]
		if p.StoreID == without || p.Learner || other == nil || p.StoreID == s.Meta.ID {
			continue
		}
		for i, key := range levels {
			if labelOf(s, key) != labelOf(other, key) {
				// A different zone outweighs any number of different hosts.
				weight := 1
				for range len(levels) - 1 - i {
					weight *= 100
				}
				score += weight
				break
			}
		}
	}
	return score
}

func labelOf(s *Store, key string) string {
	for _, l := range s.Meta.Labels {
		if strings.EqualFold(l.Key, key) {
			return l.Value
		}
	}
	return ""
}

// tryBalancePeer moves one peer from a full store to an empty one where that harms no isolation.
func (c *Cluster) tryBalancePeer(rules []Rule, idx index, now time.Time) bool {
	var bestRegion *Region
	var bestTo uint64
	var bestAt int
	gain := 2
	for to, s := range c.st.Stores {
		if !c.isEligible(s, now) {
			continue
		}
		for _, r := range c.st.Regions {
			// Numbers first: most regions gain nothing, and the rest costs much more.
			gains := func(p Peer) bool { return idx.peers[p.StoreID]-idx.peers[to] > gain }
			there := func(p Peer) bool { return p.StoreID == to }
			if !slices.ContainsFunc(r.Peers, gains) || slices.ContainsFunc(r.Peers, there) || !c.admits(r, s, rules) {
				continue
			}
			for i, p := range r.Peers {
				from := c.st.Stores[p.StoreID]
				g := idx.peers[p.StoreID] - idx.peers[to]
				if p.Learner || from == nil || g <= gain || !c.isEligible(from, now) {
					continue
				}
				if !c.sharesPlace(r, s, p.StoreID) && c.isolation(r, s, p.StoreID) >= c.isolation(r, from, p.StoreID) {
					gain, bestRegion, bestTo, bestAt = g, r, to, i
				}
			}
		}
	}
	if bestRegion == nil {
		return false
	}
	c.addPeer(bestRegion, bestTo)
	c.dropPeer(bestRegion, bestAt, now)
	return true
}

func (c *Cluster) addPeer(r *Region, store uint64) {
	r.Peers = append(r.Peers, Peer{ID: c.newID(), StoreID: store})
	r.ConfVer++
}

// dropPeer removes the i-th peer, and hands its leadership over first.
func (c *Cluster) dropPeer(r *Region, i int, now time.Time) {
	gone := r.Peers[i]
	r.Peers = slices.Delete(r.Peers, i, i+1)
	r.ConfVer++
	if gone.ID != r.Leader {
		return
	}
	for _, p := range r.Peers {
		if !p.Learner && !c.isDead(c.st.Stores[p.StoreID], now) {
			r.lead(p.ID, now)
			return
		}
	}
}

func (c *Cluster) fullest(r *Region, idx index) int {
	at := slices.IndexFunc(r.Peers, func(p Peer) bool { return !p.Learner })
	for i, p := range r.Peers {
		if p.ID != r.Leader && !p.Learner && (r.Peers[at].ID == r.Leader || idx.peers[p.StoreID] > idx.peers[r.Peers[at].StoreID]) {
			at = i
		}
	}
	return at
}

func countVoters(r *Region) int {
	n := 0
	for _, p := range r.Peers {
		if !p.Learner {
			n++
		}
	}
	return n
}
