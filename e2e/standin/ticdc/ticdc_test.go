package ticdc

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/drain"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// limit bounds what a test waits for.
const limit = time.Minute

// running is a capture whose process runs until stop is called.
type running struct {
	url  string
	stop func()
}

// begin starts a capture as the operator renders it, and waits until it is ready.
func begin(t *testing.T, pd string) running {
	t.Helper()
	address := loopback.Address(t)
	cfg, err := ParseArgs([]string{"server", "--addr=" + address, "--advertise-addr=" + address, "--pd=http://" + pd, "--data-dir=/nowhere"}, io.Discard)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, slog.New(slog.DiscardHandler), cfg) }()
	stopped := false
	r := running{url: "http://" + address, stop: func() {
		if !stopped {
			stopped = true
			cancel()
			assert.NoError(t, <-ended)
		}
	}}
	t.Cleanup(r.stop)
	r.answers(t, http.StatusOK)
	return r
}

// status is what a probe of the kubelet is answered.
func (r running) status(t *testing.T) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/status", http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}

func (r running) answers(t *testing.T, status int) {
	t.Helper()
	require.Eventually(t, func() bool { return r.status(t) == status }, limit, 20*time.Millisecond, "/status is not answered with %d", status)
}

// handOver is what the hook of a pod does.
func (r running) handOver(t *testing.T) {
	t.Helper()
	require.NoError(t, drain.Job{API: r.url, Within: limit, Poll: 20 * time.Millisecond}.Stop(t.Context()))
}

// CDC-01: captures that hand over leave the others ready, whichever is the owner, and the last
// one has no other to hand over to.
func TestCDC01CapturesThatHandOverMayStop(t *testing.T) {
	pd := pdserver.Start(t)
	first, second, third := begin(t, pd.Addr), begin(t, pd.Addr), begin(t, pd.Addr)
	first.handOver(t) // the owner
	first.stop()
	fourth := begin(t, pd.Addr)
	third.handOver(t)
	third.stop()
	second.handOver(t)
	second.stop()
	assert.Equal(t, http.StatusOK, fourth.status(t))
	fourth.handOver(t)
	fourth.stop()
	assert.Equal(t, http.StatusOK, begin(t, pd.Addr).status(t), "the tables are copied again")
}

// A test must see a capture that does not hand over: no other one is ready then, also later.
func TestACaptureThatDoesNotHandOverIsSeen(t *testing.T) {
	pd := pdserver.Start(t)
	first, second := begin(t, pd.Addr), begin(t, pd.Addr)
	first.stop()
	second.answers(t, http.StatusInternalServerError)
}

func TestTheOwnerMovesTablesOfDrainedAndUnevenCaptures(t *testing.T) {
	all := func(id string) map[int]string {
		out := map[int]string{}
		for table := range tables {
			out[table] = id
		}
		return out
	}
	uneven := all("a")
	for table := range 3 {
		uneven[table] = "b"
	}
	even := all("a")
	for table := range 4 {
		even[table] = "b"
	}
	for name, c := range map[string]struct {
		captures, stopping []string
		tables             map[int]string
		moved              map[string]int
	}{
		"all, to the first capture":                {[]string{"a"}, nil, nil, map[string]int{"a": 9}},
		"those of a capture that is gone, at once": {[]string{"b", "c"}, nil, all("a"), map[string]int{"b": 5, "c": 4}},
		"some of one that is drained":              {[]string{"a", "b"}, []string{"a"}, all("a"), map[string]int{"b": tablesPerTurn}},
		"none of the last one":                     {[]string{"a"}, []string{"a"}, all("a"), map[string]int{}},
		"one, if another has fewer":                {[]string{"a", "b"}, nil, uneven, map[string]int{"b": 1}},
		"none, if they are even":                   {[]string{"a", "b"}, nil, even, map[string]int{}},
		"none, if no capture is there":             {nil, nil, all("a"), map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			now := cluster{captures: map[string]string{}, stopping: map[string]bool{}, tables: c.tables}
			for _, id := range c.captures {
				now.captures[id] = id + ":8301"
			}
			for _, id := range c.stopping {
				now.stopping[id] = true
			}
			moved := map[string]int{}
			for _, to := range now.turn() {
				moved[to]++
			}
			assert.Equal(t, c.moved, moved)
		})
	}
}

func TestTheCommandLine(t *testing.T) {
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "ticdc.toml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return "--config=" + path
	}
	needed := []string{"server", "--addr=0.0.0.0:8301", "--advertise-addr=q-0:8301", "--pd=http://a:2379"}
	for name, c := range map[string]struct {
		args  []string
		wrong string
	}{
		"what the operator renders":   {append(needed[:4:4], "--data-dir=/var/lib/ticdc", "--cert-allowed-cn=basic", file("per-table-memory-quota = 20971520\nlog-level = \"warn\"\n")), ""},
		"another command":             {[]string{"cli"}, "the only command is server"},
		"no PD":                       {needed[:3], "--pd are needed"},
		"a flag that TiCDC has not":   {append(needed[:4:4], "--pod-name=q-0"), "-pod-name"},
		"a key that TiCDC has not":    {append(needed[:4:4], file("per-table-quota = 1\n")), "unknown keys: per-table-quota"},
		"a file that is not there":    {append(needed[:4:4], "--config=/nowhere"), "read configuration file"},
		"a file that is none of TOML": {append(needed[:4:4], file("=")), "parse configuration file"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, err := ParseArgs(c.args, io.Discard)
			if c.wrong != "" {
				require.ErrorContains(t, err, c.wrong)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprint([]string{"http://a:2379"}), fmt.Sprint(cfg.PD))
			assert.Equal(t, "warn", cfg.LogLevel)
		})
	}
}
