package hostile

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// Memory is how much one object may take, in bytes (P10): an operator has 128 MiB for
// the objects of everybody.
const Memory = 64 << 20

// LongestMessage is what a condition's message may have, in bytes (metav1.Condition's
// MaxLength).
const LongestMessage = 32768

const (
	// longestSpec is what the API server takes of an object, in bytes.
	longestSpec = 1 << 20
	// longestConfig is what the CRDs allow of spec.config, in bytes.
	longestConfig = 128 << 10
	// mostReplicas is what the CRDs allow of spec.replicas. Each takes its memory by
	// right, and a test that makes thousands finds nothing more.
	mostReplicas = 50
)

// Attempt is one try: what is merged into the spec, its configuration, and what PD
// answers to the call of a number.
type Attempt struct {
	Spec, Config, Answer string
	Call                 uint8
}

// Fuzz has a fuzz test try attempts. cluster is the ID of the cluster that the operator
// knows.
func Fuzz(f *testing.F, cluster string, try func(*testing.T, Attempt)) {
	f.Helper()
	for _, a := range listAttempts(cluster) {
		f.Add(a.Spec, a.Config, a.Call, a.Answer)
	}
	f.Fuzz(func(t *testing.T, spec, config string, call uint8, answer string) {
		try(t, Attempt{Spec: spec, Config: config, Call: call, Answer: answer})
	})
}

func listAttempts(cluster string) []Attempt {
	header := `"header":{"cluster_id":` + cluster + `}`
	return []Attempt{
		{Spec: `{}`},
		{Spec: `null`, Config: "a = [", Answer: "null"},
		{Spec: `{"replicas":0}`, Config: "[log]\nlevel = 7", Answer: `{` + header + `,"members":[null],"leader":null}`},
		{Spec: `{"replicas":1,"paused":true}`, Config: "log = 1", Answer: `{` + header + `,"members":[{"name":"","member_id":0}],"leader":{}}`},
		{Spec: `{"suspended":true}`, Config: strings.Repeat("a.", 4000) + "a = 1", Call: 1, Answer: `[{"name":"basic-pd-0","health":true},{}]`},
		{Spec: `{"version":"","image":"::","volumes":null}`, Call: 2, Answer: `{"stores":[null,{},{"store":{"id":1}},{"store":{"id":1},"status":{"region_count":-1}}]}`},
		{Spec: `{"volumes":[{"name":"data","storage":"1Gi"},{"name":"data","storage":"2Gi"}]}`, Call: 3, Answer: `{"max-replicas":-1,"location-labels":",,"}`},
		{Spec: `{"overlay":{"spec":{"containers":[{}]}}}`, Call: 4, Answer: `{"store-id-ranges":{"x":null}}`},
		{Spec: `{"overlay":{"spec":null,"metadata":[]}}`, Call: 5, Answer: `[{"group_id":"pd","id":"x","role":"voter","count":-3}]`},
		{Spec: `{"overlay":7,"env":[{"name":""}],"additionalContainers":[{}]}`, Call: 6, Answer: `{"a":{"a":{"a":{}}}}`},
		{Spec: `{"restartedAt":"x","disruption":{"updateAtMost":-1,"schedule":"* * *"}}`, Call: 2, Answer: `{"stores":[` + strings.Repeat(`{},`, 30000) + `{}]}`},
		{Spec: `{"podTemplate":{"spec":{}},"volumeClaimTemplates":[{"name":"","storage":"0"}]}`, Call: 0, Answer: strings.Repeat("[", 100000)},
		{Spec: `{"tikv":[{"name":"a"},{"name":"a"}],"tidb":[{}],"tiflash":[{}],"pd":{"replicas":0}}`, Config: "[a]\nb.c = {d = [1]}"},
	}
}

// CanMerge merges an attempt's spec into one, as a user who may write it could, and says
// whether anybody could: a spec that cannot be read, or is longer than what the API server
// takes, never comes to an operator.
func CanMerge(spec any, replicas func() int32, a Attempt) bool {
	if len(a.Spec) > longestSpec || len(a.Config) > longestConfig || json.Unmarshal([]byte(a.Spec), spec) != nil {
		return false
	}
	n := replicas()
	return n >= 0 && n <= mostReplicas
}

// PD is a server in PD's place that answers one call with whatever it is told to, and
// the others as a PD does that has just been started.
type PD struct {
	client pd.Client
	mu     sync.Mutex
	paths  []string
	usual  map[string]string
	now    map[string]string
}

// New starts a PD that names its cluster so.
func New(t testing.TB, cluster string) *PD {
	t.Helper()
	p := &PD{
		paths: []string{
			"/pd/api/v1/members", "/pd/api/v1/health", "/pd/api/v1/stores", "/pd/api/v1/config/replicate",
			"/pd/api/v1/scheduler-config/evict-leader-scheduler/list", "/pd/api/v1/config/rules", "/pd/api/v1/config",
			"/pd/api/v1/schedulers",
		},
	}
	p.usual = map[string]string{
		p.paths[0]: `{"header":{"cluster_id":` + cluster + `},"members":[{"name":"basic-pd-0","member_id":1,"client_urls":["http://basic-pd-0:2379"]}],` +
			`"leader":{"name":"basic-pd-0","member_id":1}}`,
		p.paths[1]: `[{"name":"basic-pd-0","member_id":1,"health":true}]`,
		p.paths[2]: `{"count":0,"stores":[]}`, p.paths[3]: `{"max-replicas":3,"enable-placement-rules":"true"}`,
		p.paths[4]: `{}`, p.paths[5]: `[]`, p.paths[6]: `{}`, p.paths[7]: `["evict-leader-scheduler"]`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		text, ok := p.now[r.URL.Path]
		p.mu.Unlock()
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, text) // the client may have closed the connection
	}))
	t.Cleanup(server.Close)
	client, err := pdclient.NewDialer(server.URL, pdclient.WithConfig())(types.NamespacedName{Namespace: "ns", Name: "basic-pd"})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	p.client = client
	return p
}

// View is what an operator sees of the PD of an attempt.
func (p *PD) View(t *testing.T, a Attempt) pd.View {
	t.Helper()
	p.mu.Lock()
	p.now = maps.Clone(p.usual)
	p.now[p.paths[int(a.Call)%len(p.paths)]] = a.Answer
	p.mu.Unlock()
	view, err := p.client.View(t.Context())
	if err != nil {
		return pd.View{Err: err}
	}
	return view
}

// Judge runs what an operator does about an object, which returns the object with its
// status, and fails the test unless it takes little memory and the status reports what is.
func Judge(t *testing.T, kind string, work func() any) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	object := work()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > Memory {
		t.Fatalf("%d MiB were allocated for one object", took>>20)
	}
	raw, err := json.Marshal(object)
	require.NoError(t, err)
	fields := map[string]any{}
	require.NoError(t, utiljson.Unmarshal(raw, &fields))
	answer := &unstructured.Unstructured{Object: fields}
	answer.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))
	require.Empty(t, invariants.Check(answer))
	var status struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	require.NoError(t, json.Unmarshal(raw, &status))
	ready := meta.FindStatusCondition(status.Status.Conditions, v1alpha1.ConditionReady)
	require.NotNil(t, ready, "no answer in status")
	require.NotEmpty(t, ready.Message)
	for _, c := range status.Status.Conditions {
		require.LessOrEqual(t, len(c.Message), LongestMessage, c.Type)
	}
}
