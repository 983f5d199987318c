package pdclient_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

// TestOrdersMatchTheRecordedRequests gives each order to a server that answers with
// a recording, and compares what it was asked with what was recorded.
func TestOrdersMatchTheRecordedRequests(t *testing.T) {
	evict := func(id string) func(context.Context, pd.Client) error {
		return func(ctx context.Context, c pd.Client) error { return c.EvictLeaders(ctx, id) }
	}
	stop := func(id string) func(context.Context, pd.Client) error {
		return func(ctx context.Context, c pd.Client) error { return c.StopEvictingLeaders(ctx, id) }
	}
	remove := func(id string) func(context.Context, pd.Client) error {
		return func(ctx context.Context, c pd.Client) error { return c.DeleteStore(ctx, id) }
	}
	restore := func(id string) func(context.Context, pd.Client) error {
		return func(ctx context.Context, c pd.Client) error { return c.RestoreStore(ctx, id) }
	}
	transfer := func(to string) func(context.Context, pd.Client) error {
		return func(ctx context.Context, c pd.Client) error { return c.TransferLeader(ctx, to) }
	}
	member := func(id string) func(context.Context, pd.Client) error {
		return func(ctx context.Context, c pd.Client) error { return c.DeleteMember(ctx, id) }
	}
	config := func(key string, value any) func(context.Context, pd.Client) error {
		return func(ctx context.Context, c pd.Client) error { return c.SetConfig(ctx, map[string]any{key: value}) }
	}
	for recorded, c := range map[string]struct {
		order   func(context.Context, pd.Client) error
		refused string // empty if PD does as it is told
	}{
		"40-evict-add":                       {evict("4"), ""},
		"41-evict-add-again":                 {evict("4"), ""},
		"41-evict-unknown-store":             {evict("99999"), `evict leaders of store 99999: PD refused evict-leaders with 500: \"[PD:core:ErrStoreNotFound]store 99999 not found\"\n`},
		"42-evict-delete":                    {stop("4"), ""},
		"42-evict-delete-none":               {stop("4"), ""},
		"50-delete-store":                    {remove("420"), ""},
		"50-delete-store-again":              {remove("420"), ""},
		"20-delete-store-only-3":             {remove("5"), "delete store 5: PD refused delete-store with 400: [PD:core:ErrStoresNotEnough]can not remove store 5 since the number of up stores would be 2 while need 3"},
		"20-delete-store-unknown":            {remove("999999"), "delete store 999999: PD refused delete-store with 404: [PD:core:ErrStoreNotFound]store 999999 not found"},
		"53-delete-tombstone":                {remove("420"), "delete store 420: PD refused delete-store with 410: [PD:core:ErrStoreRemoved]store 420 has been removed"},
		"51-cancel-offline":                  {restore("420"), ""},
		"53-tombstone-to-up":                 {restore("420"), "restore store 420: PD refused restore-store with 410: [PD:core:ErrStoreRemoved]store 420 has been removed"},
		"20-state-unknown-store":             {restore("9999"), "restore store 9999: PD refused restore-store with 404: [PD:core:ErrStoreNotFound]store 9999 not found"},
		"70-leader-transfer":                 {transfer("pd-2"), ""},
		"70-leader-transfer-unknown":         {transfer("pd-99"), "transfer PD's leader to pd-99: PD refused transfer-leader with 500: no valid pd to transfer etcd leader"},
		"91-noquorum-transfer":               {transfer("pd-2"), "transfer PD's leader to pd-2: PD refused transfer-leader with 500: [PD:apiutil:ErrRedirect]redirect failed"},
		"84-member-delete-by-id-dead":        {member("2194382149107567694"), ""},
		"80-member-delete-unknown-id":        {member("12345"), "delete member 12345: PD refused delete-member with 500: [PD:etcd:ErrEtcdMemberRemove]etcdserver: member not found: etcdserver: member not found"},
		"60-config-max-store-down-time":      {config("schedule.max-store-down-time", "1m"), ""},
		"60-config-unknown-key":              {config("schedule.no-such-key", 1), "set configuration of PD: PD refused set-config with 400: config item no-such-key not found"},
		"00-unbootstrapped-add-evict-leader": {evict("1"), "evict leaders of store 1: PD refused evict-leaders with 500: [PD:cluster:ErrNotBootstrapped]TiKV cluster not bootstrapped, please start TiKV first"},
	} {
		t.Run(recorded, func(t *testing.T) {
			request := exchanged(t, recorded).Request
			_, path, _ := strings.Cut(strings.TrimPrefix(request.URL, "http://"), "/")
			path, query, _ := strings.Cut("/"+path, "?")
			server := newStandIn(t, map[string]answer{path: recording(t, recorded)})
			err := c.order(within(t, 20*time.Second), dial(t, server.URL))
			if c.refused == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, c.refused)
				var refused *pd.Refused
				require.ErrorAs(t, err, &refused)
				assert.Equal(t, strings.HasPrefix(recorded, "00-"), errors.Is(err, pd.ErrNotBootstrapped))
			}
			assert.Equal(t, []string{request.Method + " " + path}, server.requests)
			assert.Equal(t, []string{query}, server.queries)
			if request.Body != nil {
				assert.JSONEq(t, *request.Body, server.bodies[0])
			} else {
				assert.Empty(t, server.bodies[0])
			}
		})
	}
}

