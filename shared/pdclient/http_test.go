package pdclient_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pingcap/log"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/turns"
)

func TestViewOfRecordedAnswers(t *testing.T) {
	three := []string{"pd-1", "pd-2", "pd-3"}
	cases := []struct {
		name                               string
		members, health, stores, replicate string
		names                              []string
		leader                             string
		healthy                            int
		quorum, bootstrapped               bool
		states                             map[string]string
		preparing                          []string
	}{{
		name:    "before any TiKV has started, PD is well and simply not bootstrapped",
		members: "00-unbootstrapped-members", health: "00-unbootstrapped-health",
		stores: "00-unbootstrapped-stores", replicate: "00-unbootstrapped-config-replicate",
		names: three, leader: "pd-1", healthy: 3, quorum: true,
		states: map[string]string{},
	}, {
		name:    "a store that has registered but sent no heartbeat is preparing, not dead",
		members: "10-up3-members", health: "10-up3-health",
		stores: "01-stores-before-first-heartbeat", replicate: "10-up3-config-replicate",
		names: three, leader: "pd-1", healthy: 3, quorum: true, bootstrapped: true,
		states: map[string]string{"1": pd.StateDown}, preparing: []string{"1"},
	}, {
		name:    "three stores serve",
		members: "10-up3-members", health: "10-up3-health",
		stores: "10-up3-stores", replicate: "10-up3-config-replicate",
		names: three, leader: "pd-1", healthy: 3, quorum: true, bootstrapped: true,
		states: map[string]string{"1": pd.StateUp, "4": pd.StateUp, "5": pd.StateUp},
	}, {
		name:    "a store is leaving",
		members: "10-up3-members", health: "10-up3-health",
		stores: "50-stores-default-list", replicate: "10-up3-config-replicate",
		names: three, leader: "pd-1", healthy: 3, quorum: true, bootstrapped: true,
		states: map[string]string{"1": pd.StateUp, "4": pd.StateUp, "5": pd.StateUp, "420": pd.StateOffline},
	}, {
		name:    "a tombstone is left out even if PD lists it",
		members: "10-up3-members", health: "10-up3-health",
		stores: "53-stores-state-2", replicate: "10-up3-config-replicate",
		names: three, leader: "pd-1", healthy: 3, quorum: true, bootstrapped: true,
		states: map[string]string{},
	}, {
		name:    "a store that died is Down, and was started once",
		members: "10-up3-members", health: "10-up3-health",
		stores: "61-stores-check-down-while-down", replicate: "10-up3-config-replicate",
		names: three, leader: "pd-1", healthy: 3, quorum: true, bootstrapped: true,
		states: map[string]string{"5": pd.StateDown},
	}, {
		name:    "one member is dead: the majority still is a quorum",
		members: "90-members-one-dead", health: "90-health-one-dead",
		stores: "10-up3-stores", replicate: "10-up3-config-replicate",
		names: three, leader: "pd-3", healthy: 2, quorum: true, bootstrapped: true,
		states: map[string]string{"1": pd.StateUp, "4": pd.StateUp, "5": pd.StateUp},
	}, {
		name:    "members that only /health knows are not members",
		members: "80-members-after-delete", health: "10-up3-health",
		stores: "10-up3-stores", replicate: "10-up3-config-replicate",
		names: []string{"pd-1", "pd-2"}, leader: "pd-2", healthy: 2, quorum: true, bootstrapped: true,
		states: map[string]string{"1": pd.StateUp, "4": pd.StateUp, "5": pd.StateUp},
	}, {
		name:    "a leader without healthy members has no quorum",
		members: "90-members-one-dead", health: "91-noquorum-health",
		stores: "10-up3-stores", replicate: "10-up3-config-replicate",
		names: three, leader: "pd-3", healthy: 1, bootstrapped: true,
		states: map[string]string{"1": pd.StateUp, "4": pd.StateUp, "5": pd.StateUp},
	}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			server := replay(t, c.members, c.health, c.stores, c.replicate)
			view, err := dial(t, server.URL).View(within(t, 20*time.Second))
			require.NoError(t, err)
			require.NoError(t, view.Err)

			assert.Equal(t, "7710350389239096767", view.ClusterID)
			assert.Equal(t, c.leader, view.Leader)
			assert.Equal(t, c.quorum, view.HasQuorum())
			assert.Equal(t, c.bootstrapped, view.Bootstrapped)
			assert.Equal(t, []string{"zone", "host"}, view.LocationLabels)
			assert.Equal(t, 3, view.MaxReplicas)
			assert.True(t, view.PlacementRules)
			var names []string
			healthy := 0
			for _, m := range view.Members {
				names = append(names, m.Name)
				assert.NotEmpty(t, m.ID)
				assert.True(t, strings.HasPrefix(m.ClientURL, "http://127.0.0.1:2790"), m.ClientURL)
				assert.True(t, strings.HasPrefix(m.PeerURL, "http://127.0.0.1:2795"), m.PeerURL)
				if m.Healthy {
					healthy++
				}
			}
			assert.Equal(t, c.names, names)
			assert.Equal(t, c.healthy, healthy)
			states := map[string]string{}
			var preparing []string
			for _, s := range view.Stores {
				states[s.ID] = s.State
				assert.NotEmpty(t, s.Version)
				assert.NotEmpty(t, s.Labels["zone"])
				if !s.Started {
					preparing = append(preparing, s.ID)
				}
			}
			assert.Equal(t, c.states, states)
			assert.Equal(t, c.preparing, preparing)
			assert.Empty(t, view.EvictLeader)
			requests := []string{"GET " + membersPath, "GET " + healthPath, "GET " + storesPath, "GET " + replicatePath}
			if c.bootstrapped {
				requests = append(requests, "GET "+schedulers, "GET "+rulesPath)
				assert.Equal(t, []pd.Rule{{Group: "pd", ID: "default", Role: "voter", Count: 3, LocationLabels: []string{"zone", "host"}}}, view.Rules)
			} else {
				assert.Empty(t, view.Rules)
			}
			assert.Equal(t, requests, server.requests)
		})
	}
}

