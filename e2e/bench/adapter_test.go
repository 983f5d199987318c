package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The programs of this package's tests can be our operators, as the bench can.
func TestAnotherOperatorIsMeasuredByItsAdapter(t *testing.T) {
	t.Parallel()
	a, err := ReadAdapter("adapters/one-process.yaml")
	require.NoError(t, err)
	got, err := MeasureAdapter(t.Context(), a, Case{Clusters: 1, Idle: 5 * time.Second})
	require.NoError(t, err)

	least := 0
	for _, w := range Budget() {
		least += w.AtLeast
	}
	assert.GreaterOrEqual(t, got.Start.Writes, least, "the audit log has all that the budget names")
	assert.Less(t, got.Start.Writes, 2*least, "and nothing of others")
	assert.Positive(t, got.Start.Reads)
	assert.LessOrEqual(t, got.Idle.Writes, 3, "its Lease is renewed every 2 s, and nothing else is written")
	assert.Positive(t, got.Start.Processor)
	assert.Less(t, got.Start.Processor, (got.Took+settled)*4)
	assert.Greater(t, got.Memory, int64(10<<20))
	assert.Greater(t, got.Took, 2*ready, "TiDB waits for TiKV, and this for PD")
	assert.Contains(t, SideBySide([]Adapted{got}), "| tidb-groups, one process | 1 | ")
}

func TestAProcessThatEndsEndsTheMeasurement(t *testing.T) {
	t.Parallel()
	a, err := ReadAdapter("adapters/one-process.yaml")
	require.NoError(t, err)
	a.Processes = []AdapterProcess{{Name: "all", Command: []string{"/bin/sh", "-c", "echo no such flag: {kubeconfig} >&2; exit 3"}}}
	_, err = MeasureAdapter(t.Context(), a, Case{Clusters: 1})
	require.ErrorContains(t, err, "process all has ended: exit status 3")
	require.ErrorContains(t, err, "no such flag: /")
}

func TestAnIncompleteAdapterNamesTheField(t *testing.T) {
	const whole = `
name: other
processes: [{name: p, command: [run, "{kubeconfig}"]}]
cluster: "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{name}', namespace: '{namespace}'}}"
ready: {path: "{.data.phase}", value: up}
`
	read := func(t *testing.T, text string) error {
		file := filepath.Join(t.TempDir(), "a.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := ReadAdapter(file)
		return err
	}
	require.NoError(t, read(t, whole))
	for says, change := range map[string][2]string{
		"name is missing: what the table calls the operator":             {"name: other\n", ""},
		"processes is missing: what runs the operator":                   {`processes: [{name: p, command: [run, "{kubeconfig}"]}]`, ""},
		"processes[0].name is missing":                                   {"name: p, ", ""},
		"processes[0].command is missing":                                {`, command: [run, "{kubeconfig}"]`, ""},
		"processes[0].command and processes[0].env have no {kubeconfig}": {`, "{kubeconfig}"`, ""},
		`processes[1].name is "p", as of a process before it`:            {`"]}]`, `"]}, {name: p, command: ["{kubeconfig}"]}]`},
		"apply[0]: stat":                                                           {"name: other\n", "name: other\napply: [none.yaml]\n"},
		"cluster is missing":                                                       {"cluster:", "#"},
		"cluster has no apiVersion or no kind":                                     {"kind: ConfigMap, ", ""},
		`cluster.metadata has no name: "{name}"`:                                   {"'{name}'", "one"},
		"ready is missing: condition, path with value, or pods":                    {"ready:", "#"},
		`ready.path is "{.data.phase}" and ready.value is "": one needs the other`: {", value: up", ""},
		`ready.path is "{.data"`:                                                   {"{.data.phase}", "{.data"},
		"ready.pods is -1":                                                         {", value: up", ", value: up, pods: -1"},
		`unknown field "redy"`:                                                     {"ready:", "redy: {}\nready:"},
	} {
		t.Run(says, func(t *testing.T) {
			require.Contains(t, whole, change[0])
			require.ErrorContains(t, read(t, strings.Replace(whole, change[0], change[1], 1)), says)
		})
	}
}

func TestAClusterIsReadyWhenAllHolds(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"phase": "Running", "conditions": []any{map[string]any{"type": "Ready", "status": "True"}, map[string]any{"type": "Stalled", "status": "False"}},
	}}}
	assert.True(t, AdapterReady{Condition: "Ready", Path: "{.status.phase}", Value: "Running"}.ready(o))
	assert.True(t, AdapterReady{Pods: 3}.ready(o), "pods are counted apart")
	for _, r := range []AdapterReady{{Condition: "Stalled"}, {Condition: "Other"}, {Path: "{.status.phase}", Value: "Run"}, {Path: "{.status.none}", Value: "x"}, {Condition: "Ready", Path: "{.status.phase}", Value: "Run"}} {
		assert.False(t, r.ready(o), "%+v", r)
	}
	assert.False(t, AdapterReady{Pods: 3}.ready(nil))
}

func TestOursIsACompleteAdapter(t *testing.T) {
	require.NoError(t, Ours().check())
}

func TestRequestsAreCountedByUserAgent(t *testing.T) {
	log := audit{filepath.Join(t.TempDir(), "audit.log")}
	require.NoError(t, os.WriteFile(log.file, []byte(`{"stage":"ResponseComplete","verb":"create","userAgent":"a/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"deletecollection","userAgent":"a/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"a/1","objectRef":{"resource":"events"}}
{"stage":"ResponseComplete","verb":"get","userAgent":"b/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"get","userAgent":"b/1"}
{"stage":"ResponseStarted","verb":"watch","userAgent":"b/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"watch","userAgent":"b/1","objectRef":{"resource":"pods"}}
{"stage":"Resp`), 0o600))
	for agents, want := range map[string][2]int{"": {2, 2}, "a/": {2, 0}, "b/": {0, 2}, "c/": {0, 0}} {
		var only []string
		if agents != "" {
			only = []string{agents}
		}
		writes, reads, err := log.counts(only)
		require.NoError(t, err)
		assert.Equal(t, want, [2]int{writes, reads}, agents)
	}
}
