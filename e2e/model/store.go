package model

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"
)

// StoreView is a store as PD shows it at one moment.
type StoreView struct {
	Meta                StoreMeta
	State               StoreState
	Node                NodeState
	StateName           string
	LastHeartbeat       time.Time
	PhysicallyDestroyed bool
	Stats               StoreStats
	Leaders             int
	Regions             int
	Learners            int
	LeaderWeight        float64
	RegionWeight        float64
	// Sized says whether sizes are known, which they are not before the first
	// heartbeat that this PD leader has heard.
	Sized bool
}

// RegionSizeMiB is the size that the model gives to every region.
const RegionSizeMiB = 10

// RegionKeys is the number of keys that the model gives to every region.
const RegionKeys = 10485

// Bootstrap registers the first store and the first region. Later calls are
// refused with ErrAlreadyBootstrapped.
func (c *Cluster) Bootstrap(meta StoreMeta, regionID, peerID uint64) error {
	c.lock()
	defer c.mu.Unlock()
	if c.isBootstrapped() {
		return ErrAlreadyBootstrapped
	}
	before := c.st
	c.st.BootstrappedAt = c.now()
	c.st.Stores = map[uint64]*Store{meta.ID: c.newStore(meta)}
	c.st.Regions = []*Region{{
		ID: regionID, ConfVer: 1, Version: 1,
		Peers: []Peer{{ID: peerID, StoreID: meta.ID}}, Leader: peerID,
	}}
	c.st.ClusterVersion = clusterVersion(c.st.Stores, c.st.ClusterVersion)
	if err := c.save(); err != nil {
		c.st = before
		return err
	}
	return nil
}

// PutStore registers a store, or renews what is known of it.
func (c *Cluster) PutStore(meta StoreMeta) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	if meta.ID == 0 {
		return badInput("invalid put store %v", meta)
	}
	old := c.st.Stores[meta.ID]
	if old != nil && old.State == StoreTombstone {
		return storeRemoved(meta.ID)
	}
	if old != nil && old.PhysicallyDestroyed {
		return storeDestroyed(meta.ID)
	}
	for _, s := range c.st.Stores {
		taken := s.State != StoreTombstone && !s.PhysicallyDestroyed
		if taken && s.Meta.ID != meta.ID && s.Meta.Address == meta.Address {
			return badInput("duplicated store address: id:%d address:%q, already registered by id:%d address:%q",
				meta.ID, meta.Address, s.Meta.ID, s.Meta.Address)
		}
	}
	if !isCompatible(meta.Version, c.st.ClusterVersion) {
		return badInput("version should compatible with version  %s, got %s", c.st.ClusterVersion, meta.Version)
	}
	if old == nil {
		c.st.Stores[meta.ID] = c.newStore(meta)
	} else {
		// Labels that were set through PD stay, those that the store names win.
		meta.Labels = mergeLabels(old.Meta.Labels, meta.Labels)
		old.Meta = meta
		old.lastSeen = c.now()
	}
	c.st.ClusterVersion = clusterVersion(c.st.Stores, c.st.ClusterVersion)
	return c.save()
}

func (c *Cluster) newStore(meta StoreMeta) *Store {
	return &Store{Meta: meta, LeaderWeight: 1, RegionWeight: 1, lastSeen: c.now()}
}

// Heartbeat is a store's sign of life. A removed store is refused.
func (c *Cluster) Heartbeat(id uint64, stats StoreStats) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	s := c.st.Stores[id]
	if s == nil {
		return storeNotFound(id)
	}
	if s.State == StoreTombstone {
		return storeRemoved(id)
	}
	now := c.now()
	c.beat(s, stats, now)
	if c.dirty {
		return c.save()
	}
	return nil
}

