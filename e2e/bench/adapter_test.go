package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// The programs of this package's tests can be our operators, as the bench can.
func TestAnotherOperatorIsMeasuredByItsAdapter(t *testing.T) {
	t.Parallel()
	a, err := ReadAdapter("adapters/one-process.yaml")
	require.NoError(t, err)
	got, err := MeasureAdapter(t.Context(), a, Case{Clusters: 1, Idle: 5 * time.Second})
	require.NoError(t, err)

	least := 0
	for _, w := range StartBudget() {
		least += w.AtLeast
	}
	assert.GreaterOrEqual(t, got.Start.Writes, least, "the audit log has all that the budget names")
	assert.Less(t, got.Start.Writes, 2*least, "and nothing of others")
	assert.Positive(t, got.Start.Reads)
	assert.Equal(t, got.Idle.Leases, got.Idle.Writes, "nothing is written but Leases")
	assert.LessOrEqual(t, got.Idle.Leases, 1+int((got.IdleFor+time.Second/2)/(2*time.Second)), "its own is renewed every 2 s")
	assert.Positive(t, got.Start.Processor)
	assert.Less(t, got.Start.Processor, (got.Took+settled)*4)
	assert.Greater(t, got.Memory, int64(10<<20))
	assert.Greater(t, got.Whole, got.Memory, "there is code, too")
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

func TestThePanicOfAProcessIsShownFromItsBeginning(t *testing.T) {
	long := strings.Repeat("\tfile.go:1\n", saidBytes)
	assert.True(t, strings.HasPrefix(shortenOutput("a log line\npanic: nil map\n\ngoroutine 1:\n"+long), "panic: nil map\n\ngoroutine 1:"))
	assert.LessOrEqual(t, len(shortenOutput("panic: nil map\n"+long)), saidBytes)
	assert.Equal(t, "the end", shortenOutput(strings.Repeat(" ", 2*saidBytes)+"the end"))
}

func TestAnIncompleteAdapterNamesTheField(t *testing.T) {
	const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: '{name}', namespace: '{namespace}'}}"
	const clusterLine = `cluster: "` + configMap + `"`
	const whole = `
name: other
processes: [{name: p, command: [run, "{kubeconfig}"]}]
` + clusterLine + `
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
		"apply[0]: stat":     {"name: other\n", "name: other\napply: [none.yaml]\n"},
		"cluster is missing": {"cluster:", "#"},
		"object 0 of cluster has no apiVersion or no kind":                         {"kind: ConfigMap, ", ""},
		`object 0 of cluster has no {name} in metadata.name`:                       {"'{name}'", "one"},
		`object 1 of cluster has no {name} in metadata.name or no namespace`:       {clusterLine, "cluster: \"" + configMap + "\\n---\\n{apiVersion: v1, kind: Secret, metadata: {name: '{name}-key'}}\""},
		"cluster is no manifest of objects":                                        {clusterLine, "cluster: \"{\""},
		`ready.kind is "Database", and no object of cluster is of this kind`:       {"ready: {", "ready: {kind: Database, "},
		`controllers[0] is "statefulset": it may be cronjob-controller, `:          {"name: other\n", "name: other\ncontrollers: [statefulset]\n"},
		`controllers[1] is "node-lifecycle-controller": it may be`:                 {"name: other\n", "name: other\ncontrollers: [statefulset-controller, node-lifecycle-controller]\n"},
		"ready is missing: condition, path with value, or pods":                    {"ready:", "#"},
		"ready is missing: condition, path with":                                   {`path: "{.data.phase}", value: up`, "kind: ConfigMap"},
		`ready.path is "{.data.phase}" and ready.value is "": one needs the other`: {", value: up", ""},
		`ready.path is "{.data"`:                                                   {"{.data.phase}", "{.data"},
		"ready.pods is -1":                                                         {", value: up", ", value: up, pods: -1"},
		`members[0].component is "pump": it may be pd, tikv, tidb`:                 {"name: other\n", "name: other\nmembers: [{component: pump, selector: a=b, service: s}]\n"},
		`members[0].selector is "a b"`:                                             {"name: other\n", "name: other\nmembers: [{component: pd, selector: a b, service: s}]\n"},
		"members[0].selector is missing":                                           {"name: other\n", "name: other\nmembers: [{component: pd, service: s}]\n"},
		"members[0].service is missing":                                            {"name: other\n", "name: other\nmembers: [{component: pd, selector: a=b}]\n"},
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
	assert.True(t, AdapterReady{Condition: "Ready", Path: "{.status.phase}", Value: "Running"}.isReady(o))
	assert.True(t, AdapterReady{Pods: 3}.isReady(o), "pods are counted apart")
	for _, r := range []AdapterReady{{Condition: "Stalled"}, {Condition: "Other"}, {Path: "{.status.phase}", Value: "Run"}, {Path: "{.status.none}", Value: "x"}, {Condition: "Ready", Path: "{.status.phase}", Value: "Run"}} {
		assert.False(t, r.isReady(o), "%+v", r)
	}
	assert.False(t, AdapterReady{Pods: 3}.isReady(nil))
}

func TestAClusterIsAllObjectsAndOneOfThemIsLookedAt(t *testing.T) {
	a, err := ReadAdapter("testdata/acme.yaml")
	require.NoError(t, err)
	two, err := a.objects("c7", "ns")
	require.NoError(t, err)
	var names []string
	for _, o := range two.all {
		names = append(names, o.GetKind()+" "+o.GetName())
	}
	assert.Equal(t, []string{"ConfigMap c7-settings", "Database c7"}, names)
	assert.Equal(t, "Database", two.looked.GetKind())
	a.Ready.Kind = ""
	two, err = a.objects("c7", "ns")
	require.NoError(t, err)
	assert.Equal(t, "ConfigMap", two.looked.GetKind(), "the first one")
}

// An operator may make more objects of the kind that is looked at.
func TestOnlyTheClustersOfACaseAreAwaited(t *testing.T) {
	of := func(name, phase string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"phase": phase}}
		o.SetName(name)
		return o
	}
	r := newReadiness(AdapterReady{Path: "{.phase}", Value: "up"}, []clusterObjects{{looked: of("c0", "")}, {looked: of("c1", "")}})
	for _, step := range []struct {
		object *unstructured.Unstructured
		there  bool
		want   int
	}{{of("c0", "down"), true, 0}, {of("c0", "up"), true, 1}, {of("other", "up"), true, 1}, {of("c1", "up"), true, 2}, {of("c1", "up"), false, 1}} {
		r.noteCluster(step.object, step.there)
		have, _ := r.count()
		assert.Equal(t, step.want, have, "%+v", step)
	}
}

// The program that refuses a name that it does not know tells all that it knows.
func TestKubernetesKnowsTheControllersThatAnAdapterMayName(t *testing.T) {
	programs, err := binaries.Dir(t.Context(), "kube-controller-manager")
	require.NoError(t, err)
	help, err := exec.CommandContext(t.Context(), filepath.Join(programs, "kube-controller-manager"), "--help").CombinedOutput() //nolint:gosec // a program of ours
	require.NoError(t, err)
	_, known, found := strings.Cut(string(help), "All controllers: ")
	require.True(t, found)
	known, _, _ = strings.Cut(known, "\n")
	for _, name := range adapterControllers() {
		assert.Contains(t, strings.Split(known, ", "), name)
	}
}

func TestOursIsACompleteAdapter(t *testing.T) {
	require.NoError(t, SuiteAdapter().check())
}

func TestRequestsAreCountedByUserAgent(t *testing.T) {
	log := audit{filepath.Join(t.TempDir(), "audit.log")}
	require.NoError(t, os.WriteFile(log.file, []byte(`{"stage":"ResponseComplete","verb":"create","userAgent":"a/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"deletecollection","userAgent":"a/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"patch","userAgent":"a/1","objectRef":{"resource":"events"}}
{"stage":"ResponseComplete","verb":"get","userAgent":"b/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"get","userAgent":"b/1","objectRef":{"resource":"leases"}}
{"stage":"ResponseComplete","verb":"update","userAgent":"b/1","objectRef":{"resource":"leases"}}
{"stage":"ResponseComplete","verb":"get","userAgent":"b/1"}
{"stage":"ResponseStarted","verb":"watch","userAgent":"b/1","objectRef":{"resource":"pods"}}
{"stage":"ResponseComplete","verb":"watch","userAgent":"b/1","objectRef":{"resource":"pods"}}
{"stage":"Resp`), 0o600))
	for agents, want := range map[string]Usage{"": {Writes: 3, Reads: 3, Leases: 1}, "a/": {Writes: 2}, "b/": {Writes: 1, Reads: 3, Leases: 1}, "c/": {}} {
		var only []string
		if agents != "" {
			only = []string{agents}
		}
		got, err := log.counts(only)
		require.NoError(t, err)
		assert.Equal(t, want, got, agents)
	}
}