// The request is that of etcd's gateway; conformance makes it of a real PD.
func TestSEC01PeerURLsAreSetByEtcdsOwnCall(t *testing.T) {
	server := newStandIn(t, map[string]answer{"/v3/cluster/member/update": {http.StatusOK, `{"header":{}}`}})
	client := dial(t, server.URL)
	require.NoError(t, client.SetPeerURLs(within(t, 20*time.Second), "2194382149107567694", []string{"http://a:2380", "https://a:2380"}))
	assert.Equal(t, []string{"POST /v3/cluster/member/update"}, server.requests)
	assert.JSONEq(t, `{"ID":"2194382149107567694","peerURLs":["http://a:2380","https://a:2380"]}`, server.bodies[0])

	server.answers["/v3/cluster/member/update"] = answer{http.StatusNotFound, `{"error":"etcdserver: member not found","code":5}`}
	err := client.SetPeerURLs(within(t, 20*time.Second), "7", []string{"http://a:2380"})
	assert.ErrorContains(t, err, "set peer URLs of member 7: PD refused set-peer-urls with 404")
}

func TestAnIDThatIsNoNumberIsNotSentToPD(t *testing.T) {
	server := newStandIn(t, nil)
	client := dial(t, server.URL)
	ctx := within(t, 20*time.Second)
	for _, err := range []error{
		client.EvictLeaders(ctx, "x"), client.StopEvictingLeaders(ctx, "x"), client.DeleteStore(ctx, ""),
		client.RestoreStore(ctx, "../members"), client.DeleteMember(ctx, "pd-1"), client.SetPeerURLs(ctx, "pd-1", []string{"http://a:2380"}),
	} {
		assert.ErrorContains(t, err, "invalid syntax")
	}
	assert.Empty(t, server.requests)
}

