package tiflash

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const timeout = time.Minute

func noEnv(string) string { return "" }

// files writes both configuration files and returns the path of the first and
// the directory of everything. %s in the text stands for that directory.
func files(t *testing.T, main, proxy string) (path, dir string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "tiflash.toml")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "proxy.toml"), []byte(proxy), 0o600))
	require.NoError(t, os.WriteFile(path, []byte(fmt.Sprintf(main, dir)), 0o600))
	return path, dir
}

const usual = `tmp_path = "%[1]s/data0/tmp"
path = "/ignored"
listen_host = "127.0.0.1"
[flash]
compact_log_min_gap = 200
[flash.proxy]
config = "%[1]s/proxy.toml"
addr = "127.0.0.1:20170"
status-addr = "127.0.0.1:20292"
[raft]
pd_addr = "basic-pd.ns.svc:2379"
[status]
metrics_port = 8234
[storage.main]
dir = ["%[1]s/data0", "%[1]s/data1"]
capacity = [0, 0]
[logger]
level = "information"
[profiles.default]
max_threads = 1
`

func TestParseArgs(t *testing.T) {
	file, dir := files(t, usual, "[server.labels]\nzone = \"z1\"\n[raftstore]\nsnap-handle-pool-size = 2\n")
	cfg, err := ParseArgs([]string{
		"server", "--config-file=" + file, "--", "--flash.service_addr=tiflash-0.peer.ns.svc:3930",
		"--flash.proxy.advertise-addr=tiflash-0.peer.ns.svc:20170", "--flash.proxy.advertise-status-addr=tiflash-0.peer.ns.svc:20292",
	}, noEnv, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "tiflash-0.peer.ns.svc:3930", cfg.ServiceAddr)
	assert.Equal(t, "tiflash-0.peer.ns.svc:20170", cfg.Proxy.AdvertiseAddr)
	assert.Equal(t, "tiflash-0.peer.ns.svc:20292", cfg.Proxy.AdvertiseStatusAddr)
	assert.Equal(t, []string{dir + "/data0", dir + "/data1"}, cfg.DataDirs)
	assert.Equal(t, dir+"/data0/flash", cfg.Proxy.DataDir)
	assert.Equal(t, map[string]string{"zone": "z1", "engine": "tiflash"}, cfg.Proxy.Labels)
	assert.Equal(t, []string{"basic-pd.ns.svc:2379"}, cfg.Proxy.PD)
	assert.Equal(t, 8234, cfg.MetricsPort)
}

func TestParseArgsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []string
		main, proxy   string
		want          string
	}{
		"an unknown key":                         {main: "nosuch = 1", want: "nosuch"},
		"an unknown key in a section":            {main: "[flash.proxy]\nadvertise_addr = \"x\"", want: "flash.proxy.advertise_addr"},
		"an unknown key of the proxy":            {main: usual, proxy: "[server]\nnosuch = 1", want: "server.nosuch"},
		"an unknown override":                    {main: usual, after: []string{"--", "--flash.nosuch=1"}, want: "flash.nosuch"},
		"an override without a value":            {main: usual, after: []string{"--", "--flash.service_addr"}, want: "not --key=value"},
		"an unknown flag":                        {main: usual, before: []string{"--verbose"}, want: "--verbose"},
		"the label engine":                       {main: usual, proxy: "[server]\nlabels = {engine = \"x\"}", want: "label engine"},
		"no PD":                                  {main: "path = \"/x\"", want: "raft.pd_addr"},
		"no data directory":                      {main: "[raft]\npd_addr = \"x:1\"", want: "storage.main.dir"},
		"fewer capacities than directories":      {main: "[storage.main]\ndir = [\"/a\", \"/b\"]\ncapacity = [1]", want: "storage.main.capacity"},
		"more capacities than directories":       {main: "[storage.main]\ndir = [\"/a\"]\n[storage.latest]\ndir = [\"/a\"]\ncapacity = [1, 1]", want: "storage.latest.capacity"},
		"no service address":                     {main: usual, want: "flash.service_addr"},
		"a port that is none":                    {main: usual, after: []string{"--", "--flash.service_addr=x:1", "--status.metrics_port=x"}, want: "metrics_port"},
		"a proxy address that others can't dial": {main: usual, after: []string{"--", "--flash.proxy.addr=0.0.0.0:1"}, want: "advertise-addr"},
	} {
		t.Run(name, func(t *testing.T) {
			main := c.main
			if main != usual {
				main += "\n#%s"
			}
			file, _ := files(t, main, c.proxy)
			args := append([]string{"server", "--config-file=" + file}, c.before...)
			_, err := ParseArgs(append(args, c.after...), noEnv, io.Discard)
			require.ErrorContains(t, err, c.want)
		})
	}
	_, err := ParseArgs([]string{"--config-file=x"}, noEnv, io.Discard)
	require.ErrorContains(t, err, "server")
	_, err = ParseArgs([]string{"version"}, noEnv, io.Discard)
	require.ErrorIs(t, err, process.ErrHelp)
}