func TestAfterALeaderChangeEveryStoreIsDisconnectedButStarted(t *testing.T) {
	server := replay(t, "10-up3-members", "10-up3-health", "73-stores-just-after-leader-change", "10-up3-config-replicate")
	view, err := dial(t, server.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	require.NotEmpty(t, view.Stores)
	for _, s := range view.Stores {
		assert.Equal(t, pd.StateDisconnected, s.State)
		assert.True(t, s.Started)
	}
}

func TestARefreshTakesSettingsOver(t *testing.T) {
	server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
	client := dial(t, server.URL)
	before, err := client.View(within(t, 20*time.Second))
	require.NoError(t, err)
	asked := func() []string {
		server.mu.Lock()
		defer server.mu.Unlock()
		out := server.requests
		server.requests = nil
		return out
	}
	all := asked()
	state := []string{"GET " + membersPath, "GET " + healthPath, "GET " + storesPath}
	assert.Equal(t, append(state, "GET "+replicatePath, "GET "+schedulers, "GET "+rulesPath), all)

	after, err := client.Refresh(within(t, 20*time.Second), before)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.Equal(t, state, asked())

	for name, other := range map[string]func(*pd.View){
		"another cluster":         func(v *pd.View) { v.ClusterID = "1" },
		"another leader":          func(v *pd.View) { v.Leader = "pd-2" },
		"no store had registered": func(v *pd.View) { v.Bootstrapped = false },
		"no schedulers loaded":    func(v *pd.View) { v.EvictionsUnknown = true },
	} {
		changed := before
		changed.MaxReplicas = 5
		other(&changed)
		after, err = client.Refresh(within(t, 20*time.Second), changed)
		require.NoError(t, err, name)
		assert.Equal(t, before, after, name)
		assert.Equal(t, all, asked(), name)
	}
}

func TestAnIdlePDGivesEqualViews(t *testing.T) {
	first := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
	before, err := dial(t, first.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	// The same stores a minute later: heartbeats, sizes and scores differ.
	stores := recording(t, "10-up3-stores")
	stores.body = strings.ReplaceAll(stores.body, "20:19:0", "20:20:0")
	stores.body = strings.ReplaceAll(stores.body, "8.984GiB", "8.5GiB")
	stores.body = strings.ReplaceAll(stores.body, "1m0.", "2m0.")
	require.NotEqual(t, recording(t, "10-up3-stores").body, stores.body)
	first.mu.Lock()
	first.answers[storesPath] = stores
	first.mu.Unlock()
	after, err := dial(t, first.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.True(t, before.Equal(after))

	busy := strings.NewReplacer(`"leader_count": 33`, `"leader_count": 34`, `"region_count": 104`, `"region_count": 105`)
	stores.body = busy.Replace(stores.body)
	require.NotEqual(t, first.answers[storesPath].body, stores.body)
	first.mu.Lock()
	first.answers[storesPath] = stores
	first.mu.Unlock()
	after, err = dial(t, first.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.NotEqual(t, before.Stores, after.Stores)
	assert.True(t, before.Equal(after), "a busy cluster says the same too")

	after.Stores[0].Labels = map[string]string{"zone": "elsewhere"}
	assert.False(t, before.Equal(after))
}

func TestInvalidAnswersAreRefused(t *testing.T) {
	good := recording(t, "10-up3-members")
	cases := []struct {
		name    string
		answers map[string]answer
		message string
		check   func(t *testing.T, err error)
	}{{
		name: "without quorum /members is refused, whatever else answers 200",
		answers: map[string]answer{
			membersPath: recording(t, "91-noquorum-members"), healthPath: recording(t, "91-noquorum-health"),
		},
		message: "PD refused members with 500: [PD:apiutil:ErrRedirect]redirect failed",
		check: func(t *testing.T, err error) {
			var refused *pd.Refused
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, http.StatusInternalServerError, refused.Status)
			assert.NotErrorIs(t, err, pd.ErrNotBootstrapped)
		},
	}, {
		name:    "members without a leader",
		answers: map[string]answer{membersPath: {http.StatusOK, `{"header":{"cluster_id":7},"members":[{"name":"a","member_id":1}]}`}},
		message: "PD's answer to members cannot be used: there is no leader",
	}, {
		name:    "members without a cluster ID",
		answers: map[string]answer{membersPath: {http.StatusOK, `{"members":[{"name":"a","member_id":1}],"leader":{"name":"a","member_id":1}}`}},
		message: "PD's answer to members cannot be used: it has no cluster ID",
	}, {
		name:    "a leader that is no member",
		answers: map[string]answer{membersPath: {http.StatusOK, `{"header":{"cluster_id":7},"members":[{"name":"a","member_id":1}],"leader":{"name":"b","member_id":2}}`}},
		message: "PD's answer to members cannot be used: the leader b is not among the members",
	}, {
		name:    "P11: two members of one name",
		answers: map[string]answer{membersPath: {http.StatusOK, `{"header":{"cluster_id":1},"leader":{"name":"a","member_id":1},"members":[{"name":"a","member_id":1},{"name":"a","member_id":2}]}`}},
		message: `PD's answer to members cannot be used: two members are called "a" or have its ID`,
	}, {
		name:    "P11: two members of one ID",
		answers: map[string]answer{membersPath: {http.StatusOK, `{"header":{"cluster_id":1},"leader":{"name":"a","member_id":1},"members":[{"name":"a","member_id":1},{"name":"b","member_id":1}]}`}},
		message: `PD's answer to members cannot be used: two members are called "b" or have its ID`,
	}, {
		name:    "something else than PD",
		answers: map[string]answer{membersPath: {http.StatusOK, `<html>hello</html>`}},
		message: "PD's answer to members cannot be used: invalid character '<' looking for beginning of value",
		check: func(t *testing.T, err error) {
			var malformed *pd.Malformed
			require.ErrorAs(t, err, &malformed)
		},
	}, {
		name:    "a redirect is not followed",
		answers: map[string]answer{membersPath: {http.StatusMovedPermanently, "moved"}},
		message: "PD refused members with 301: moved",
	}, {
		name:    "stores fail for another reason than bootstrap",
		answers: map[string]answer{membersPath: good, healthPath: recording(t, "10-up3-health"), storesPath: {http.StatusInternalServerError, `"etcdserver: request timed out"`}},
		message: "PD refused stores with 500: etcdserver: request timed out",
	}}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			view, err := dial(t, newStandIn(t, c.answers).URL).View(within(t, 20*time.Second))
			require.EqualError(t, err, c.message)
			assert.Equal(t, pd.View{Err: err}, view, "a failed poll keeps nothing")
			assert.False(t, view.HasQuorum())
			if c.check != nil {
				c.check(t, err)
			}
		})
	}
}