func (c *Cluster) beat(s *Store, stats StoreStats, now time.Time) {
	if s.LastHeartbeat.IsZero() || now.Sub(s.lastSaved) >= c.opts.Timing.SaveHeartbeat {
		s.lastSaved = now
		c.dirty = true
	}
	s.LastHeartbeat, s.lastSeen, s.stats, s.heard = now, now, stats, true
	c.split(s)
	c.promote(now)
}

// promote turns stores that have been filled from Preparing to Serving.
func (c *Cluster) promote(now time.Time) {
	idx := c.index()
	for _, s := range c.st.Stores {
		if s.State != StoreUp || s.Node != NodePreparing || s.LastHeartbeat.IsZero() {
			continue
		}
		small := len(c.st.Regions) < 100 || s.Meta.IsTiFlash()
		full := float64(idx.peers[s.Meta.ID]) >= 0.9*c.share(s, idx)
		old := now.Sub(time.Unix(s.Meta.StartTimestamp, 0)) > c.duration("schedule", "max-store-preparing-time")
		if small || full || old {
			s.Node = NodeServing
			c.dirty = true
		}
	}
}

// share is how many peers a store should hold by its place: every zone the
// same, within a zone every host the same, and so on down the location labels.
func (c *Cluster) share(s *Store, idx index) float64 {
	var near []*Store
	total := 0
	for id, o := range c.st.Stores {
		if o.State == StoreUp && !o.Meta.IsTiFlash() {
			near = append(near, o)
			total += idx.peers[id]
		}
	}
	weight := 1.0
	for _, level := range c.locationLabels() {
		values := map[string]bool{}
		var same []*Store
		for _, o := range near {
			values[labelOf(o, level)] = true
			if labelOf(o, level) == labelOf(s, level) {
				same = append(same, o)
			}
		}
		weight /= float64(max(len(values), 1))
		near = same
	}
	return float64(total) * weight / float64(max(len(near), 1))
}

// stateName is the state as PD shows it, partly computed from the time since
// the last heartbeat.
func (c *Cluster) stateName(s *Store, now time.Time) string {
	switch s.State {
	case StoreOffline:
		return "Offline"
	case StoreTombstone:
		return "Tombstone"
	default:
	}
	unseen := now.Sub(s.LastHeartbeat)
	switch {
	case s.LastHeartbeat.IsZero() || unseen > c.duration("schedule", "max-store-down-time"):
		return "Down"
	case unseen > c.opts.Timing.Disconnected:
		return "Disconnected"
	default:
		return "Up"
	}
}

// Stores returns all stores, tombstones included, by id.
func (c *Cluster) Stores() ([]StoreView, error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return nil, ErrNotBootstrapped
	}
	now, idx := c.now(), c.index()
	views := make([]StoreView, 0, len(c.st.Stores))
	for _, s := range c.st.Stores {
		views = append(views, c.view(s, now, idx))
	}
	sort.Slice(views, func(i, j int) bool { return views[i].Meta.ID < views[j].Meta.ID })
	return views, nil
}

// Store returns one store.
func (c *Cluster) Store(id uint64) (StoreView, error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return StoreView{}, ErrNotBootstrapped
	}
	s := c.st.Stores[id]
	if s == nil {
		return StoreView{}, storeNotFound(id)
	}
	return c.view(s, c.now(), c.index()), nil
}

func (c *Cluster) view(s *Store, now time.Time, idx index) StoreView {
	id := s.Meta.ID
	meta := s.Meta
	meta.Labels = slices.Clone(meta.Labels)
	return StoreView{
		Meta: meta, State: s.State, Node: s.Node, StateName: c.stateName(s, now),
		LastHeartbeat: s.LastHeartbeat, PhysicallyDestroyed: s.PhysicallyDestroyed, Stats: s.stats,
		Leaders: idx.leaders[id], Regions: idx.peers[id], Learners: idx.learners[id],
		LeaderWeight: s.LeaderWeight, RegionWeight: s.RegionWeight,
		// Before its first heartbeat ever a new store's sizes come from its regions.
		Sized: s.heard || s.LastHeartbeat.IsZero(),
	}
}

