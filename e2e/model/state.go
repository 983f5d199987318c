package model

import (
	"encoding/json"
	"time"
)

// StoreState is the administrative state of a store, with PD's numbers.
type StoreState int

// The states of a store that PD stores. Disconnected and Down are not among
// them: they are computed from heartbeats.
const (
	StoreUp        StoreState = 0
	StoreOffline   StoreState = 1
	StoreTombstone StoreState = 2
)

// NodeState is the finer state that PD keeps beside [StoreState].
type NodeState int

// The node states, with PD's numbers.
const (
	NodePreparing NodeState = 0
	NodeServing   NodeState = 1
	NodeRemoving  NodeState = 2
	NodeRemoved   NodeState = 3
)

// Label is one key and value on a store.
type Label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// StoreMeta is what a store says about itself when it registers.
type StoreMeta struct {
	ID             uint64  `json:"id"`
	Address        string  `json:"address"`
	PeerAddress    string  `json:"peer_address,omitempty"`
	StatusAddress  string  `json:"status_address,omitempty"`
	Version        string  `json:"version,omitempty"`
	GitHash        string  `json:"git_hash,omitempty"`
	DeployPath     string  `json:"deploy_path,omitempty"`
	StartTimestamp int64   `json:"start_timestamp,omitempty"`
	Labels         []Label `json:"labels,omitempty"`
}

// StoreStats is what a store says in a heartbeat, in bytes.
type StoreStats struct {
	Capacity  uint64
	Available uint64
	Used      uint64
}

// Liveness is what is physically true of a store's process, where the model
// knows it; PD itself only ever guesses from heartbeats.
type Liveness int

const (
	livenessUnknown Liveness = iota
	livenessAlive
	livenessDead
)

// Store is one store in PD's books.
type Store struct {
	Meta                StoreMeta  `json:"meta"`
	State               StoreState `json:"state,omitempty"`
	Node                NodeState  `json:"node,omitempty"`
	LastHeartbeat       time.Time  `json:"lastHeartbeat,omitzero"`
	PhysicallyDestroyed bool       `json:"physicallyDestroyed,omitempty"`
	LeaderWeight        float64    `json:"leaderWeight,omitempty"`
	RegionWeight        float64    `json:"regionWeight,omitempty"`

	// Not kept when another PD takes over.
	stats       StoreStats
	heard       bool      // a heartbeat has come to this PD leader
	lastSeen    time.Time // last sign of life, or when this PD took over
	lastSaved   time.Time
	liveness    Liveness
	dataLost    bool
	nextBeat    time.Time // of a store known to be alive
	removeStart int       // peers when the removal began
	removeSince time.Time
}

// Peer is one replica of a region.
type Peer struct {
	ID      uint64 `json:"id"`
	StoreID uint64 `json:"s"`
	Learner bool   `json:"l,omitempty"`
}

// Region is one key range and its replicas.
type Region struct {
	ID      uint64 `json:"id"`
	Start   string `json:"start,omitempty"`
	End     string `json:"end,omitempty"`
	ConfVer uint64 `json:"cv"`
	Version uint64 `json:"v"`
	Peers   []Peer `json:"peers"`
	// Leader is the id of the leading peer.
	Leader uint64 `json:"leader"`

	// led is since when it leads.
	led time.Time
}

// lead makes a peer the leader.
func (r *Region) lead(peer uint64, now time.Time) { r.Leader, r.led = peer, now }

// Rule is one placement rule, kept as PD shows it.
type Rule struct {
	GroupID          string            `json:"group_id"`
	ID               string            `json:"id"`
	Index            int               `json:"index,omitempty"`
	Override         bool              `json:"override,omitempty"`
	StartKeyHex      string            `json:"start_key"`
	EndKeyHex        string            `json:"end_key"`
	Role             string            `json:"role"`
	IsWitness        bool              `json:"is_witness"`
	Count            int               `json:"count"`
	LabelConstraints []LabelConstraint `json:"label_constraints,omitempty"`
	LocationLabels   []string          `json:"location_labels,omitempty"`
	IsolationLevel   string            `json:"isolation_level,omitempty"`
}

// LabelConstraint restricts a rule to stores by label.
type LabelConstraint struct {
	Key    string   `json:"key,omitempty"`
	Op     string   `json:"op,omitempty"`
	Values []string `json:"values,omitempty"`
}

// RuleGroup is a group of placement rules with its rank.
type RuleGroup struct {
	ID       string `json:"id"`
	Index    int    `json:"index"`
	Override bool   `json:"override"`
}

// ServiceSafePoint keeps garbage collection from passing it until it expires.
type ServiceSafePoint struct {
	ServiceID string `json:"service_id"`
	ExpiredAt int64  `json:"expired_at"`
	SafePoint uint64 `json:"safe_point"`
}

// state is all that another PD needs to take over. It is kept as JSON.
type state struct {
	BootstrappedAt time.Time                  `json:"bootstrappedAt,omitzero"`
	IDCeiling      uint64                     `json:"idCeiling"`
	Stores         map[uint64]*Store          `json:"stores"`
	Regions        []*Region                  `json:"regions"`
	Schedulers     []*Scheduler               `json:"schedulers"`
	Config         map[string]json.RawMessage `json:"config"`
	ClusterVersion string                     `json:"clusterVersion"`
	Rules          []Rule                     `json:"rules"`
	RuleGroups     []RuleGroup                `json:"ruleGroups"`
	GCSafePoint    uint64                     `json:"gcSafePoint"`
	SafePoints     []ServiceSafePoint         `json:"safePoints,omitempty"`
	GlobalConfig   map[string]string          `json:"globalConfig,omitempty"`
	ExternalTS     uint64                     `json:"externalTS,omitempty"`
	StoreLimits    map[uint64]StoreLimit      `json:"storeLimits,omitempty"`
}

// StoreLimit is how many peers a minute may be moved to and from a store.
type StoreLimit struct {
	AddPeer    float64 `json:"add-peer"`
	RemovePeer float64 `json:"remove-peer"`
}
