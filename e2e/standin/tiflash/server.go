package tiflash

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/pingcap/kvproto/pkg/pdpb"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tikv"
)

// Store states as /tiflash/store-status words them.
const (
	idle     = "Idle"
	running  = "Running"
	stopping = "Stopping"
)

// errRulesOff ends the process: TiFlash's replicas are placement rules.
var errRulesOff = errors.New("placement rules are disabled in PD (replication.enable-placement-rules): TiFlash can't work without them")

// Run is a TiFlash until ctx ends. Its status ports answer from the start,
// with Idle; its service ports open once PD has accepted the store.
func Run(ctx context.Context, log *slog.Logger, c *Config) (err error) {
	if err := c.makeDirs(); err != nil {
		return err
	}
	pd, err := process.NewPD(c.Proxy.PD, c.Proxy.Files, log)
	if err != nil {
		return err
	}
	defer pd.Close()
	p := c.Proxy
	store, err := tikv.OpenStore(log, pd, &tikv.Options{
		DataDir: p.DataDir, Address: process.LookupText(p.Document, "server.engine-addr", c.ServiceAddr),
		PeerAddress: p.AdvertiseAddr, StatusAddress: p.AdvertiseStatusAddr, Version: p.Version, DeployPath: "/tiflash",
		Labels: p.Labels, Capacity: p.Capacity, Heartbeat: p.Heartbeat, RegionHeartbeat: p.RegionHeartbeat,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	status, err := p.Files.Listen(ctx, p.StatusAddr)
	if err != nil {
		return err
	}
	metrics, err := c.Files.Listen(ctx, net.JoinHostPort(c.ListenHost, strconv.Itoa(c.MetricsPort)))
	if err != nil {
		return errors.Join(err, status.Close())
	}
	var state atomic.Value
	state.Store(idle)
	answers := newHandler(log, store, p.Document, &state)
	return process.RunAll(ctx,
		func(ctx context.Context) error { return process.ServeHTTP(ctx, status, answers) },
		func(ctx context.Context) error { return process.ServeHTTP(ctx, metrics, answers) },
		func(ctx context.Context) error {
			if err := rulesOn(ctx, pd); err != nil {
				return err
			}
			if err := store.Register(ctx, false); err != nil {
				return err
			}
			return servePorts(ctx, log, c, store, &state)
		})
}

// rulesOn asks PD until it says whether placement rules are on.
func rulesOn(ctx context.Context, pd *process.PD) error {
	return pd.Retry(ctx, "read PD's replication settings", func(ctx context.Context, _ pdpb.PDClient) error {
		var answer map[string]any
		if err := pd.Get(ctx, "/pd/api/v1/config/replicate", &answer); err != nil {
			return err
		}
		if fmt.Sprint(answer["enable-placement-rules"]) != "true" {
			return fmt.Errorf("%w: %w", errRulesOff, process.ErrPermanent)
		}
		return nil
	})
}

// servePorts opens the service ports and sends heartbeats.
func servePorts(ctx context.Context, log *slog.Logger, c *Config, store *tikv.Store, state *atomic.Value) error {
	service, err := c.Files.Listen(ctx, c.ServiceAddr) // not at listen_host, as the real one
	if err != nil {
		return fmt.Errorf("listen at flash.service_addr: %w", err)
	}
	peers, err := c.Proxy.Files.Listen(ctx, c.Proxy.Addr)
	if err != nil {
		return errors.Join(err, service.Close())
	}
	state.Store(running)
	log.Info("ready to serve", "service", service.Addr(), "proxy", peers.Addr())
	err = process.RunAll(ctx, store.Run,
		func(ctx context.Context) error { return store.ServePeers(ctx, peers) },
		func(ctx context.Context) error { return process.ServeHTTP(ctx, service, http.NotFoundHandler()) })
	state.Store(stopping)
	log.Info("stopped", "error", err)
	return err
}

// newHandler adds TiFlash's own paths to those of a store.
func newHandler(log *slog.Logger, store *tikv.Store, document map[string]any, state *atomic.Value) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", tikv.StatusHandler(store, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(document); err != nil {
			log.Debug("answer not sent", "error", err)
		}
	}))
	mux.HandleFunc("GET /tiflash/store-status", func(w http.ResponseWriter, _ *http.Request) {
		text, _ := state.Load().(string)
		if _, err := io.WriteString(w, text); err != nil {
			log.Debug("answer not sent", "error", err)
		}
	})
	return mux
}
