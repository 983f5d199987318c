package tikv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// Store is one store in PD: TiKV's, and with other labels TiFlash's.
type Store struct {
	log     *slog.Logger
	pd      *process.PD
	dir     *dataDir
	meta    *metapb.Store
	ident   Ident
	started time.Time
	regions *regions

	capacity        uint64
	heartbeat       time.Duration
	regionHeartbeat time.Duration
	beats           atomic.Uint64
}

// Options are what a Store is made of. Version is as PD shows it.
type Options struct {
	DataDir                             string
	Address, PeerAddress, StatusAddress string // host:port; an empty PeerAddress is Address
	Version, DeployPath                 string
	Labels                              map[string]string
	Capacity                            uint64
	Heartbeat, RegionHeartbeat          time.Duration
}

// OpenStore opens the data directory and reads what store it is. Close it.
func OpenStore(log *slog.Logger, pd *process.PD, o *Options) (*Store, error) {
	dir, err := openDataDir(o.DataDir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		log: log, pd: pd, dir: dir, started: time.Now(), capacity: o.Capacity,
		heartbeat: o.Heartbeat, regionHeartbeat: o.RegionHeartbeat,
	}
	s.regions = &regions{store: s, led: map[uint64]*metapb.Region{}, changed: make(chan struct{}, 1)}
	err = errors.Join(dir.read(identFile, &s.ident), dir.read(regionFile, &s.regions.led))
	if err != nil {
		return nil, errors.Join(err, dir.close())
	}
	s.meta = &metapb.Store{
		Id: s.ident.StoreID, Address: o.Address, PeerAddress: o.PeerAddress, StatusAddress: o.StatusAddress,
		Version: o.Version, GitHash: "stand-in", StartTimestamp: s.started.Unix(), DeployPath: o.DeployPath,
	}
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		s.meta.Labels = append(s.meta.Labels, &metapb.StoreLabel{Key: key, Value: o.Labels[key]})
	}
	return s, nil
}

// Close gives the data directory back.
func (s *Store) Close() error { return s.dir.close() }

// ID is the store's ID in PD, 0 before it is registered.
func (s *Store) ID() uint64 { return s.ident.StoreID }

// Heartbeats counts the store heartbeats that PD accepted.
func (s *Store) Heartbeats() uint64 { return s.beats.Load() }

// Register waits for PD and makes the store known there, once forever: the ID
// stays on the data directory. With first set the store may be the one that
// bootstraps the cluster; otherwise it waits until another one has.
func (s *Store) Register(ctx context.Context, first bool) error {
	if err := s.identify(ctx); err != nil {
		return err
	}
	if err := s.bootstrap(ctx, first); err != nil {
		return err
	}
	return s.pd.Retry(ctx, "put store", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.PutStore(ctx, &pdpb.PutStoreRequest{Header: s.pd.Header(), Store: s.meta})
		if err != nil {
			return err
		}
		if e := process.HeaderError(res.GetHeader()); e != nil {
			// A tombstone, a duplicated address, a version that does not fit: TiKV gives up too.
			return fmt.Errorf("%w: %w", e, process.ErrPermanent)
		}
		s.log.Info("registered", "store", s.ident.StoreID, "cluster", s.ident.ClusterID, "address", s.meta.Address)
		return nil
	})
}

// identify compares the directory with PD's cluster, or makes it one of the
// cluster's.
func (s *Store) identify(ctx context.Context) error {
	err := s.pd.Retry(ctx, "look for the cluster", func(ctx context.Context, _ pdpb.PDClient) error { return ctx.Err() })
	if err != nil {
		return err
	}
	cluster := s.pd.Header().GetClusterId()
	if s.ident.ClusterID != 0 {
		if s.ident.ClusterID != cluster {
			return fmt.Errorf("cluster ID mismatch: this directory's is %d, PD's is %d; you are trying to connect to another cluster",
				s.ident.ClusterID, cluster)
		}
		return nil
	}
	var id uint64
	err = s.pd.Retry(ctx, "allocate an ID for the store", func(ctx context.Context, pd pdpb.PDClient) (err error) {
		id, err = s.allocate(ctx, pd)
		return err
	})
	if err != nil {
		return err
	}
	s.ident = Ident{ClusterID: cluster, StoreID: id}
	s.meta.Id = id
	return s.dir.write(identFile, s.ident)
}

