package conformance_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/pdsim"
	"github.com/tidb-groups/tidb-groups/e2e/standin/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

var memberNames = []string{"pd-1", "pd-2", "pd-3"}

// backend is a PD of three members. Those that stand in for one are under a clock that
// the test moves.
type backend interface {
	// URL is where a member answers.
	URL(member string) string
	// Kill ends a member's process; its data stays.
	Kill(t *testing.T, member string)
	// Revive starts a killed member with its data.
	Revive(t *testing.T, member string)
	// Rejoin starts a removed member again, without data.
	Rejoin(t *testing.T, member string)
	// AddUnstarted adds a member that has not started.
	AddUnstarted(t *testing.T, peerURL string)
	// Bootstrap, Put and Heartbeat are what a store says.
	Bootstrap(t *testing.T, s model.StoreMeta)
	Put(t *testing.T, s model.StoreMeta)
	Heartbeat(t *testing.T, store uint64)
	// SafePoint is what TiDB's garbage collection says.
	SafePoint(t *testing.T, at uint64)
	// Close ends everything.
	Close()
}

// each runs a test against everything that stands in for PD, and against a real one if
// that is asked for.
func each(t *testing.T, test func(t *testing.T, p *scenarioRun)) {
	t.Helper()
	t.Run("the PD stand-in over a real etcd", func(t *testing.T) {
		t.Parallel()
		clock := model.NewManualClock(time.Now())
		b := newStandin(t, clock)
		defer b.Close()
		test(t, newScenarioRun(b, clock))
	})
	t.Run("the simulation in process", func(t *testing.T) {
		t.Parallel()
		clock := model.NewManualClock(time.Now())
		b := newSim(t, clock)
		defer b.Close()
		test(t, newScenarioRun(b, clock))
	})
	t.Run("a real PD", func(t *testing.T) { againstReal(t, test) })
}

// sim is the in-process simulation.
type sim struct {
	pd    *pdsim.PD
	clock *model.ManualClock
}

func newSim(t *testing.T, clock *model.ManualClock) *sim {
	t.Helper()
	return newSimWith(t, clock, -1)
}

func newSimWith(t *testing.T, clock *model.ManualClock, transfer time.Duration) *sim {
	t.Helper()
	p, err := pdsim.New(pdsim.Options{
		Members: memberNames, Election: -1, Transfer: transfer,
		Cluster: model.Options{Clock: clock, Config: map[string]any{
			"replication": map[string]any{"location-labels": []any{"zone", "host"}},
		}},
	})
	require.NoError(t, err)
	// Until then etcd would take no member away.
	clock.Advance(5 * time.Second)
	return &sim{pd: p, clock: clock}
}

func (b *sim) URL(member string) string { return b.pd.URL(member) }

func (b *sim) Close() { _ = b.pd.Close() }

func (b *sim) Kill(t *testing.T, member string) {
	require.NoError(t, b.pd.SetHealthy(member, false))
}

func (b *sim) Revive(t *testing.T, member string) {
	require.NoError(t, b.pd.SetHealthy(member, true))
}

func (b *sim) Rejoin(t *testing.T, member string) {
	err := b.pd.Join(member)
	if errors.Is(err, pdsim.ErrUnhealthy) {
		b.clock.Advance(5 * time.Second)
		err = b.pd.Join(member)
	}
	require.NoError(t, err)
}

func (b *sim) AddUnstarted(_ *testing.T, peerURL string) { b.pd.AddUnstarted(peerURL) }

func (b *sim) Bootstrap(t *testing.T, s model.StoreMeta) {
	require.NoError(t, b.pd.Cluster().Bootstrap(s, 2, 3))
}

func (b *sim) Put(t *testing.T, s model.StoreMeta) {
	require.NoError(t, b.pd.Cluster().PutStore(s))
}

func (b *sim) Heartbeat(t *testing.T, store uint64) {
	require.NoError(t, b.pd.Cluster().Heartbeat(store, model.StoreStats{Capacity: 10 << 30, Available: 9 << 30, Used: 1 << 30}))
}

func (b *sim) SafePoint(t *testing.T, at uint64) {
	_, err := b.pd.Cluster().UpdateServiceSafePoint(model.GCWorker, time.Hour, at)
	require.NoError(t, err)
}