func TestEvictedStoresAreReadFromPD(t *testing.T) {
	server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
	server.answers[schedulers] = recording(t, "41-schedulers-two")
	server.answers[evictedPath] = recording(t, "41-evict-config-two")
	view, err := dial(t, server.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.Equal(t, []string{"4", "5"}, view.EvictLeader)
	assert.True(t, view.EvictsLeaders("5"))
	assert.False(t, view.EvictsLeaders("1"))
	store, _ := view.Store("1")
	assert.Equal(t, []int{33, 104}, []int{store.Leaders, store.Regions})

	server.answers[evictedPath] = answer{http.StatusInternalServerError, `"etcdserver: request timed out"`}
	_, err = dial(t, server.URL).View(within(t, 20*time.Second))
	assert.EqualError(t, err, "PD refused evict-leader-config with 500: etcdserver: request timed out")
}

// tikv/pd#4707, tikv/pd#6897: a new leader of PD has no scheduler until nearly all regions have
// sent it a heartbeat, and says 404 to who asks for one. PD has then loaded what it has stored.
func TestANewLeaderOfPDDoesNotSayYetWhichStoresItEvicts(t *testing.T) {
	const evicts, other = `{"schedulers-v2":[{"type":"balance-region"},{"type":"evict-leader","args":["4"],"disable":%t}]}`, `{"schedulers-v2":[{"type":"balance-region"}]}`
	for name, c := range map[string]struct {
		running, configured string
		unknown             bool
	}{
		"one that is to evict":                    {`[]`, fmt.Sprintf(evicts, false), true},
		"one that has no list yet":                {`null`, fmt.Sprintf(evicts, false), true},
		"one that is to evict no more":            {`[]`, fmt.Sprintf(evicts, true), false},
		"one that is to evict nothing":            {`[]`, other, false},
		"one that has loaded, with a stale entry": {`["balance-region-scheduler"]`, fmt.Sprintf(evicts, false), false},
		"one that has loaded, and evicts no more": {`["evict-leader-scheduler"]`, fmt.Sprintf(evicts, false), false},
	} {
		t.Run(name, func(t *testing.T) {
			server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
			server.answers[schedulers], server.answers[schedulePath] = answer{http.StatusOK, c.running}, answer{http.StatusOK, c.configured}
			view, err := dial(t, server.URL).View(within(t, 20*time.Second))
			require.NoError(t, err)
			assert.Empty(t, view.EvictLeader)
			assert.False(t, view.EvictsLeaders("4"))
			assert.Equal(t, c.unknown, view.EvictionsUnknown)
			assert.Equal(t, c.unknown, view.MayEvictLeaders("4"))
		})
	}
}

func TestRules(t *testing.T) {
	server := replay(t, "10-up3-members", "10-up3-health", "10-up3-stores", "10-up3-config-replicate")
	server.answers[rulesPath] = answer{http.StatusOK, `[
		{"group_id":"tiflash","id":"table-101-r","start_key":"7480","end_key":"7481","role":"learner","count":2,
		 "label_constraints":[{"key":"engine","op":"in","values":["tiflash"]}]},
		{"group_id":"pd","id":"default","start_key":"","end_key":"","role":"voter","count":3}]`}
	view, err := dial(t, server.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.Equal(t, []pd.Rule{
		{Group: "pd", ID: "default", Role: "voter", Count: 3},
		{Group: "tiflash", ID: "table-101-r", Start: "7480", End: "7481", Role: "learner", Count: 2,
			Constraints: []pd.Constraint{{Key: "engine", Op: "in", Values: []string{"tiflash"}}}},
	}, view.Rules)

	// They may be turned off between two calls of one poll.
	server.answers[rulesPath] = answer{http.StatusPreconditionFailed, `"placement rules feature is disabled"`}
	view, err = dial(t, server.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.Empty(t, view.Rules)

	replicate := recording(t, "10-up3-config-replicate")
	replicate.body = strings.ReplaceAll(replicate.body, `"enable-placement-rules": "true"`, `"enable-placement-rules": "false"`)
	server.answers[replicatePath], server.requests = replicate, nil
	view, err = dial(t, server.URL).View(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.False(t, view.PlacementRules)
	assert.NotContains(t, server.requests, "GET "+rulesPath)
}

func TestFindRegion(t *testing.T) {
	const path = "/pd/api/v1/regions/store/4"
	const one, two = `{"id":7,"peers":[{"id":71,"store_id":1},{"id":72,"store_id":4}],"leader":{"id":71,"store_id":1}}`, `{"id":8,"peers":[{"id":81,"store_id":4}],"leader":{"id":0,"store_id":0}}`
	server := newStandIn(t, map[string]answer{path: {http.StatusOK, `{"count":2,"regions":[` + one + "," + two + `]}`}})
	client := dial(t, server.URL)
	ask := func(sought func(pd.Region) bool) (pd.Region, bool, error) {
		return client.FindRegion(within(t, 5*time.Second), "4", sought)
	}
	led := func(r pd.Region) bool { return r.LeaderStore != "" }
	found, ok, err := ask(led)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, pd.Region{ID: "7", LeaderStore: "1", Peers: []pd.Peer{{StoreID: "1", Voter: true}, {StoreID: "4", Voter: true}}}, found)
	found, ok, err = ask(func(r pd.Region) bool { return !led(r) })
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, "8", found.ID)
	nothing := func(pd.Region) bool { return false }
	_, ok, err = ask(nothing)
	require.NoError(t, err)
	assert.False(t, ok)

	server.answers[path] = answer{http.StatusOK, `{"count":0,"regions":null}`}
	_, ok, err = ask(nothing)
	require.NoError(t, err)
	assert.False(t, ok)

	// What ends too soon says nothing of the regions that are not in it.
	for name, body := range map[string]string{
		"cut off": `{"count":2,"regions":[` + one, "fewer than counted": `{"count":2,"regions":[` + one + `]}`, "not counted": `{"regions":[` + one + `]}`,
		"no list": `{"count":1,"regions":7}`, "no object": `[]`, "nothing": "", "no regions": "{}",
	} {
		server.answers[path] = answer{http.StatusOK, body}
		_, ok, err = ask(nothing)
		var malformed *pd.Malformed
		assert.ErrorAs(t, err, &malformed, name)
		assert.False(t, ok, name)
	}
	server.answers[path] = answer{http.StatusInternalServerError, "no"}
	_, _, err = ask(nothing)
	var refused *pd.Refused
	assert.ErrorAs(t, err, &refused)
}

func TestFindRegionNamesAPDWithTLSAsItIsAsked(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(`{"count":2,"regions":[`))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	over := func(types.NamespacedName) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "example.com"}, nil
	}
	client := dial(t, "http://"+server.Listener.Addr().String(), pdclient.WithTLS(over))
	_, _, err := client.FindRegion(within(t, time.Second), "4", func(pd.Region) bool { return false })
	var unreachable *pd.Unreachable
	require.ErrorAs(t, err, &unreachable)
	assert.Equal(t, server.URL, unreachable.URL)
}

