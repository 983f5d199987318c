package campaign

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// P10, P12: attempts that have caught a deliberate bug of e2e/mutants, each time.
func TestP10P12AnAttackerDoesNotAffectOtherTenants(t *testing.T) {
	records, err := Run(t.Context(), plane, Options{
		Scenarios: []string{small}, Parallel: 2, References: 1, CRDs: crds, Commit: "test", Out: t.Output(), Faults: []string{
			"hostilepd:GET/pd/api/v1/stores/redirect-307", "hostilepd:GET/pd/api/v1/members/unauthorized", "tenant:names-of-pods-taken",
		},
	})
	require.NoError(t, err)
	for _, r := range records {
		assert.Empty(t, r.Broken, r.Replay())
		assert.Empty(t, r.Findings, r.Replay())
		assert.True(t, r.Struck, r.Replay())
	}
}

func TestEveryAnswerIsGivenAtEveryEndpoint(t *testing.T) {
	asked := []Asked{{Endpoint: "GET/pd/api/v1/members", JSON: true}, {Endpoint: "DELETE/pd/api/v1/store/~"}}
	points := hostilePDPoints(small, asked)
	lies := 0
	for _, a := range listAnswers() {
		if a.lies {
			lies++
		}
	}
	assert.Greater(t, lies, 15)
	assert.Len(t, points, 3*len(listAnswers())-lies, "an order has no answer that could be changed")
	for _, a := range append(points, delayPoints(small)...) {
		assert.Equal(t, a.Campaign, campaignOf(a.Fault))
	}
}

func TestAnEndpointIsNamedWithoutIDsAndNames(t *testing.T) {
	for url, want := range map[string]string{
		"/pd/api/v1/store/17/state?state=Up":             "GET/pd/api/v1/store/~/state",
		"/pd/api/v1/schedulers/evict-leader-scheduler-5": "GET/pd/api/v1/schedulers/evict-leader-scheduler-~",
		"/pd/api/v1/leader/transfer/a-0":                 "GET/pd/api/v1/leader/transfer/a-~",
		"/pd/api/v1/members":                             "GET/pd/api/v1/members",
	} {
		assert.Equal(t, want, endpointOf(httptest.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)))
	}
}

func TestAFalsifiedAnswerChangesOnlyItsField(t *testing.T) {
	const truth = `{"header":{"cluster_id":7},"members":[{"name":"a-0","member_id":18446744073709551615,"client_urls":["http://a-0.a.ns:2379"]}],"ok":true}`
	for name, want := range map[string]string{
		"numbers-negative":      `{"header":{"cluster_id":-7},"members":[{"client_urls":["http://a-0.a.ns:2379"],"member_id":-7,"name":"a-0"}],"ok":true}`,
		"numbers-nan":           `{"header":{"cluster_id":NaN},"members":[{"client_urls":["http://a-0.a.ns:2379"],"member_id":NaN,"name":"a-0"}],"ok":true}`,
		"addresses-elsewhere":   `{"header":{"cluster_id":7},"members":[{"client_urls":["http://elsewhere:1"],"member_id":18446744073709551615,"name":"a-0"}],"ok":true}`,
		"lists-empty":           `{"header":{"cluster_id":7},"members":[],"ok":true}`,
		"flags-flipped":         `{"header":{"cluster_id":7},"members":[{"client_urls":["http://a-0.a.ns:2379"],"member_id":18446744073709551615,"name":"a-0"}],"ok":false}`,
		"cluster-id-of-another": `{"header":{"cluster_id":4711},"members":[{"client_urls":["http://a-0.a.ns:2379"],"member_id":18446744073709551615,"name":"a-0"}],"ok":true}`,
	} {
		w := httptest.NewRecorder()
		listAnswers()[name].give(w, exchange{elsewhere: "elsewhere:1", ask: func() (reply, error) { return reply{status: http.StatusOK, body: []byte(truth)}, nil }})
		assert.Equal(t, want, w.Body.String(), name)
	}
	for name, a := range listAnswers() {
		if !a.lies || name == "answers-of-the-target" {
			continue
		}
		w := httptest.NewRecorder()
		a.give(w, exchange{elsewhere: "elsewhere:1", ask: func() (reply, error) {
			return reply{status: http.StatusOK, body: []byte(`{"n":1,"s":"http://a:1","list":[{"name":"a","id":1}],"ok":true,"state_name":"Up","cluster_id":1}`)}, nil
		}})
		assert.NotEqual(t, `{"cluster_id":1,"list":[{"id":1,"name":"a"}],"n":1,"ok":true,"s":"http://a:1","state_name":"Up"}`, w.Body.String(), name)
	}
}

func TestATenantTriesEveryFieldAndStaysWithinTheSchema(t *testing.T) {
	schemas, err := specSchemas(crds)
	require.NoError(t, err)
	h := &hostiles{schemas: schemas}
	names := map[string]bool{}
	for _, a := range tenantPoints(small, schemas) {
		assert.False(t, names[a.Fault], "two attempts are called %s", a.Fault)
		names[a.Fault] = true
		assert.Equal(t, Tenant, campaignOf(a.Fault))
	}
	assert.Greater(t, len(names), 1000)
	_, err = h.deed("PDGroup/config/hostile-1")
	require.NoError(t, err)
	_, err = h.deed("PDGroup/nonsense/hostile-1")
	assert.Error(t, err)
	assert.Equal(t, map[string]any{"a": []any{"x.ns-1"}}, replaceNamespace(map[string]any{"a": []any{"x." + targetNamespace}}, "ns-1"))
}

func TestAStatusIsShortAndFitForATerminal(t *testing.T) {
	group := func(message string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": v1alpha1.ConditionReady, "status": string(metav1.ConditionFalse), "reason": "A", "message": message},
		}}}}
	}
	assert.Empty(t, checkStatus(key("PDGroup a"), group("PD does not answer")))
	assert.Len(t, checkStatus(key("PDGroup a"), group("PD said \x1b[31m")), 1)
	assert.Len(t, checkStatus(key("PDGroup a"), group("")), 1)
	assert.Len(t, checkStatus(key("PDGroup a"), group(strings.Repeat("x", mostStatus))), 1)
}

func TestWaitsAreSummedUp(t *testing.T) {
	var all []time.Duration
	for n := 200; n > 0; n-- {
		all = append(all, time.Duration(n)*time.Millisecond)
	}
	assert.Equal(t, Waits{Edits: 200, Median: 100 * time.Millisecond, P99: 198 * time.Millisecond, Most: 200 * time.Millisecond}, summarizeWaits(all))
	table := RenderTables([]Sum{{Campaign: Delay, Scenario: small, Commit: "abc", Measured: map[string]Measured{"pd/hangs": {Quiet: summarizeWaits(all), Beside: summarizeWaits(all), SeenQuiet: summarizeWaits(all), SeenBeside: summarizeWaits(all), Machine: "2 × A"}}}})
	assert.Contains(t, table, "| pd/hangs | 200 | 100 ms | 100 ms | 198 ms | 198 ms | 1.00 | 198 ms | 198 ms | 1.00 | 2 × A | abc |")
	assert.NotContains(t, RenderTables([]Sum{{Campaign: Crash, Scenario: small, Commit: "abc"}}), "p99")
}
