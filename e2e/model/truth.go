package model

import (
	"fmt"
	"time"
)

// SetStoreAlive tells the model what is physically true of a store's process,
// which PD itself never knows. From then on a live store sends its heartbeats by
// itself, the first one interval later, and a region whose voters die raises an
// alarm at once, not when PD notices.
func (c *Cluster) SetStoreAlive(id uint64, alive bool) {
	c.lock()
	defer c.mu.Unlock()
	s := c.st.Stores[id]
	if s == nil {
		return
	}
	if alive && s.liveness != livenessAlive {
		s.nextBeat = c.now().Add(c.opts.Timing.Heartbeat)
	}
	s.liveness = livenessDead
	if alive {
		s.liveness = livenessAlive
	}
	c.checkMajorities()
}

// LoseStoreData tells the model that the data of a store is gone for good.
func (c *Cluster) LoseStoreData(id uint64) {
	c.lock()
	defer c.mu.Unlock()
	s := c.st.Stores[id]
	if s == nil {
		return
	}
	s.liveness, s.dataLost = livenessDead, true
	c.checkMajorities()
}

func (c *Cluster) checkMajorities() {
	for _, r := range c.st.Regions {
		total, alive, kept := 0, 0, 0
		for _, p := range r.Peers {
			s := c.st.Stores[p.StoreID]
			if p.Learner || s == nil {
				continue
			}
			total++
			if s.liveness != livenessDead {
				alive++
			}
			if !s.dataLost {
				kept++
			}
		}
		subject := fmt.Sprintf("region %d", r.ID)
		if total > 0 && alive < total/2+1 {
			c.raise(LostRegionMajority, subject, "%d of %d voters alive", alive, total)
		} else {
			// It may be lost again later, which is another alarm.
			delete(c.alarmed, string(LostRegionMajority)+"/"+subject)
		}
		if total > 0 && kept < total/2+1 {
			c.raise(LostData, subject, "data of %d of %d voters left", kept, total)
		}
	}
}

// Inherit takes over what is physically true from the cluster of another PD
// leader: processes and data do not change when the leader does.
func (c *Cluster) Inherit(from *Cluster) {
	type fact struct {
		liveness Liveness
		dataLost bool
		nextBeat time.Time
	}
	facts := map[uint64]fact{}
	from.mu.Lock()
	for id, s := range from.st.Stores {
		facts[id] = fact{s.liveness, s.dataLost, s.nextBeat}
	}
	from.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, f := range facts {
		if s := c.st.Stores[id]; s != nil {
			s.liveness, s.dataLost, s.nextBeat = f.liveness, f.dataLost, f.nextBeat
		}
	}
}

// beatLiving sends the heartbeats that are due of stores known to be alive.
func (c *Cluster) beatLiving(now time.Time) {
	const capacity, used = 10 << 30, 1 << 30
	for _, s := range c.st.Stores {
		if s.liveness != livenessAlive || s.State == StoreTombstone || s.nextBeat.After(now) {
			continue
		}
		for !s.nextBeat.After(now) {
			s.nextBeat = s.nextBeat.Add(c.opts.Timing.Heartbeat)
		}
		c.beat(s, StoreStats{Capacity: capacity, Available: capacity - used, Used: used}, now)
	}
}
