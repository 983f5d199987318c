package pdclient_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
)

const (
	membersPath   = "/pd/api/v1/members"
	healthPath    = "/pd/api/v1/health"
	storesPath    = "/pd/api/v1/stores"
	replicatePath = "/pd/api/v1/config/replicate"
	schedulers    = "/pd/api/v1/schedulers"
	schedulePath  = "/pd/api/v1/config/schedule"
	evictedPath   = "/pd/api/v1/scheduler-config/evict-leader-scheduler/list"
	rulesPath     = "/pd/api/v1/config/rules"
)

var basic = types.NamespacedName{Namespace: "default", Name: "basic-pd"}

// answer is what the server says to one path.
type answer struct {
	status int
	body   string
}

// exchange is a call of a real PD, as it was recorded.
type exchange struct {
	Request struct {
		Method string  `json:"method"`
		URL    string  `json:"url"`
		Body   *string `json:"body"`
	} `json:"request"`
	Response struct {
		Status int             `json:"status"`
		Raw    *string         `json:"body_raw"`
		Body   json.RawMessage `json:"body"`
	} `json:"response"`
}

func exchanged(t *testing.T, name string) exchange {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	var e exchange
	require.NoError(t, json.Unmarshal(data, &e))
	return e
}

// recording reads an answer of a real PD.
func recording(t *testing.T, name string) answer {
	t.Helper()
	response := exchanged(t, name).Response
	if response.Raw != nil {
		return answer{status: response.Status, body: *response.Raw}
	}
	return answer{status: response.Status, body: string(response.Body)}
}

// standIn answers each path with a fixed answer and remembers what it was
// asked.
type standIn struct {
	*httptest.Server
	mu       sync.Mutex
	answers  map[string]answer
	requests []string
	queries  []string
	bodies   []string
	// connected are the other ends of the connections, in the order of their first requests.
	connected []string
}

func newStandIn(t *testing.T, answers map[string]answer) *standIn {
	t.Helper()
	s := &standIn{answers: answers}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if !slices.Contains(s.connected, r.RemoteAddr) {
			s.connected = append(s.connected, r.RemoteAddr)
		}
		s.requests = append(s.requests, r.Method+" "+r.URL.Path)
		s.queries = append(s.queries, r.URL.RawQuery)
		s.bodies = append(s.bodies, string(body))
		a, ok := s.answers[r.URL.Path]
		if !ok {
			a = answer{status: http.StatusNotFound, body: "404 page not found"}
		}
		w.WriteHeader(a.status)
		_, err = io.WriteString(w, a.body)
		assert.NoError(t, err)
	}))
	t.Cleanup(s.Close)
	return s
}

// replay serves recordings for the calls of a View; no leaders are evicted.
func replay(t *testing.T, members, health, stores, replicate string) *standIn {
	t.Helper()
	return newStandIn(t, map[string]answer{
		membersPath: recording(t, members), healthPath: recording(t, health),
		storesPath: recording(t, stores), replicatePath: recording(t, replicate),
		schedulers: recording(t, "10-up3-schedulers"),
		rulesPath:  recording(t, "10-up3-config-rules"),
	})
}

// dial returns a client that waits long enough on a busy machine, unless an option says otherwise.
func dial(t *testing.T, url string, options ...pdclient.DialerOption) pd.Client {
	t.Helper()
	client, err := pdclient.NewDialer(url, append([]pdclient.DialerOption{pdclient.WithTiming(time.Minute, time.Minute)}, options...)...)(basic)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func within(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}