func TestTheErrorOfAnUnreachablePDStaysTheSame(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", loopback.Address(t))
	require.NoError(t, err)
	address := listener.Addr().String()
	blackHole := dial(t, "http://"+address) // accepted by the kernel, never answered
	for range 2 {
		_, err = blackHole.View(within(t, 50*time.Millisecond))
		require.EqualError(t, err, "PD at http://"+address+" does not answer: no answer in time")
	}
	require.NoError(t, listener.Close())
	for range 2 {
		_, err = dial(t, "http://"+address).View(within(t, 20*time.Second))
		require.EqualError(t, err, "PD at http://"+address+" does not answer: connection refused")
		var unreachable *pd.Unreachable
		require.ErrorAs(t, err, &unreachable)
		assert.NotNil(t, errors.Unwrap(unreachable))
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = blackHole.View(cancelled)
	require.EqualError(t, err, "PD at http://"+address+" does not answer: the call was given up")
}

// A TLS handshake for each question would be most of what the operators do at rest. A
// connection leads to one member: after a failure another one is asked.
func TestSEC01TheConnectionToPDIsKeptUntilSomethingFails(t *testing.T) {
	server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
	server.answers[schedulers] = recording(t, "41-schedulers-two") // and 404 for the list of one of them
	for _, path := range []string{"down", "pending", "miss"} {
		server.answers["/pd/api/v1/regions/check/"+path+"-peer"] = answer{http.StatusOK, `{"count":0,"regions":[]}`}
	}
	client := dial(t, server.URL)
	ctx := within(t, 20*time.Second)
	connections := func(ask func() error) (int, error) {
		err := ask()
		for range 3 {
			_, viewErr := client.View(ctx)
			require.NoError(t, viewErr)
		}
		return len(server.connected), err
	}
	view := func() error { _, err := client.View(ctx); return err }
	during := func(path string, wrong answer, ask func() error) func() error {
		return func() error {
			right := server.answers[path]
			server.answers[path] = wrong
			defer func() { server.answers[path] = right }()
			return ask()
		}
	}
	order := func() error { return client.EvictLeaders(ctx, "4") }
	assert.Greater(t, httpclient.NewTransport("").IdleConnTimeout, 2*turns.DefaultTiming().Steady, "it outlasts a poll that is late")
	for _, c := range []struct {
		name  string
		ask   func() error
		fails string
		again int
	}{
		{"the first question", view, "", 1},
		{"what is answered with 404 at rest", view, "", 0},
		{"before there is a store", during(storesPath, recording(t, "00-unbootstrapped-stores"), view), "", 0},
		{"another question", func() error { _, err := client.UnhealthyRegions(ctx); return err }, "", 0},
		{"an order that every member refuses", during("/pd/api/v1/schedulers", answer{http.StatusBadRequest, "no such store"}, order), "400", 0},
		{"an order that a member cannot pass on", during("/pd/api/v1/schedulers", answer{http.StatusServiceUnavailable, "no leader"}, order), "no leader", 1},
		{"a member without a leader", during(membersPath, recording(t, "91-noquorum-members"), view), "ErrRedirect", 1},
		{"a member that lists none", during(membersPath, answer{http.StatusOK, "{}"}, view), "cannot be used", 1},
		{"a member that is stopped", func() error { server.CloseClientConnections(); return nil }, "", 1},
	} {
		before := len(server.connected)
		now, err := connections(c.ask)
		assert.Equal(t, c.again, now-before, c.name)
		if c.fails == "" {
			assert.NoError(t, err, c.name)
		} else {
			assert.ErrorContains(t, err, c.fails, c.name)
		}
	}
}

// No answer in time is what a member behind a partition gives.
func TestAMemberThatStopsAnsweringIsAskedOnce(t *testing.T) {
	server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
	client := dial(t, server.URL)
	_, err := client.View(within(t, 20*time.Second))
	require.NoError(t, err)
	server.mu.Lock() // it does not answer
	_, err = client.View(within(t, 50*time.Millisecond))
	server.mu.Unlock()
	require.ErrorContains(t, err, "no answer in time")
	_, err = client.View(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.Equal(t, 2, len(server.connected))
}

func TestTheLibraryOfPDLogsNothing(t *testing.T) {
	core, logs := observer.New(zapcore.InfoLevel)
	undo := log.ReplaceGlobals(zap.New(core), &log.ZapProperties{Core: core, Level: zap.NewAtomicLevel()})
	defer undo()
	server := newStandIn(t, map[string]answer{membersPath: recording(t, "91-noquorum-members")})
	client, err := pdclient.NewDialer(server.URL)(basic)
	require.NoError(t, err)
	_, err = client.View(within(t, 20*time.Second))
	require.Error(t, err)
	server.Close()
	_, err = client.View(within(t, 20*time.Second))
	require.Error(t, err)
	client.Close()
	assert.Empty(t, logs.All())
}

func TestOrders(t *testing.T) {
	server := newStandIn(t, map[string]answer{
		"/pd/api/v1/store/4/label": {http.StatusOK, `"The store's label is updated."`},
		"/pd/api/v1/config":        {http.StatusOK, `"The config is updated."`},
		"/pd/api/v1/store/5/label": recording(t, "00-unbootstrapped-set-replicate"),
	})
	client := dial(t, server.URL)
	ctx := within(t, 20*time.Second)

	require.NoError(t, client.SetStoreLabels(ctx, "4", map[string]string{"zone": "a"}))
	require.NoError(t, client.EnablePlacementRules(ctx))
	assert.Equal(t, []string{"POST /pd/api/v1/store/4/label", "POST /pd/api/v1/config"}, server.requests)
	assert.Equal(t, []string{`{"zone":"a"}`, `{"replication.enable-placement-rules":"true"}`}, server.bodies)

	err := client.SetStoreLabels(ctx, "5", map[string]string{"zone": "a"})
	require.ErrorIs(t, err, pd.ErrNotBootstrapped)
	require.ErrorContains(t, client.SetStoreLabels(ctx, "abc", nil), `set labels of store "abc"`)
	require.EqualError(t, client.SetStoreLabels(ctx, "6", nil),
		"set labels of store 6: PD refused set-store-labels with 404: 404 page not found")
}

func TestCallsAreMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := pdclient.NewMetrics(registry)
	require.NoError(t, err)
	_, err = pdclient.NewMetrics(registry)
	require.Error(t, err)
	server := replay(t, "00-unbootstrapped-members", "00-unbootstrapped-health", "00-unbootstrapped-stores", "00-unbootstrapped-config-replicate")
	client := dial(t, server.URL, pdclient.WithMetrics(metrics))
	_, err = client.View(within(t, 20*time.Second))
	require.NoError(t, err)
	server.Close()
	_, err = client.View(within(t, 20*time.Second))
	require.Error(t, err)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Len(t, families, 1)
	assert.Equal(t, "tidb_groups_pd_call_seconds", families[0].GetName())
	var calls []string
	for _, m := range families[0].GetMetric() {
		calls = append(calls, m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue())
	}
	assert.ElementsMatch(t, []string{"members 200", "members none", "health 200", "stores 500", "replicate-config 200"}, calls)
}

func TestTheURLOfAPDGroup(t *testing.T) {
	client, err := pdclient.NewDialer("http://{name}.{namespace}.invalid:2379")(types.NamespacedName{Namespace: "prod", Name: "basic-pd"})
	require.NoError(t, err)
	_, err = client.View(within(t, 20*time.Second))
	require.ErrorContains(t, err, "PD at http://basic-pd.prod.invalid:2379 does not answer: ")
	client, err = pdclient.NewDialer("http://{name}.{namespace}.svc:2379", pdclient.WithClusterDomain("tidb-groups.invalid"))(types.NamespacedName{Namespace: "prod", Name: "basic-pd"})
	require.NoError(t, err)
	_, err = client.View(within(t, 20*time.Second))
	require.ErrorContains(t, err, "PD at http://basic-pd.prod.svc:2379 does not answer: ")
	require.ErrorContains(t, err, "basic-pd.prod.svc.tidb-groups.invalid.", "the name that is looked up")
	for _, template := range []string{"", "basic-pd:2379", "ftp://x", "http://x/path", "http://", "http://x:port"} {
		_, err := pdclient.NewDialer(template)(basic)
		assert.ErrorContains(t, err, "dial PDGroup default/basic-pd: ", template)
	}
}

func TestALongAnswerIsShortened(t *testing.T) {
	server := newStandIn(t, map[string]answer{membersPath: {500, "\"" + strings.Repeat("long\n", 200) + "\""}})
	_, err := dial(t, server.URL).View(t.Context())
	assert.Error(t, err)
	assert.Less(t, len(err.Error()), 320)
	assert.NotContains(t, err.Error(), "\n")
}
