package tiproxy

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdetcd"
)

const (
	// topologyPrefix is where TiDB servers register in PD's etcd: ADDRESS/info and, for as
	// long as they live, ADDRESS/ttl.
	topologyPrefix = "/topology/tidb/"
	// lookEvery is how often servers are looked for, and asked.
	lookEvery = 250 * time.Millisecond
	// healthTimeout bounds the question to one server.
	healthTimeout = time.Second
)

// Servers tells which TiDB servers serve, by the address that they advertise.
type Servers interface {
	Healthy() map[string]bool
}

// directory finds TiDB servers in PD's etcd.
type directory struct {
	log  *slog.Logger
	etcd *clientv3.Client
	over *tls.Config
	http *http.Client

	mu      sync.Mutex
	healthy map[string]bool
}

func newDirectory(ctx context.Context, log *slog.Logger, pd string, files process.Files) (*directory, error) {
	over, err := files.Client()
	if err != nil {
		return nil, err
	}
	etcd, err := pdetcd.Connect(ctx, strings.Split(pd, ","), over)
	if err != nil {
		return nil, err
	}
	client := &http.Client{Timeout: healthTimeout, Transport: &http.Transport{TLSClientConfig: over, Proxy: http.ProxyFromEnvironment}}
	return &directory{log: log, etcd: etcd, over: over, http: client, healthy: map[string]bool{}}, nil
}

// Healthy implements Servers.
func (d *directory) Healthy() map[string]bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.healthy)
}

// run looks for servers until ctx ends. While PD does not answer, those that are known stay.
func (d *directory) run(ctx context.Context) error {
	status := map[string]string{}
	for {
		if found, err := d.list(ctx); err == nil {
			status = found
		} else if ctx.Err() == nil {
			d.log.Warn("PD does not list the TiDB servers", "error", err)
		}
		now := d.ask(ctx, status)
		d.mu.Lock()
		if !maps.Equal(now, d.healthy) {
			d.log.Info("TiDB servers that serve", "servers", now)
		}
		d.healthy = now
		d.mu.Unlock()
		if process.WaitFor(ctx, lookEvery) != nil {
			return d.etcd.Close()
		}
	}
}

// list returns the status address of each server that is registered and lives.
func (d *directory) list(ctx context.Context) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	answer, err := d.etcd.Get(ctx, topologyPrefix, clientv3.WithPrefix())
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", topologyPrefix, err)
	}
	status, lives := map[string]string{}, map[string]bool{}
	for _, kv := range answer.Kvs {
		address, what, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), topologyPrefix), "/")
		switch what {
		case "ttl":
			lives[address] = true
		case "info":
			var info struct {
				StatusPort int `json:"status_port"`
			}
			host, _, err := net.SplitHostPort(address)
			if err != nil || json.Unmarshal(kv.Value, &info) != nil {
				continue
			}
			status[address] = net.JoinHostPort(host, strconv.Itoa(info.StatusPort))
		}
	}
	maps.DeleteFunc(status, func(address, _ string) bool { return !lives[address] })
	return status, nil
}

// ask asks every server whether it serves: TiDB answers 500 from the moment that it is told
// to stop.
func (d *directory) ask(ctx context.Context, status map[string]string) map[string]bool {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := map[string]bool{}
	for address, port := range status {
		all.Go(func() {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, process.URL(d.over, port, "/status"), http.NoBody)
			if err != nil {
				return
			}
			response, err := d.http.Do(request)
			if err != nil {
				return
			}
			_ = response.Body.Close() // nothing is read
			if response.StatusCode == http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				out[address] = true
			}
		})
	}
	all.Wait()
	return out
}