// A tombstone that gave its regions away has none; one that was made by force has them until PD has
// placed them elsewhere.
func TestRemovedStores(t *testing.T) {
	const path = "/pd/api/v1/stores/check"
	tombstones := recording(t, "53-stores-check-tombstone")
	server := newStandIn(t, map[string]answer{path: tombstones})
	client := dial(t, server.URL)
	removed, err := client.RemovedStores(within(t, 5*time.Second))
	require.NoError(t, err)
	assert.Empty(t, removed)

	tombstones.body = strings.ReplaceAll(tombstones.body, `"region_count": 0`, `"region_count": 3`)
	server.answers[path] = tombstones
	removed, err = client.RemovedStores(within(t, 5*time.Second))
	require.NoError(t, err)
	assert.Equal(t, []string{"420"}, removed)

	server.answers[path] = answer{http.StatusInternalServerError, "no"}
	_, err = client.RemovedStores(within(t, 5*time.Second))
	var refused *pd.Refused
	assert.ErrorAs(t, err, &refused)
}

func TestUnhealthyRegions(t *testing.T) {
	const down, pending, missing = "/pd/api/v1/regions/check/down-peer", "/pd/api/v1/regions/check/pending-peer", "/pd/api/v1/regions/check/miss-peer"
	server := newStandIn(t, map[string]answer{
		down: recording(t, "10-up3-regions-check-down-peer"), pending: recording(t, "10-up3-regions-check-pending-peer"), missing: recording(t, "10-up3-regions-check-miss-peer"),
	})
	client := dial(t, server.URL)
	regions, err := client.UnhealthyRegions(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.Empty(t, regions)

	server.answers[down] = recording(t, "61-down-peer")
	regions, err = client.UnhealthyRegions(within(t, 20*time.Second))
	require.NoError(t, err)
	require.Len(t, regions, 75)
	assert.Contains(t, regions, pd.Region{ID: "180", LeaderStore: "1", Peers: []pd.Peer{
		{StoreID: "1", Voter: true}, {StoreID: "5", Voter: true, Down: true}, {StoreID: "658", Voter: true}}})
	for i := range regions[1:] {
		a, b := regions[i].ID, regions[i+1].ID
		assert.True(t, len(a) < len(b) || len(a) == len(b) && a < b, "%s before %s", a, b)
	}

	// PD's names for what was never recorded come from its client library.
	body := `{"count":1,"regions":[{"id":7,"peers":[{"id":71,"store_id":1},{"id":72,"store_id":4},{"id":73,"store_id":5,"role":1,"role_name":"Learner","is_learner":true}],` +
		`"leader":{"id":71,"store_id":1},%q:%s}]}`
	server.answers[down] = answer{http.StatusOK, fmt.Sprintf(body, "down_peers", `[{"peer":{"id":72,"store_id":4},"down_seconds":700}]`)}
	server.answers[pending] = answer{http.StatusOK, fmt.Sprintf(body, "pending_peers", `[{"id":73,"store_id":5}]`)}
	regions, err = client.UnhealthyRegions(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.Equal(t, []pd.Region{{ID: "7", LeaderStore: "1", Peers: []pd.Peer{
		{StoreID: "1", Voter: true}, {StoreID: "4", Voter: true, Down: true}, {StoreID: "5", Pending: true}}}}, regions)

	server.answers[missing] = answer{http.StatusOK, `{"count":1,"regions":[{"id":8,"peers":[{"id":81,"store_id":1}],"leader":{"id":81,"store_id":1}}]}`}
	regions, err = client.UnhealthyRegions(within(t, 20*time.Second))
	require.NoError(t, err)
	require.Len(t, regions, 2, "the regions of all answers")
	assert.Equal(t, pd.Region{ID: "8", LeaderStore: "1", Missing: true, Peers: []pd.Peer{{StoreID: "1", Voter: true}}}, regions[1])
	assert.False(t, regions[0].Missing)

	server.answers[missing] = answer{http.StatusOK, fmt.Sprintf(body, "down_peers", "[]")}
	regions, err = client.UnhealthyRegions(within(t, 20*time.Second))
	require.NoError(t, err)
	require.Len(t, regions, 1)
	assert.True(t, regions[0].Missing, "a region that lacks one peer, and has another one that is down")
	assert.True(t, regions[0].Peers[1].Down)

	server.answers[down] = recording(t, "00-unbootstrapped-stores")
	regions, err = client.UnhealthyRegions(within(t, 20*time.Second))
	require.NoError(t, err)
	assert.Empty(t, regions)
	server.answers[down] = recording(t, "91-noquorum-members")
	_, err = client.UnhealthyRegions(within(t, 20*time.Second))
	assert.EqualError(t, err, "list unhealthy regions: PD refused regions-down-peer with 500: [PD:apiutil:ErrRedirect]redirect failed")
}
