package tiproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// Run is a TiProxy until ctx ends.
func Run(ctx context.Context, log *slog.Logger, c *Config) error {
	config, err := settings.NewTiProxy(c.Document)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	servers, err := newDirectory(ctx, log, c.Proxy.PD, c.Security.Cluster.files())
	if err != nil {
		return err
	}
	clients, err := process.Listen(ctx, c.Proxy.Addr)
	if err != nil {
		return err
	}
	api, err := c.Security.API.files().Listen(ctx, c.API.Addr)
	if err != nil {
		return errors.Join(err, clients.Close())
	}
	secured, err := c.Security.Clients.files().Server(tls.RequireAndVerifyClientCert)
	if err != nil {
		return errors.Join(err, clients.Close(), api.Close())
	}
	proxy, stopping := NewProxy(log, servers).Over(secured, c.Security.Servers.files()), &atomic.Bool{}
	// The servers are known, and the API answers, until the last client has gone.
	last, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	return process.RunAll(ctx,
		func(context.Context) error { return servers.run(last) },
		func(context.Context) error { return process.ServeHTTP(last, api, newHandler(proxy, config, stopping)) },
		func(ctx context.Context) error {
			defer end()
			context.AfterFunc(ctx, func() { stopping.Store(true) })
			return proxy.Serve(ctx, clients, c.closing())
		})
}

// newHandler answers TiProxy's HTTP API.
func newHandler(p *Proxy, config *settings.Config, stopping *atomic.Bool) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/admin/config/", config.TiProxy)
	mux.HandleFunc("GET /api/debug/health", func(w http.ResponseWriter, _ *http.Request) {
		if stopping.Load() {
			w.WriteHeader(http.StatusBadGateway)
		}
		_, _ = fmt.Fprint(w, `{"config_checksum":1}`) // who asked may have gone
	})
	// TiProxy, too, redirects /metrics to there.
	mux.HandleFunc("GET /metrics/", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "# TYPE tiproxy_server_connections gauge\ntiproxy_server_connections %d\n", p.Clients()) // who asked may have gone
	})
	return mux
}
