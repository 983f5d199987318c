package pd

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// View is what one poll of a PD found. Nothing in it changes by itself while
// PD is idle. A View is shared between its readers: do not change it.
type View struct {
	// ClusterID in decimal; empty if unknown.
	ClusterID string
	// Leader is the name of the member that leads; empty if there is none.
	Leader string
	// Members that PD lists, sorted by name.
	Members []Member
	// Bootstrapped says that a store has registered with PD at least once.
	// False is not a failure: no TiKV has started yet.
	Bootstrapped bool
	// Stores sorted by ID, without tombstones.
	Stores []Store
	// LocationLabels, most significant first.
	LocationLabels []string
	// IsolationLevel is which of the LocationLabels no two peers of a region may
	// have in common; empty if none. Placement rules have one of their own instead.
	IsolationLevel string
	// MaxReplicas of a region.
	MaxReplicas int
	// PlacementRules says that placement rules are enabled.
	PlacementRules bool
	// EvictLeader lists the stores, by ID and in the order of Stores, that PD
	// takes the leaders away from and gives none, because it was asked to.
	EvictLeader []string
	// EvictionsUnknown says that PD has not loaded its schedulers yet, of which one takes
	// leaders away: EvictLeader is empty until then. A new leader of PD waits up to five
	// minutes for the heartbeats of nearly all regions before.
	EvictionsUnknown bool
	// Rules by which PD places peers, sorted by group and ID; empty while
	// placement rules are off or no store has registered.
	Rules []Rule
	// Config is the configuration that PD stores for all members, each value as JSON by
	// its key with dots, of the tables in StoredSections; nil unless the client was told
	// to ask for it.
	Config map[string]string
	// MajorityLost says that PD lists a region whose voters on stores that it hears of are no
	// majority. It is asked for while enough stores are missed, and is as old as that answer.
	MajorityLost bool
	// MajorityUnknown says that PD has not answered whether it lists one without the stores that
	// are missed now: they are others since, it did not answer, or the operator has just started.
	MajorityUnknown bool
	// ForceRemoved are the stores, by ID, that PD has removed since regions lost their majority with
	// them: a user has it remove them by force, and it makes new majorities.
	ForceRemoved []string
	// Err is why PD could not be asked; the other fields are empty then.
	Err error
}

// Member of PD.
type Member struct {
	// Name that the member gave itself; empty until it has started once.
	Name string
	// ID in decimal.
	ID string
	// ClientURL is the first of the URLs that clients may use.
	ClientURL string
	// PeerURL is the first of the URLs that members use.
	PeerURL string
	// OtherPeerURL is the second of them; empty if there is one alone.
	OtherPeerURL string
	// Healthy says that the leader reaches the member.
	Healthy bool
}

// Store is a member of a group of stores that has registered with PD.
type Store struct {
	// ID in decimal.
	ID string
	// Address that the store advertises, host:port.
	Address string
	// StatusAddress is where the store answers about itself, host:port.
	StatusAddress string
	// State is PD's word for it: Up, Disconnected, Down or Offline. After a
	// change of PD's leader every store is Disconnected for some seconds.
	State string
	// NotUpSince is since when it is Disconnected or Down, zero while it is neither: see NoteNotUp.
	NotUpSince time.Time
	// HeartbeatAge is for how long the store has certainly sent PD no heartbeat, by PD's own time.
	HeartbeatAge time.Duration
	// Missed says of one that is Offline, as PD calls it either way, that PD has not heard of it for
	// as long as makes another one Disconnected.
	Missed bool
	// Version that the store reports.
	Version string
	// Labels that PD places replicas by.
	Labels map[string]string
	// Started says that the store has sent a heartbeat. One that has only registered is Down, too.
	Started bool
	// Leaders and Regions are the numbers of regions that the store leads and has a peer of, by its
	// last heartbeat.
	Leaders, Regions int
	// LowSpace says that less than a fifth of the store's disk was free when PD last
	// heard of it: PD gives such a store no regions (schedule.low-space-ratio of PD,
	// 0.8 unless a user changes it). A store with few regions may have less.
	LowSpace bool
}

// EngineLabel is by which PD knows stores that have learners only.
const EngineLabel = "engine"

// HasLearnersOnly reports whether a store has learners only: it leads nothing, and no majority
// counts on it.
func (s Store) HasLearnersOnly() bool {
	for key, value := range s.Labels {
		if strings.EqualFold(key, EngineLabel) {
			return v1alpha1.HasLearnersOnly(value)
		}
	}
	return false
}

// The states of a store, as PD names them.
const (
	// StateUp serves.
	StateUp = "Up"
	// StateDisconnected has not been heard of for 20 s.
	StateDisconnected = "Disconnected"
	// StateDown has not been heard of for max-store-down-time, or never.
	StateDown = "Down"
	// StateOffline is giving its regions away.
	StateOffline = "Offline"
	// StateTombstone has left.
	StateTombstone = "Tombstone"
)

// StoredSections are the tables of pd.toml that PD reads when it bootstraps a cluster and
// stores from then on: its file counts no more for them, and its API changes them (in
// PD's sources server/config.PersistOptions and server/api.confHandler.SetConfig).
func StoredSections() []string {
	return []string{"schedule", "replication", "pd-server", "replication-mode", "keyspace", "micro-service"}
}