func (s *Store) allocate(ctx context.Context, pd pdpb.PDClient) (uint64, error) {
	res, err := pd.AllocID(ctx, &pdpb.AllocIDRequest{Header: s.pd.Header()})
	if err != nil {
		return 0, err
	}
	return res.GetId(), process.HeaderError(res.GetHeader())
}

// errNotYet says that another store has to bootstrap the cluster first.
var errNotYet = errors.New("the cluster is not bootstrapped")

// bootstrap gives the cluster its first region if it has none.
func (s *Store) bootstrap(ctx context.Context, first bool) error {
	return s.pd.Retry(ctx, "bootstrap the cluster", func(ctx context.Context, pd pdpb.PDClient) error {
		is, err := pd.IsBootstrapped(ctx, &pdpb.IsBootstrappedRequest{Header: s.pd.Header()})
		if err != nil {
			return err
		}
		if err := process.HeaderError(is.GetHeader()); err != nil || is.GetBootstrapped() {
			return err
		}
		if !first {
			return errNotYet
		}
		regionID, err := s.allocate(ctx, pd)
		if err != nil {
			return err
		}
		peerID, err := s.allocate(ctx, pd)
		if err != nil {
			return err
		}
		region := &metapb.Region{
			Id: regionID, RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1},
			Peers: []*metapb.Peer{{Id: peerID, StoreId: s.ident.StoreID}},
		}
		res, err := pd.Bootstrap(ctx, &pdpb.BootstrapRequest{Header: s.pd.Header(), Store: s.meta, Region: region})
		if err != nil {
			return err
		}
		if res.GetHeader().GetError().GetType() == pdpb.ErrorType_ALREADY_BOOTSTRAPPED {
			return nil
		}
		if err := process.HeaderError(res.GetHeader()); err != nil {
			return err
		}
		s.log.Info("bootstrapped the cluster", "cluster", s.ident.ClusterID, "region", regionID)
		return s.regions.lead(region)
	})
}

// Run sends heartbeats until ctx ends, the first at once.
func (s *Store) Run(ctx context.Context) error {
	return process.RunAll(ctx, s.beat, s.regions.report)
}

func (s *Store) beat(ctx context.Context) error {
	every := time.NewTicker(s.heartbeat)
	defer every.Stop()
	for last := s.started; ; {
		now := time.Now()
		err := s.sendBeat(ctx, last, now)
		switch {
		case err == nil:
			last = now
			s.beats.Add(1)
		case errors.Is(err, process.ErrPermanent):
			// TiKV logs it and goes on running; only its next start fails.
			s.log.Error("PD refuses this store", "error", err)
		case ctx.Err() == nil:
			s.log.Warn("heartbeat failed", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

// sendBeat tries until the next heartbeat is due, since PD's leader may just
// have changed.
func (s *Store) sendBeat(ctx context.Context, last, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, s.heartbeat)
	defer cancel()
	return s.pd.Retry(ctx, "send store heartbeat", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.StoreHeartbeat(ctx, &pdpb.StoreHeartbeatRequest{Header: s.pd.Header(), Stats: s.stats(last, now)})
		if err != nil {
			return err
		}
		if e := res.GetHeader().GetError(); e.GetType() == pdpb.ErrorType_STORE_TOMBSTONE {
			return fmt.Errorf("this store is a tombstone: %w", process.ErrPermanent)
		}
		return process.HeaderError(res.GetHeader())
	})
}

func (s *Store) stats(from, to time.Time) *pdpb.StoreStats {
	capacity, available := s.capacity, s.capacity
	var fs syscall.Statfs_t
	if err := syscall.Statfs(s.dir.path, &fs); err == nil {
		total, free := fs.Blocks*uint64(fs.Bsize), fs.Bavail*uint64(fs.Bsize)
		if capacity == 0 || capacity > total {
			capacity = total
		}
		available = min(capacity, free)
	}
	return &pdpb.StoreStats{
		StoreId: s.ident.StoreID, Capacity: capacity, Available: available, UsedSize: 0,
		RegionCount: uint32(s.regions.count()), StartTime: uint32(s.started.Unix()),
		Interval: &pdpb.TimeInterval{StartTimestamp: uint64(from.Unix()), EndTimestamp: uint64(to.Unix())},
	}
}