// RemoveStore sets a store Offline. It is refused when too few stores would
// remain; force says that the store is gone for good and is never refused.
func (c *Cluster) RemoveStore(id uint64, force bool) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	s := c.st.Stores[id]
	switch {
	case s == nil:
		return storeNotFound(id)
	case s.State == StoreOffline && s.PhysicallyDestroyed == force:
		return nil
	case s.State == StoreTombstone:
		return storeRemoved(id)
	case s.PhysicallyDestroyed:
		return storeDestroyed(id)
	case s.State == StoreUp && !force:
		if err := c.checkRemoval(id); err != nil {
			return err
		}
	default:
	}
	s.State, s.Node, s.PhysicallyDestroyed = StoreOffline, NodeRemoving, force
	s.removeStart, s.removeSince = c.index().peers[id], c.now()
	return c.save()
}

// RemoveFailedStores makes tombstones of stores that PD does not hear of; their peers stay. It does
// no more of what PD does then: new majorities need reports of TiKV.
func (c *Cluster) RemoveFailedStores(ids []uint64) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	for _, id := range ids {
		switch s := c.st.Stores[id]; {
		case s == nil:
			return invalidRecovery("store %d doesn't exist", id)
		case s.State == StoreUp && c.stateName(s, c.now()) == "Up":
			return invalidRecovery("store %d is up and connected", id)
		}
	}
	for _, id := range ids {
		c.st.Stores[id].State, c.st.Stores[id].Node = StoreTombstone, NodeRemoved
	}
	return c.save()
}

// checkRemoval counts by administrative state, as PD does: a Down store still counts as up.
func (c *Cluster) checkRemoval(id uint64) error {
	up := 0
	evicted := 0
	evicting := c.evicted()
	for other, s := range c.st.Stores {
		if s.State != StoreUp {
			continue
		}
		up++
		if other != id && evicting[other] {
			evicted++
		}
	}
	if left := up - 1; left < c.maxReplicas() {
		return storesNotEnough(id, left, c.maxReplicas())
	} else if left > 0 && evicted == left {
		return noStoreForLeader(id)
	}
	return nil
}

// SetStoreState sets a store to Up (which takes a removal back) or Offline.
func (c *Cluster) SetStoreState(id uint64, name string) error {
	if name != "Up" && name != "Offline" {
		return badInput("invalid state %s", name)
	}
	if name == "Offline" {
		return c.RemoveStore(id, false)
	}
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	s := c.st.Stores[id]
	switch {
	case s == nil:
		return storeNotFound(id)
	case s.State == StoreTombstone:
		return storeRemoved(id)
	case s.PhysicallyDestroyed:
		return storeDestroyed(id)
	case s.State == StoreUp:
		return nil
	}
	s.State, s.Node = StoreUp, NodeServing
	return c.save()
}

// RemoveTombstones forgets all stores that have left.
func (c *Cluster) RemoveTombstones() error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	for id, s := range c.st.Stores {
		if s.State == StoreTombstone {
			delete(c.st.Stores, id)
		}
	}
	return c.save()
}

// SetStoreLabels merges labels into a store's; an empty value removes a label.
// With replace, labels that are not given go.
func (c *Cluster) SetStoreLabels(id uint64, labels []Label, replace bool) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	s := c.st.Stores[id]
	if s == nil {
		return storeNotFound(id)
	}
	old := s.Meta.Labels
	if replace {
		old = nil
	}
	s.Meta.Labels = mergeLabels(old, labels)
	return c.save()
}

// DeleteStoreLabel takes one label off a store.
func (c *Cluster) DeleteStoreLabel(id uint64, key string) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	s := c.st.Stores[id]
	if s == nil {
		return storeNotFound(id)
	}
	i := slices.IndexFunc(s.Meta.Labels, func(l Label) bool { return strings.EqualFold(l.Key, key) })
	if i < 0 {
		return &Error{Text: fmt.Sprintf("the label key %s does not exist", key), Status: 500}
	}
	s.Meta.Labels = slices.Delete(s.Meta.Labels, i, i+1)
	return c.save()
}

