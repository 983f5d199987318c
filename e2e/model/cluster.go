package model

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"
)

// Timing is how fast things happen that take time in a real cluster.
type Timing struct {
	// PeerMoves is how many peers are moved per second.
	PeerMoves float64
	// LeaderMoves is how many leaders are moved per second.
	LeaderMoves float64
	// Disconnected is how long a store may send no heartbeat before it is called so.
	Disconnected time.Duration
	// Election is how long a region's leader may be dead before another is elected.
	Election time.Duration
	// CatchUp is for how long PD calls the peers of a region pending that has a new
	// leader.
	CatchUp time.Duration
	// Heartbeat is how often a store sends one that is known to be alive.
	Heartbeat time.Duration
	// SaveHeartbeat is how often the last heartbeat of a store is made durable.
	SaveHeartbeat time.Duration
}

// DefaultTiming has PD's own 20 s for Disconnected and 5 min for saving
// heartbeats; leaders move as fast as recorded, peers some three times as fast.
func DefaultTiming() Timing {
	return Timing{
		PeerMoves: 4, LeaderMoves: 20,
		Disconnected: 20 * time.Second, Election: 10 * time.Second, CatchUp: 500 * time.Millisecond, Heartbeat: 10 * time.Second, SaveHeartbeat: 5 * time.Minute,
	}
}

// Options set a new cluster up.
type Options struct {
	// Clock is where time comes from; nil means the wall clock.
	Clock Clock
	// Regions is how many regions the cluster has once its first store serves; 0 means 104.
	Regions int
	// Timing is how fast things happen; the zero value means DefaultTiming.
	Timing Timing
	// Config is laid over PD's defaults, section by section, as in pd.toml.
	Config map[string]any
	// Save makes the state durable. A change that can't be saved did not happen.
	Save func(state []byte) error
	// OnAlarm is told of every alarm, with the cluster locked: it must not call back.
	OnAlarm func(Alarm)
}

// Cluster is what a PD leader knows and does. Its methods are safe for
// concurrent use.
type Cluster struct {
	mu   sync.Mutex
	opts Options
	st   state

	nextID       uint64
	lastStep     time.Time
	peerCredit   float64
	leaderCredit float64
	dirty        bool
	alarms       []Alarm
	alarmed      map[string]bool
	sections     map[string]section
}

const idBatch = 1000

// NewCluster returns a cluster that no store has joined yet.
func NewCluster(opts Options) (*Cluster, error) {
	c := &Cluster{opts: withDefaults(opts), nextID: 1, alarmed: map[string]bool{}, sections: map[string]section{}}
	cfg, err := defaultConfig()
	if err != nil {
		return nil, err
	}
	c.st = state{
		Stores:         map[uint64]*Store{},
		Schedulers:     defaultSchedulers(),
		Config:         cfg,
		ClusterVersion: "0.0.0",
		RuleGroups:     []RuleGroup{{ID: "tiflash", Index: 120}},
		GlobalConfig:   map[string]string{},
	}
	if err := c.overlayConfig(c.opts.Config); err != nil {
		return nil, err
	}
	c.st.Rules = []Rule{{
		GroupID: "pd", ID: "default", Role: "voter",
		Count: c.maxReplicas(), LocationLabels: c.locationLabels(), IsolationLevel: c.isolationLevel(),
	}}
	c.lastStep = c.now()
	return c, nil
}

// LoadCluster takes over the state that another PD leader saved. As in a real
// PD, every store counts as Disconnected until its next heartbeat.
func LoadCluster(data []byte, opts Options) (*Cluster, error) {
	c := &Cluster{opts: withDefaults(opts), alarmed: map[string]bool{}, sections: map[string]section{}}
	if err := json.Unmarshal(data, &c.st); err != nil {
		return nil, fmt.Errorf("decode cluster state: %w", err)
	}
	if c.st.Stores == nil {
		c.st.Stores = map[uint64]*Store{}
	}
	if c.st.GlobalConfig == nil {
		c.st.GlobalConfig = map[string]string{}
	}
	c.nextID = max(c.st.IDCeiling, 1)
	now := c.now()
	c.lastStep = now
	for _, s := range c.st.Stores {
		s.lastSeen = now
		// The saved heartbeat is old in a real PD, since it is saved rarely.
		if stale := now.Add(-2 * c.opts.Timing.Disconnected); s.LastHeartbeat.After(stale) {
			s.LastHeartbeat = stale
		}
	}
	return c, nil
}

func withDefaults(o Options) Options {
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.Regions == 0 {
		o.Regions = 104
	}
	if o.Timing == (Timing{}) {
		o.Timing = DefaultTiming()
	}
	return o
}

// Encode returns the state for another PD to take over.
func (c *Cluster) Encode() ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.encode()
}

func (c *Cluster) encode() ([]byte, error) {
	data, err := json.Marshal(&c.st)
	if err != nil {
		return nil, fmt.Errorf("encode cluster state: %w", err)
	}
	return data, nil
}

// Tick lets the time pass that has passed, and saves what has changed by it.
func (c *Cluster) Tick() error {
	c.lock()
	defer c.mu.Unlock()
	if !c.dirty {
		return nil
	}
	return c.save()
}

// IsBootstrapped says whether a first store has ever joined.
func (c *Cluster) IsBootstrapped() bool {
	c.lock()
	defer c.mu.Unlock()
	return c.isBootstrapped()
}

// BootstrappedAt is when the first store joined; zero before.
func (c *Cluster) BootstrappedAt() time.Time {
	c.lock()
	defer c.mu.Unlock()
	return c.st.BootstrappedAt
}

// Now is the time by the cluster's clock.
func (c *Cluster) Now() time.Time { return c.now() }

// AllocID returns an id that was never given out before.
func (c *Cluster) AllocID() (uint64, error) {
	c.lock()
	defer c.mu.Unlock()
	id := c.newID()
	if !c.dirty {
		return id, nil
	}
	return id, c.save()
}

// Alarms returns all alarms that were raised so far.
func (c *Cluster) Alarms() []Alarm {
	c.lock()
	defer c.mu.Unlock()
	return append([]Alarm(nil), c.alarms...)
}

func (c *Cluster) isBootstrapped() bool { return !c.st.BootstrappedAt.IsZero() }

func (c *Cluster) now() time.Time { return c.opts.Clock.Now() }

// lock locks the cluster and brings it up to now.
func (c *Cluster) lock() {
	c.mu.Lock()
	c.advance(c.now())
}

func (c *Cluster) newID() uint64 {
	id := c.nextID
	c.nextID++
	if c.nextID > c.st.IDCeiling {
		// Ids are made durable a batch at a time; a PD that takes over starts at the next batch.
		c.st.IDCeiling = c.nextID + idBatch
		c.dirty = true
	}
	return id
}

func (c *Cluster) save() error {
	if c.opts.Save == nil {
		c.dirty = false
		return nil
	}
	data, err := c.encode()
	if err != nil {
		return err
	}
	if err := c.opts.Save(data); err != nil {
		return fmt.Errorf("save cluster state: %w", err)
	}
	c.dirty = false
	return nil
}

func (c *Cluster) raise(kind AlarmKind, subject, format string, args ...any) {
	key := string(kind) + "/" + subject
	if c.alarmed[key] {
		return
	}
	c.alarmed[key] = true
	a := Alarm{At: c.now(), Kind: kind, Subject: subject, Message: fmt.Sprintf(format, args...)}
	c.alarms = append(c.alarms, a)
	if c.opts.OnAlarm != nil {
		c.opts.OnAlarm(a)
	}
}