// standin is three PD stand-ins in this process, spoken to over the network only.
type standin struct {
	dir     string
	clock   model.Clock
	cfg     map[string]pd.Config
	servers map[string]*pd.Server
	speaker
}

// find asks the stand-ins which of them leads.
func (b *standin) find(context.Context) (address string, cluster uint64, ok bool) {
	for name, s := range b.servers {
		if s.IsLeader() {
			return strings.TrimPrefix(b.cfg[name].ClientURLs, "http://"), s.ClusterID(), true
		}
	}
	return "", 0, false
}

func newStandin(t *testing.T, clock model.Clock) *standin {
	t.Helper()
	b := &standin{
		dir: t.TempDir(), clock: clock,
		cfg: map[string]pd.Config{}, servers: map[string]*pd.Server{},
	}
	b.speaker = speaker{find: b.find, conns: map[string]*grpc.ClientConn{}}
	var cluster []string
	for _, name := range memberNames {
		cfg := pd.DefaultConfig()
		cfg.Name, cfg.DataDir = name, filepath.Join(b.dir, name)
		cfg.ClientURLs, cfg.PeerURLs = "http://"+loopback.Address(t), "http://"+loopback.Address(t)
		cfg.LogFile = filepath.Join(b.dir, name+".log")
		cfg.Clock = clock
		cfg.PriorityInterval = 200 * time.Millisecond
		cfg.Sections = map[string]any{"replication": map[string]any{"location-labels": []any{"zone", "host"}}}
		b.cfg[name] = cfg
		cluster = append(cluster, name+"="+cfg.PeerURLs)
	}
	type started struct {
		name   string
		server *pd.Server
		err    error
	}
	results := make(chan started)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for _, name := range memberNames {
		cfg := b.cfg[name]
		cfg.InitialCluster = strings.Join(cluster, ",")
		b.cfg[name] = cfg
		go func() {
			s, err := pd.Start(ctx, cfg)
			results <- started{name, s, err}
		}()
	}
	for range memberNames {
		r := <-results
		require.NoError(t, r.err)
		b.servers[r.name] = r.server
	}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, name := range memberNames {
			if data, err := os.ReadFile(filepath.Join(b.dir, name+".log")); err == nil {
				t.Logf("log of %s:\n%s", name, data)
			}
		}
	})
	return b
}

func (b *standin) URL(member string) string { return b.cfg[member].ClientURLs }

func (b *standin) Close() {
	b.close()
	for _, s := range b.servers {
		s.Close()
	}
}

func (b *standin) Kill(t *testing.T, member string) {
	require.Contains(t, b.servers, member)
	b.servers[member].Close()
	delete(b.servers, member)
}

func (b *standin) Revive(t *testing.T, member string) {
	b.start(t, member)
}

// start does not wait: a member without a majority of others is not ready for long.
func (b *standin) start(t *testing.T, member string) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := pd.Start(ctx, b.cfg[member])
	require.NoError(t, err)
	b.servers[member] = s
}

func (b *standin) Rejoin(t *testing.T, member string) {
	if s, ok := b.servers[member]; ok {
		s.Close()
		delete(b.servers, member)
	}
	require.NoError(t, os.RemoveAll(filepath.Join(b.dir, member)))
	cfg := b.cfg[member]
	cfg.InitialCluster = ""
	for name := range b.servers {
		cfg.Join = b.cfg[name].ClientURLs // PD takes one URL, and no list of them
		break
	}
	b.cfg[member] = cfg
	// It ends when etcd does not take it in, which is for 5 s after each change.
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		s, err := pd.Start(ctx, cfg)
		if err == nil {
			b.servers[member] = s
		}
		return err == nil
	}, time.Minute, 500*time.Millisecond, "member %s is not taken in", member)
}

func (b *standin) AddUnstarted(t *testing.T, peerURL string) {
	addUnstarted(t, b.URL("pd-1"), peerURL)
}

// addUnstarted adds a member by etcd's own interface, as a member that joins does.
func addUnstarted(t *testing.T, clientURL, peerURL string) {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{clientURL}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := client.MemberAdd(ctx, []string{peerURL})
		return err == nil
	}, time.Minute, 200*time.Millisecond)
}

var httpClient = &http.Client{
	Timeout:   10 * time.Second,
	Transport: &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	},
}
