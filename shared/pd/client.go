package pd

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// Client asks one PD and orders it about. Every call ends with its context.
// An error is, or wraps, an *Unreachable, a *Refused or a *Malformed;
// errors.Is(err, ErrNotBootstrapped) reports that no store has registered yet.
type Client interface {
	// View asks for everything that a View holds. The returned View carries
	// the error too.
	View(ctx context.Context) (View, error)
	// Refresh asks who is there, how they are, and for the stores. Settings are those of
	// before, unless PD is another one by now: then it is View.
	Refresh(ctx context.Context, before View) (View, error)
	// SetStoreLabels sets labels of a store and leaves its others alone. One
	// without a value is removed.
	SetStoreLabels(ctx context.Context, storeID string, labels map[string]string) error
	// EnablePlacementRules turns placement rules on; harmless if they are.
	EnablePlacementRules(ctx context.Context) error
	// SetConfig changes PD's configuration while it runs. The keys are dotted,
	// like schedule.max-store-down-time. PD takes one after the other: when it
	// refuses one, others may be in force.
	SetConfig(ctx context.Context, items map[string]any) error

	// TransferLeader asks for the member of a name to become the leader. PD
	// only notes it; View reports when it has happened. It is harmless if the
	// member leads already.
	TransferLeader(ctx context.Context, member string) error
	// DeleteMember removes the member of an ID. PD removes the leader too if
	// it is asked to, so move that first. PD refuses it while etcd holds the
	// majority to be in danger, and for an ID that it does not list.
	DeleteMember(ctx context.Context, id string) error
	// SetPeerURLs sets the URLs at which the others reach the member of an ID, that to
	// be tried first at the beginning. It is harmless if it has them already.
	SetPeerURLs(ctx context.Context, id string, urls []string) error

	// EvictLeaders has PD take the leaders of a store away and keep them away;
	// harmless if it does already. PD refuses it for a store that it does not
	// know. View.EvictLeader tells for which stores it is in force.
	EvictLeaders(ctx context.Context, storeID string) error
	// StopEvictingLeaders lets a store have leaders again; harmless if it may.
	StopEvictingLeaders(ctx context.Context, storeID string) error

	// DeleteStore has a store give its regions away: it is Offline, and a
	// tombstone once it has none. It is harmless if the store is Offline. PD
	// refuses it while too few stores would stay for max-replicas, for a store
	// that it does not know and for a tombstone.
	DeleteStore(ctx context.Context, storeID string) error
	// RestoreStore takes DeleteStore back while the store is Offline; harmless
	// if it is not. PD refuses it for a tombstone.
	RestoreStore(ctx context.Context, storeID string) error

	// UnhealthyRegions returns the regions with a peer that is down or pending,
	// and those with fewer peers than they should have, sorted by ID; none if no
	// store has registered. It is not enough to look for a store that is gone: its
	// peers are down only after TiKV's max-peer-down-duration, 10 minutes by
	// default, its state tells sooner.
	UnhealthyRegions(ctx context.Context) ([]Region, error)

	// FindRegion looks through the regions that a store has a peer of and returns
	// the first that is sought, and whether there is one. A region's Missing is not
	// filled in. The answer is as long as the store has regions, about 1 kB for each;
	// it is read as it comes, and no more of it than it takes.
	FindRegion(ctx context.Context, storeID string, sought func(Region) bool) (Region, bool, error)

	// RemovedStores returns the stores, by ID, that PD has made tombstones of while regions have
	// peers on them: a user had it remove them by force.
	RemovedStores(ctx context.Context) ([]string, error)

	// Servers returns the TiDB servers that have registered, sorted by address.
	Servers(ctx context.Context) ([]Server, error)
	// ForgetServer removes a server's registration, and reports whether it has:
	// not if the server lives, or has registered again since Servers returned it.
	ForgetServer(ctx context.Context, s Server) (bool, error)
	// Close gives the connections back.
	Close()
}

// Dialer returns a client of a PDGroup's PD without talking to it.
type Dialer func(pd types.NamespacedName) (Client, error)

// Server is a TiDB server that has registered in PD's etcd, where dashboards and
// monitoring look for servers: the key /topology/tidb/ADDRESS/info stays when the
// server ends, .../ttl has a lease of 45 seconds.
type Server struct {
	// Address that the server advertises, host:port.
	Address string
	// Alive says that its lease has not ended.
	Alive bool
	// Revision of etcd at which it has last registered.
	Revision int64
}
