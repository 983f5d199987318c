package pdclient_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// P10, P12: whatever PD answers, it is understood, or it is an error that names the call.
func FuzzAnAnswerOfPD(f *testing.F) {
	paths, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(f, err)
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		var e exchange
		require.NoError(f, json.Unmarshal(data, &e))
		if len(e.Response.Body) < 8<<10 {
			f.Add(string(e.Response.Body))
		}
	}
	for _, text := range []string{
		"", "{", "[", "null", "[null]", `{"stores":null}`, `{"stores":[null]}`, `{"members":[null],"leader":null}`, `{"regions":[null],"count":1}`,
		`{"kvs":[null]}`, `{"header":{"cluster_id":7},"members":[null,{"member_id":1}],"leader":{"member_id":1}}`, `{"store-id-ranges":null}`, `{"":`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		members := answer{http.StatusOK, `{"header":{"cluster_id":7},"members":[{"name":"a","member_id":1}],"leader":{"name":"a","member_id":1}}`}
		all := map[string]answer{membersPath: members, healthPath: {http.StatusOK, "[]"}, storesPath: {http.StatusOK, "{}"},
			replicatePath: {http.StatusOK, `{"enable-placement-rules":"true"}`}, schedulers: {http.StatusOK, `["evict-leader-scheduler"]`},
			schedulePath: {http.StatusOK, "{}"}, evictedPath: {http.StatusOK, "{}"}, rulesPath: {http.StatusOK, "[]"}}
		server := newStandIn(t, nil)
		client := dial(t, server.URL)
		ctx := within(t, 20*time.Second)
		check := func(err error) {
			if err != nil && !strings.Contains(err.Error(), "PD's answer to ") {
				t.Fatal(err)
			}
		}
		for path := range all {
			server.mu.Lock()
			server.answers = maps.Clone(all)
			server.answers[path] = answer{http.StatusOK, text}
			server.mu.Unlock()
			if path == schedulePath {
				server.mu.Lock()
				server.answers[schedulers] = answer{http.StatusOK, "[]"}
				server.mu.Unlock()
			}
			view, err := client.View(ctx)
			check(err)
			view.HasQuorum()
		}
		server.mu.Lock()
		for _, path := range []string{"down-peer", "pending-peer", "miss-peer"} {
			server.answers["/pd/api/v1/regions/check/"+path] = answer{http.StatusOK, text}
		}
		server.answers["/pd/api/v1/regions/store/1"] = answer{http.StatusOK, text}
		server.answers["/pd/api/v1/stores/check"] = answer{http.StatusOK, text}
		server.answers["/v3/kv/range"] = answer{http.StatusOK, text}
		server.mu.Unlock()
		_, err := client.UnhealthyRegions(ctx)
		check(err)
		_, _, err = client.FindRegion(ctx, "1", func(pd.Region) bool { return false })
		check(err)
		_, err = client.RemovedStores(ctx)
		check(err)
		_, err = client.Servers(ctx)
		check(err)
	})
}