// SetStoreWeight sets how much a store should carry, relative to 1.
func (c *Cluster) SetStoreWeight(id uint64, leader, region float64) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	s := c.st.Stores[id]
	if s == nil {
		return storeNotFound(id)
	}
	s.LeaderWeight, s.RegionWeight = leader, region
	return c.save()
}

// StoreLimits returns the limits of all stores that have not left.
func (c *Cluster) StoreLimits() (map[uint64]StoreLimit, error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return nil, ErrNotBootstrapped
	}
	return c.storeLimits(), nil
}

func (c *Cluster) storeLimits() map[uint64]StoreLimit {
	out := map[uint64]StoreLimit{}
	for id, s := range c.st.Stores {
		if s.State == StoreTombstone {
			continue
		}
		out[id] = StoreLimit{AddPeer: 15, RemovePeer: 15}
		if l, ok := c.st.StoreLimits[id]; ok {
			out[id] = l
		}
	}
	return out
}

// SetStoreLimit sets the limits of one store; id 0 means all.
func (c *Cluster) SetStoreLimit(id uint64, limit StoreLimit) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	if c.st.StoreLimits == nil {
		c.st.StoreLimits = map[uint64]StoreLimit{}
	}
	for other := range c.st.Stores {
		if id == 0 || id == other {
			c.st.StoreLimits[other] = limit
		}
	}
	return c.save()
}

// Progress says how far a removal or a preparation has come. Left is in
// seconds; a huge number means that it is unknown.
type Progress struct {
	Action   string
	StoreID  uint64
	Done     float64
	Speed    float64
	LeftSecs float64
}

// Progresses returns what is going on: stores being removed or prepared.
func (c *Cluster) Progresses() ([]Progress, error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return nil, ErrNotBootstrapped
	}
	now, idx := c.now(), c.index()
	var out []Progress
	for id, s := range c.st.Stores {
		switch {
		case s.State == StoreOffline:
			out = append(out, removalProgress(id, s, idx.peers[id], now))
		case s.State == StoreUp && s.Node == NodePreparing && !s.LastHeartbeat.IsZero():
			out = append(out, Progress{Action: "preparing", StoreID: id, LeftSecs: maxFloat})
		default:
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].StoreID < out[j].StoreID })
	return out, nil
}

const maxFloat = 1.7976931348623157e+308

func removalProgress(id uint64, s *Store, left int, now time.Time) Progress {
	p := Progress{Action: "removing", StoreID: id, LeftSecs: maxFloat}
	took := now.Sub(s.removeSince).Seconds()
	moved := s.removeStart - left
	// PD looks every ten seconds; before that it has nothing to say.
	if took < 10 || moved <= 0 || s.removeStart == 0 {
		return p
	}
	p.Done = float64(moved) / float64(s.removeStart)
	p.Speed = float64(moved*RegionSizeMiB) / took
	p.LeftSecs = float64(left*RegionSizeMiB) / p.Speed
	return p
}

func mergeLabels(old, add []Label) []Label {
	out := slices.Clone(old)
	for _, l := range add {
		i := slices.IndexFunc(out, func(o Label) bool { return strings.EqualFold(o.Key, l.Key) })
		switch {
		case i < 0 && l.Value != "":
			out = append(out, l)
		case i >= 0 && l.Value == "":
			out = slices.Delete(out, i, i+1)
		case i >= 0:
			out[i].Value = l.Value
		}
	}
	return out
}

// IsTiFlash says whether a store holds columns: by the label that TiFlash gives
// itself, as in PD.
func (m StoreMeta) IsTiFlash() bool {
	return slices.ContainsFunc(m.Labels, func(l Label) bool {
		return l.Key == "engine" && strings.HasPrefix(l.Value, "tiflash")
	})
}