// WithSettings returns a View with what people and operators set in PD, as another one has
// it, and whether that may hold: both are of the same cluster with stores, and of the same
// leader. If it may not, or one of them is an error, the View is returned as it is.
func (v View) WithSettings(of View) (View, bool) {
	if !v.Bootstrapped || !of.Bootstrapped || v.ClusterID != of.ClusterID || v.Leader != of.Leader || of.EvictionsUnknown {
		return v, false
	}
	v.LocationLabels, v.IsolationLevel, v.MaxReplicas = of.LocationLabels, of.IsolationLevel, of.MaxReplicas
	v.PlacementRules, v.EvictLeader, v.Rules, v.Config = of.PlacementRules, of.EvictLeader, of.Rules, of.Config
	return v, true
}

// HasQuorum reports whether there is a leader and a majority of the members
// is healthy.
func (v View) HasQuorum() bool {
	if v.Err != nil || v.Leader == "" {
		return false
	}
	return v.CountHealthy() >= Majority(len(v.Members))
}

// Member returns the member of a name.
func (v View) Member(name string) (Member, bool) {
	at := slices.IndexFunc(v.Members, func(m Member) bool { return m.Name == name })
	if name == "" || at < 0 {
		return Member{}, false
	}
	return v.Members[at], true
}

// StoreAt returns the store that advertises an address, host:port.
func (v View) StoreAt(address string) (Store, bool) {
	at := slices.IndexFunc(v.Stores, func(s Store) bool { return s.Address == address })
	if address == "" || at < 0 {
		return Store{}, false
	}
	return v.Stores[at], true
}

// Store returns the store of an ID.
func (v View) Store(id string) (Store, bool) {
	at := slices.IndexFunc(v.Stores, func(s Store) bool { return s.ID == id })
	if at < 0 {
		return Store{}, false
	}
	return v.Stores[at], true
}

// EvictsLeaders reports whether PD takes the leaders of a store away.
func (v View) EvictsLeaders(storeID string) bool { return slices.Contains(v.EvictLeader, storeID) }

// MayEvictLeaders reports whether PD takes the leaders of a store away, or may do so once it
// has loaded its schedulers.
func (v View) MayEvictLeaders(storeID string) bool {
	return v.EvictionsUnknown || v.EvictsLeaders(storeID)
}

// Equal reports whether two views say the same. Errors are the same if they
// read the same. The numbers of leaders and regions count only where a reconcile
// waits for them, at a store that is Offline or gives its leaders away: a
// cluster that is merely busy says the same all the time.
func (v View) Equal(w View) bool {
	return v.ClusterID == w.ClusterID && v.Leader == w.Leader && v.Bootstrapped == w.Bootstrapped &&
		v.IsolationLevel == w.IsolationLevel && v.MaxReplicas == w.MaxReplicas && v.PlacementRules == w.PlacementRules && v.MajorityLost == w.MajorityLost && v.MajorityUnknown == w.MajorityUnknown && slices.Equal(v.ForceRemoved, w.ForceRemoved) &&
		slices.Equal(v.Members, w.Members) &&
		slices.EqualFunc(v.Stores, w.Stores, func(s, t Store) bool {
			return s.Equal(t) && (!v.EvictsLeaders(s.ID) || s.hasSameLoad(t))
		}) &&
		slices.Equal(v.LocationLabels, w.LocationLabels) &&
		slices.Equal(v.EvictLeader, w.EvictLeader) && v.EvictionsUnknown == w.EvictionsUnknown &&
		slices.EqualFunc(v.Rules, w.Rules, Rule.Equal) &&
		maps.Equal(v.Config, w.Config) &&
		fmt.Sprint(v.Err) == fmt.Sprint(w.Err)
}

// Equal reports whether PD says the same of two stores. Leaders and Regions
// count only if they are Offline.
func (s Store) Equal(t Store) bool {
	return s.ID == t.ID && s.Address == t.Address && s.StatusAddress == t.StatusAddress &&
		s.State == t.State && s.NotUpSince.Equal(t.NotUpSince) && s.Missed == t.Missed && s.Version == t.Version && s.Started == t.Started &&
		maps.Equal(s.Labels, t.Labels) &&
		(s.State != StateOffline || s.hasSameLoad(t))
}

// PodName is the pod that a store's address names.
func (s Store) PodName() string {
	name, _, _ := strings.Cut(s.Address, ".")
	return name
}

// IsUnreachable reports whether PD does not hear of a store, and does not remove it.
func (s Store) IsUnreachable() bool { return s.State == StateDisconnected || s.State == StateDown }

// LacksProcess reports whether PD does not hear of a store, be it that it removes it.
func (s Store) LacksProcess() bool { return s.IsUnreachable() || s.Missed }

func (s Store) hasSameLoad(t Store) bool { return s.Leaders == t.Leaders && s.Regions == t.Regions }

// settledAfter is how long answers have called a store not Up before HeartbeatAge counts: a new
// leader of PD hears of a store that runs within ten seconds.
const settledAfter = 2 * time.Minute

// NoteNotUp notes since when stores are Disconnected or Down: since the first of the answers
// without a break that say so, this one coming now, or for as long as PD has had no heartbeat: a
// poll may have failed.
func (v *View) NoteNotUp(before View, now time.Time) {
	for n, s := range v.Stores {
		if !s.IsUnreachable() {
			continue
		}
		since := now
		if known, listed := before.Store(s.ID); listed && !known.NotUpSince.IsZero() {
			since = known.NotUpSince
		}
		// What changes by seconds is no news.
		if heard := now.Add(-s.HeartbeatAge); now.Sub(since) >= settledAfter && since.Sub(heard) > time.Minute {
			since = heard
		}
		v.Stores[n].NotUpSince = since
	}
}
