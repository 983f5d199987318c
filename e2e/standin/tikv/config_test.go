package tikv

import (
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

func noEnv(string) string { return "" }

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestParseArgs(t *testing.T) {
	file := write(t, "log-level = \"warn\"\n[server]\nlabels = {zone = \"z1\"}\n[raftstore]\npd-store-heartbeat-tick-interval = \"2s\"\ncapacity = \"10GiB\"\n[rocksdb.defaultcf]\nblock-size = \"64KB\"\n[rocksdb.defaultcf.titan]\nanything = 1\n")
	cfg, err := ParseArgs([]string{
		"--pd-endpoints=basic-pd.ns.svc:2379", "--addr=0.0.0.0:20160", "--advertise-addr=tikv-0.peer.ns.svc:20160",
		"--status-addr=0.0.0.0:20180", "--advertise-status-addr=tikv-0.peer.ns.svc:20180", "--data-dir=/var/lib/tikv",
		"--config=" + file, "--labels", "host=h1,disk=ssd", "-L", "debug",
	}, noEnv, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "0.0.0.0:20160", cfg.Addr)
	assert.Equal(t, "tikv-0.peer.ns.svc:20160", cfg.AdvertiseAddr)
	assert.Equal(t, "tikv-0.peer.ns.svc:20180", cfg.AdvertiseStatusAddr)
	assert.Equal(t, []string{"basic-pd.ns.svc:2379"}, cfg.PD)
	assert.Equal(t, map[string]string{"zone": "z1", "host": "h1", "disk": "ssd"}, cfg.Labels)
	assert.Equal(t, 2*time.Second, cfg.Heartbeat)
	assert.Equal(t, uint64(10<<30), cfg.Capacity)
	assert.Equal(t, "debug", cfg.LogLevel)
	assert.Equal(t, DefaultVersion, cfg.Version)
}

func TestParseArgsTakesIPv6(t *testing.T) {
	cfg, err := ParseArgs([]string{"--pd-endpoints=pd:2379", "--addr=[::]:20160", "--advertise-addr=tikv-0:20160", "--status-addr=[::]:20180", "--data-dir=/d"}, noEnv, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "[::]:20160", cfg.Addr)
	assert.Equal(t, "[::]:20180", cfg.StatusAddr)
	_, err = ParseArgs([]string{"--pd-endpoints=pd:2379", "--addr=[::]:20160", "--data-dir=/d"}, noEnv, io.Discard)
	require.ErrorContains(t, err, "others can't reach it")
}

func TestParseArgsTakesShortFlagsAndAliases(t *testing.T) {
	for _, flag := range []string{"--pd", "--pd-endpoint", "--pd-endpoints"} {
		cfg, err := ParseArgs([]string{
			"-A", "127.0.0.1:1", "-s", t.TempDir(), "-f", "/tmp/x.log", flag, "a:2379,http://b:2379", flag, "c:2379", "--capacity", "5GB",
		}, noEnv, io.Discard)
		require.NoError(t, err, flag)
		assert.Equal(t, []string{"a:2379", "http://b:2379", "c:2379"}, cfg.PD, flag)
		assert.Equal(t, uint64(5<<30), cfg.Capacity)
		assert.Equal(t, 10*time.Second, cfg.Heartbeat, "the default is the real one's")
	}
}

func TestParseArgsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		toml string
		want string
	}{
		"an unknown flag":                    {args: []string{"--no-such-flag"}, want: "no-such-flag"},
		"an argument that is no flag":        {args: []string{"x"}, want: `"x"`},
		"an unknown top-level key":           {toml: "no-such = 1", want: "no-such"},
		"an unknown section":                 {toml: "[nosuch]\na = 1", want: "nosuch"},
		"an unknown key in a section":        {toml: "[storage]\ndatadir = \"/x\"", want: "storage.datadir"},
		"an unknown key in a deeper section": {toml: "[readpool.unified]\nthreads = 1", want: "readpool.unified.threads"},
		"a section where a value belongs":    {toml: "[server.addr]\nx = 1", want: "server.addr (a table"},
		"a value where a section belongs":    {toml: "server = 1", want: "server (a value"},
		"a file that is not there":           {args: []string{"--config=/nonexistent/tikv.toml"}, want: "no such file"},
		"text that is no TOML":               {toml: "a = = 1", want: "parse configuration file"},
		"a label without a value":            {args: []string{"--labels=zone"}, want: "key=value"},
		"an address that others can't dial":  {args: []string{"--addr=0.0.0.0:20160"}, want: "advertise-addr"},
		"half of TLS":                        {toml: "[security]\nca-path = \"/x\"", want: "belong together"},
		"a duration that is none":            {toml: "[raftstore]\npd-heartbeat-tick-interval = \"soon\"", want: "pd-heartbeat-tick-interval"},
		"a size that is none":                {args: []string{"--capacity=3XB"}, want: "unknown unit"},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if c.toml != "" {
				args = append(args, "--config="+write(t, c.toml))
			}
			_, err := ParseArgs(args, noEnv, io.Discard)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, process.ErrHelp)
		})
	}
}

func TestParseArgsEndsWellAfterCheckAndVersion(t *testing.T) {
	for _, flag := range []string{"--version", "-V", "--config-check", "--help"} {
		_, err := ParseArgs([]string{flag}, noEnv, io.Discard)
		require.ErrorIs(t, err, process.ErrHelp, flag)
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "12": 12, "7B": 7, "1KB": 1 << 10, "2MiB": 2 << 20, "1.5G": 3 << 29, "1TB": 1 << 40} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}
