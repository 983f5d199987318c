package tikv

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pingcap/kvproto/pkg/deadlock"
	logbackup "github.com/pingcap/kvproto/pkg/logbackuppb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/placement"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/security"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/service"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/settings"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/transport"
)

// safePointEvery is how often a store asks PD below which timestamp no client reads any more.
const safePointEvery = time.Minute

// Run is a store until ctx ends. Its ports are not there before it is registered in
// PD. The engine is left open: the process is expected to end, and requests may
// still be reading.
func Run(ctx context.Context, s *settings.Settings, version string, log *slog.Logger) error {
	lock, err := lockDir(s.DataDir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // only for the lock
	e, err := engine.Open(s.DataDir)
	if err != nil {
		return err
	}
	over, err := s.Security.Client()
	if err != nil {
		return err
	}
	pd := placement.New(s.PD, over, log)
	defer pd.Close()
	meta, err := describeStore(ctx, e, pd, s)
	if err == nil {
		meta.Version = version
		err = registerStore(ctx, e, pd, meta, log)
	}
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	bus := transport.New(ctx, pd, over, log)
	store, err := raftstore.New(meta.Id, s.Raft, e, raftstore.Surroundings{Transport: bus, PD: pd, Log: log})
	if err != nil {
		return err
	}
	bus.Tell(store)
	server := service.New(meta, store, e)
	peers, err := openListener(ctx, s.Addr, s.Security)
	if err != nil {
		return err
	}
	status, err := openListener(ctx, s.StatusAddr, s.Security)
	if err != nil {
		return errors.Join(err, peers.Close())
	}
	log.Info("ready to serve", "store", meta.Id, "address", peers.Addr().String(), "status", status.Addr().String())

	group.Go(func() error { return store.Run(ctx) })
	group.Go(func() error { return serveGRPC(ctx, peers, server) })
	group.Go(func() error { return serveStatus(ctx, status, statusHandler(store, meta, s.Online)) })
	group.Go(func() error { return pd.Beat(ctx, store.Renew, store.Order) })
	beats := &heart{store: store, pd: pd, settings: s, id: meta.Id, log: log, started: time.Now()}
	group.Go(func() error { return beats.run(ctx) })
	group.Go(func() error { return pollSafePoint(ctx, pd, server, log) })
	err = group.Wait()
	log.Info("stopped", "error", err)
	return err
}

// openListener listens on an address, over TLS if there are files for it.
func openListener(ctx context.Context, address string, files security.Files) (net.Listener, error) {
	config, err := files.Server()
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	if config != nil {
		return tls.NewListener(l, config), nil
	}
	return l, nil
}

// lockDir makes and locks the directory: two stores on one directory are refused.
func lockDir(path string) (*os.File, error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "LOCK"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock file: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s, maybe another instance uses it: %w", path, err), lock.Close())
	}
	return lock, nil
}

// serveGRPC answers clients and stores. Requests in flight are cut off at the end:
// their clients ask another store.
func serveGRPC(ctx context.Context, l net.Listener, s *service.Server) error {
	server := grpc.NewServer(service.ServerOptions()...)
	tikvpb.RegisterTikvServer(server, s)
	deadlock.RegisterDeadlockServer(server, s)
	logbackup.RegisterLogBackupServer(server, &noLogBackups{})
	// Clients ask whether a store that failed them lives again.
	healthpb.RegisterHealthServer(server, health.NewServer())
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

func serveStatus(ctx context.Context, l net.Listener, h http.Handler) error {
	// A probe of the kubelet that only connects is no error worth a line a second.
	server := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: stdlog.New(io.Discard, "", 0)}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() }) // errors at the end do not matter
	defer stop()
	if err := server.Serve(l); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	}
	return nil
}

// noLogBackups is the service of a store without log backups: it has nothing to
// write out.
type noLogBackups struct {
	logbackup.UnimplementedLogBackupServer
}

// FlushNow implements logbackup.LogBackupServer.
func (*noLogBackups) FlushNow(context.Context, *logbackup.FlushNowRequest) (*logbackup.FlushNowResponse, error) {
	return &logbackup.FlushNowResponse{}, nil
}

// heart tells PD how the store is.
type heart struct {
	store    *raftstore.Store
	pd       *placement.Client
	settings *settings.Settings
	id       uint64
	log      *slog.Logger
	started  time.Time
}

func (h *heart) run(ctx context.Context) error {
	every := time.NewTicker(h.settings.StoreHeartbeat)
	defer every.Stop()
	for last := h.started; ; {
		now := time.Now()
		err := h.beat(ctx, last, now)
		switch {
		case err == nil:
			last = now
		case errors.Is(err, placement.ErrPermanent):
			// TiKV goes on running, too; its next start fails.
			h.log.Error("PD refuses this store", "error", err)
		case ctx.Err() == nil:
			h.log.Warn("a heartbeat failed", "error", err)
		}
		pause := every.C
		if err != nil && !errors.Is(err, placement.ErrPermanent) {
			pause = time.After(min(time.Second, h.settings.StoreHeartbeat)) // PD's leader may just have changed
		}
		select {
		case <-ctx.Done():
			return nil
		case <-pause:
		}
	}
}

func (h *heart) beat(ctx context.Context, from, to time.Time) error {
	count, err := h.store.Count(ctx)
	if err != nil {
		return err
	}
	used := uint64(count.Size)
	capacity, available := h.settings.Capacity, h.settings.Capacity
	var fs syscall.Statfs_t
	if err := syscall.Statfs(h.settings.DataDir, &fs); err == nil {
		// What others keep on the disk is not counted as TiKV counts it: PD gives no
		// region to a store of which less than a fifth is free (low-space-ratio), and
		// the disk of the machine that tests run on may well be as full.
		free := fs.Bavail * uint64(fs.Bsize)
		if capacity == 0 || capacity > used+free {
			capacity = used + free
		}
		available = min(capacity, free)
	}
	return h.pd.StoreHeartbeat(ctx, &pdpb.StoreStats{
		StoreId: h.id, Capacity: capacity, Available: available, UsedSize: used, RegionCount: uint32(count.Regions),
		StartTime: uint32(h.started.Unix()), SlowScore: 1,
		Interval: &pdpb.TimeInterval{StartTimestamp: uint64(from.Unix()), EndTimestamp: uint64(to.Unix())},
	})
}

// pollSafePoint learns what no client reads any more.
func pollSafePoint(ctx context.Context, pd *placement.Client, server *service.Server, log *slog.Logger) error {
	every := time.NewTicker(safePointEvery)
	defer every.Stop()
	for last := uint64(0); ; {
		ts, err := pd.SafePoint(ctx)
		if err == nil && ts > last {
			err = server.SetSafePoint(ts)
			last = ts
		}
		if err != nil && ctx.Err() == nil {
			log.Warn("garbage stays", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}