// settle makes a Config whose address is its own and whose PD is the given one.
func settle(t *testing.T, pd *pdserver.PD) *Config {
	t.Helper()
	file, _ := files(t, usual, "")
	host := loopback.Host(t)
	cfg, err := ParseArgs([]string{
		"server", "--config-file=" + file, "--", "--raft.pd_addr=" + pd.Addr, "--flash.service_addr=" + host + ":3930",
		"--flash.proxy.addr=" + host + ":20170", "--flash.proxy.status-addr=" + host + ":20292", "--listen_host=" + host,
	}, func(name string) string { return map[string]string{"STANDIN_HEARTBEAT": "50ms"}[name] }, io.Discard)
	require.NoError(t, err)
	return cfg
}

func TestTiFlashIsIdleUntilThereIsAClusterAndThenRuns(t *testing.T) {
	pd := pdserver.Start(t)
	cfg := settle(t, pd)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, slog.New(slog.DiscardHandler), cfg) }()
	state := func() string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+cfg.Proxy.StatusAddr+"/tiflash/store-status", http.NoBody)
		require.NoError(t, err)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return ""
		}
		defer func() { require.NoError(t, res.Body.Close()) }()
		text, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		return string(text)
	}
	require.Eventually(t, func() bool { return state() == "Idle" }, timeout, 10*time.Millisecond)
	assert.Zero(t, pd.Count(), "TiFlash never bootstraps a cluster")
	pd.Put(&metapb.Store{Id: 1000, Address: "tikv:20160"})
	require.Eventually(t, func() bool { return state() == "Running" }, timeout, 10*time.Millisecond)
	store := pd.Store(1)
	if store == nil {
		store = pd.Store(1001)
	}
	require.NotNil(t, store)
	assert.Equal(t, cfg.ServiceAddr, store.GetAddress())
	assert.Equal(t, cfg.Proxy.AdvertiseAddr, store.GetPeerAddress())
	assert.Equal(t, cfg.Proxy.AdvertiseStatusAddr, store.GetStatusAddress())
	assert.Equal(t, []*metapb.StoreLabel{{Key: "engine", Value: "tiflash"}}, store.GetLabels())
	assert.Equal(t, "v8.5.7", store.GetVersion())
	for _, addr := range []string{cfg.ServiceAddr, cfg.Proxy.Addr, net.JoinHostPort(cfg.ListenHost, strconv.Itoa(cfg.MetricsPort))} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
	}
	require.Eventually(t, func() bool { return len(pd.Beats) > 1 }, timeout, 10*time.Millisecond)
	cancel()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(timeout):
		require.Fail(t, "did not end")
	}
	for _, dir := range cfg.DataDirs {
		assert.DirExists(t, dir)
	}
	assert.FileExists(t, filepath.Join(cfg.DataDirs[0], "flash", "store.json"))
}

func TestTiFlashRefusesToRunWithoutPlacementRules(t *testing.T) {
	pd := pdserver.Start(t)
	pd.SetRules(false)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	require.ErrorContains(t, Run(ctx, slog.New(slog.DiscardHandler), settle(t, pd)), "placement rules are disabled")
	assert.Zero(t, pd.Count())
}
