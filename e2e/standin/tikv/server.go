package tikv

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	logbackuppb "github.com/pingcap/kvproto/pkg/logbackuppb"
	"google.golang.org/grpc"

	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// leastPause is the least pause between two heartbeats that may be configured:
// a zero would stop the ticker's making.
const leastPause = 10 * time.Millisecond

// Run is a store until ctx ends: it waits for PD, registers, then opens its
// port and its status port, so that neither is there before the store is.
func Run(ctx context.Context, log *slog.Logger, c *Config) (err error) {
	if c.Heartbeat < leastPause || c.RegionHeartbeat < leastPause {
		return fmt.Errorf("heartbeat intervals %s and %s: too short", c.Heartbeat, c.RegionHeartbeat)
	}
	config, err := settings.NewTiKV(c.Document)
	if err != nil {
		return err
	}
	pd, err := process.NewPD(c.PD, c.Files, log)
	if err != nil {
		return err
	}
	defer pd.Close()
	store, err := OpenStore(log, pd, &Options{
		DataDir: c.DataDir, Address: c.AdvertiseAddr, StatusAddress: c.AdvertiseStatusAddr,
		Version: strings.TrimPrefix(c.Version, "v"), DeployPath: "/", Labels: c.Labels, Capacity: c.Capacity,
		Heartbeat: c.Heartbeat, RegionHeartbeat: c.RegionHeartbeat,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := store.Register(ctx, true); err != nil {
		return err
	}
	peers, err := c.Files.Listen(ctx, c.Addr)
	if err != nil {
		return err
	}
	port, err := c.Files.Listen(ctx, c.StatusAddr)
	if err != nil {
		return errors.Join(err, peers.Close())
	}
	log.Info("ready to serve", "address", peers.Addr(), "status", port.Addr())
	err = process.RunAll(ctx, store.Run,
		func(ctx context.Context) error { return store.ServePeers(ctx, peers) },
		func(ctx context.Context) error {
			return process.ServeHTTP(ctx, port, StatusHandler(store, config.TiKV))
		})
	log.Info("stopped", "error", err)
	return err
}

// ServePeers answers other stores on l until ctx ends, and who asks for log
// backups.
func (s *Store) ServePeers(ctx context.Context, l net.Listener) error {
	backups := grpc.NewServer()
	logbackuppb.RegisterLogBackupServer(backups, &noLogBackups{})
	mux := http.NewServeMux()
	mux.Handle("POST "+regionPath, s.regions)
	mux.Handle("POST /logbackup.LogBackup/", backups)
	return process.ServeHTTP(ctx, l, mux)
}

// noLogBackups is the service of a store without log backups: it has nothing to
// write out.
type noLogBackups struct {
	logbackuppb.UnimplementedLogBackupServer
}

// FlushNow implements logbackup.LogBackupServer.
func (*noLogBackups) FlushNow(context.Context, *logbackuppb.FlushNowRequest) (*logbackuppb.FlushNowResponse, error) {
	return &logbackuppb.FlushNowResponse{}, nil
}

// StatusHandler is the status port: /status, /ready, /metrics, and what answers on
// /config.
func StatusHandler(s *Store, config http.HandlerFunc) http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	mux.HandleFunc("GET /status", ok)
	mux.HandleFunc("GET /ready", ok)
	mux.HandleFunc("GET /metrics", s.metrics)
	mux.HandleFunc("/config", config)
	return mux
}

// counts are a store's leaders and peers. PD's numbers are the truth, since
// only it sees the peers that other stores lead; without PD, those led here.
func (s *Store) counts(ctx context.Context) (leaders, peers int) {
	var answer struct {
		Status struct {
			LeaderCount int `json:"leader_count"`
			RegionCount int `json:"region_count"`
		} `json:"status"`
	}
	if err := s.pd.Get(ctx, fmt.Sprintf("/pd/api/v1/store/%d", s.ident.StoreID), &answer); err != nil {
		return s.regions.count(), s.regions.count()
	}
	return answer.Status.LeaderCount, answer.Status.RegionCount
}

func (s *Store) metrics(w http.ResponseWriter, r *http.Request) {
	leaders, peers := s.counts(r.Context())
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, err := fmt.Fprintf(w, `# HELP tikv_raftstore_region_count Number of regions collected in region_collector
# TYPE tikv_raftstore_region_count gauge
tikv_raftstore_region_count{type="leader"} %d
tikv_raftstore_region_count{type="region"} %d
# HELP tikv_server_info Indicate the tikv server info, and the value is the server startup timestamp(s since unix epoch).
# TYPE tikv_server_info gauge
tikv_server_info{git_hash="stand-in",release_version="%s"} %d
# HELP tikv_stand_in_store_heartbeats_total Store heartbeats that PD accepted
# TYPE tikv_stand_in_store_heartbeats_total counter
tikv_stand_in_store_heartbeats_total %d
`, leaders, peers, s.meta.GetVersion(), s.started.Unix(), s.Heartbeats())
	if err != nil {
		s.log.Debug("answer not sent", "error", err)
	}
}
