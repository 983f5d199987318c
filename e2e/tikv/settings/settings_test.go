package settings

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tikv.toml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestFlagsAndFile(t *testing.T) {
	file := write(t, "log-level = \"warn\"\n[server]\nlabels = {zone = \"z1\"}\n[raftstore]\npd-store-heartbeat-tick-interval = \"2s\"\ncapacity = \"10GiB\"\nraft-base-tick-interval = \"1s\"\n[rocksdb.defaultcf]\nblock-size = \"64KB\"\n[rocksdb.defaultcf.titan]\nanything = 1\n")
	for _, pd := range []string{"--pd", "--pd-endpoint", "--pd-endpoints"} {
		s, err := Parse([]string{
			pd + "=basic-pd.ns.svc:2379,http://other:2379", "--addr=0.0.0.0:20160", "--advertise-addr=tikv-0.peer.ns.svc:20160",
			"--status-addr=0.0.0.0:20180", "--advertise-status-addr=tikv-0.peer.ns.svc:20180", "--data-dir=/var/lib/tikv",
			"--config=" + file, "--labels", "host=h1,disk=ssd", "-L", "debug", "-f", "/tmp/x.log",
		}, "8.5.0", io.Discard)
		require.NoError(t, err)
		assert.Equal(t, "0.0.0.0:20160", s.Addr)
		assert.Equal(t, "tikv-0.peer.ns.svc:20160", s.AdvertiseAddr)
		assert.Equal(t, "tikv-0.peer.ns.svc:20180", s.AdvertiseStatusAddr)
		assert.Equal(t, []string{"basic-pd.ns.svc:2379", "http://other:2379"}, s.PD)
		assert.Equal(t, map[string]string{"zone": "z1", "host": "h1", "disk": "ssd"}, s.Labels)
		assert.Equal(t, 2*time.Second, s.StoreHeartbeat)
		assert.Equal(t, time.Second, s.Raft.Tick)
		assert.Equal(t, 10*time.Second, s.Raft.RegionHeartbeat)
		assert.Equal(t, uint64(10<<30), s.Capacity)
		assert.Equal(t, "debug", s.LogLevel)
		assert.Equal(t, "/tmp/x.log", s.LogFile)
	}
}

func TestInvalidSettingsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		toml string
		want string
	}{
		"an unknown flag":                   {args: []string{"--no-such-flag"}, want: "no-such-flag"},
		"an argument that is no flag":       {args: []string{"x"}, want: `"x"`},
		"an unknown top-level key":          {toml: "no-such = 1", want: "no-such"},
		"an unknown key in a section":       {toml: "[storage]\ndatadir = \"/x\"", want: "storage.datadir"},
		"a section where a value belongs":   {toml: "[server.addr]\nx = 1", want: "server.addr (a table"},
		"a value where a section belongs":   {toml: "server = 1", want: "server (a value"},
		"a file that is not there":          {args: []string{"--config=/nonexistent/tikv.toml"}, want: "no such file"},
		"text that is no TOML":              {toml: "a = = 1", want: "parse configuration file"},
		"a label without a value":           {args: []string{"--labels=zone"}, want: "key=value"},
		"one that they can't by IPv6":       {args: []string{"--addr=[::]:20160"}, want: "advertise-addr"},
		"an address that others can't dial": {args: []string{"--addr=0.0.0.0:20160"}, want: "advertise-addr"},
		"half of TLS":                       {toml: "[security]\nca-path = \"/x\"", want: "belong together"},
		"a duration that is none":           {toml: "[raftstore]\npd-heartbeat-tick-interval = \"soon\"", want: "pd-heartbeat-tick-interval"},
		"a size that is none":               {args: []string{"--capacity=3XB"}, want: "invalid size"},
		"an election before the heartbeat":  {toml: "[raftstore]\nraft-election-timeout-ticks = 2", want: "raft-election-timeout-ticks"},
		"an item of the wrong kind":         {toml: "[pessimistic-txn]\npipelined = \"perhaps\"", want: "pessimistic-txn.pipelined"},
	} {
		t.Run(name, func(t *testing.T) {
			args := c.args
			if c.toml != "" {
				args = append(args, "--config="+write(t, c.toml))
			}
			_, err := Parse(args, "8.5.0", io.Discard)
			require.ErrorContains(t, err, c.want)
			require.NotErrorIs(t, err, ErrDone)
		})
	}
}

func TestVersionHelpAndCheckEndWell(t *testing.T) {
	for flag, want := range map[string]string{"-V": "Release Version:   8.5.0\n", "--config-check": "successful", "--help": "--pd-endpoints"} {
		var out strings.Builder
		_, err := Parse([]string{flag}, "8.5.0", &out)
		require.ErrorIs(t, err, ErrDone, flag)
		assert.Contains(t, out.String(), want)
	}
}

func TestSizesAndDurations(t *testing.T) {
	for text, want := range map[string]uint64{"0": 0, "12": 12, "7B": 7, "1KB": 1 << 10, "2MiB": 2 << 20, "1.5GB": 3 << 29, "1TB": 1 << 40} {
		got, err := bytesOf(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for text, want := range map[string]time.Duration{"1d": 24 * time.Hour, "1d2h": 26 * time.Hour, "90s": 90 * time.Second} {
		got, err := parseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
}

func TestItemsAreChangedAllOrNone(t *testing.T) {
	s, err := Parse([]string{"--data-dir=/x"}, "8.5.0", io.Discard)
	require.NoError(t, err)
	post := func(body string) (int, string) {
		w := httptest.NewRecorder()
		s.Online.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/config?persist=false", strings.NewReader(body)))
		return w.Code, w.Body.String()
	}
	show := func() string {
		w := httptest.NewRecorder()
		s.Online.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/config?full=true", http.NoBody))
		return w.Body.String()
	}
	code, _ := post(`{"pessimistic-txn.wait-for-lock-timeout": "2s"}`)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, show(), `"wait-for-lock-timeout":"2s"`)
	code, text := post(`{"pessimistic-txn.wait-for-lock-timeout": "3s", "server.addr": "x"}`)
	assert.Equal(t, http.StatusInternalServerError, code)
	assert.Contains(t, text, "config server.addr can not be changed")
	assert.Contains(t, show(), `"wait-for-lock-timeout":"2s"`)
}

// TestTheListsAreThoseOfTheStandIn holds together what the module's border keeps apart.
func TestTheListsAreThoseOfTheStandIn(t *testing.T) {
	for mine, other := range map[string]string{"known.go": "../../standin/tikv/keys.go", "online.txt": "../../model/settings/tikv.txt"} {
		lists := func(path string) string {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			_, lists, found := strings.Cut(string(text), "// cf are the keys")
			if !found {
				return string(text)
			}
			lists, _, _ = strings.Cut(lists, "// Keys")
			lists, _, _ = strings.Cut(lists, "// knownKeys returns")
			return lists
		}
		assert.Equal(t, lists(other), lists(mine), mine)
		keys := func(path string) string {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			_, keys, _ := strings.Cut(string(text), "oneLine(`")
			keys, _, _ = strings.Cut(keys, "`))")
			return keys
		}
		assert.Equal(t, keys(other), keys(mine), mine)
	}
}
