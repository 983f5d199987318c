package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// plane is the control plane of this package's tests. Those that measure the processor time of
// this process or how soon something happens run alone, before those that mostly wait.
var plane *controlplane.ControlPlane

func TestMain(m *testing.M) {
	if len(os.Args) == 5 && os.Args[1] == OperatorCommand {
		os.Exit(operate(func(ctx context.Context) error { return RunOperator(ctx, os.Args[2], os.Args[3], os.Args[4]) }))
	}
	if len(os.Args) == 4 && os.Args[1] == acmeCommand {
		os.Exit(operate(func(ctx context.Context) error { return runAcme(ctx, os.Args[2], os.Args[3]) }))
	}
	os.Exit(rig.Main(m, nil, func(cp *controlplane.ControlPlane) { plane = cp }))
}

// operate has this program be an operator until it is told to end.
func operate(run func(context.Context) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// A new write has to be put into the budget, with what it is for.
func TestTheStartOfAClusterStaysWithinItsBudget(t *testing.T) {
	result, err := Measure(t.Context(), plane, Case{Clusters: 1, Idle: 15 * time.Second, Restart: true})
	require.NoError(t, err)
	assert.Empty(t, Excess(Start(), result.Start))
	assert.Positive(t, result.Start.Operators())
	assert.Less(t, result.Start.Operators(), result.Took*4)
	assert.Positive(t, result.Start.ControlPlane["kube-apiserver"])
	assert.Positive(t, result.Start.ControlPlane["etcd"])

	assert.Zero(t, result.Idle.Writes, "nothing is written when nothing happens")
	assert.Zero(t, result.Idle.Reads, "nothing is read either")
	assert.Zero(t, result.Restart.Writes, "a restart of the operators changes nothing")
	assert.Zero(t, result.Restart.PodsReplaced)
}

func TestACountThatGrewIsARegressionAndATimeIsNone(t *testing.T) {
	run := func(machine string, results ...Result) Run { return Run{Machine: machine, Results: results} }
	of := func(clusters, writes, reads, reconciles int) Result {
		return Result{Clusters: clusters, Took: time.Duration(writes) * time.Second, Start: Cost{Writes: writes, Reads: reads, Reconciles: map[string]int{"pdgroup": reconciles}}}
	}
	all, err := Compare(run("a", of(1, 100, 50, 10), of(8, 800, 400, 80)), run("a", of(8, 890, 380, 800), of(20, 1, 1, 1)))
	require.NoError(t, err)
	var worse []string
	for _, c := range all {
		assert.Equal(t, 8, c.Clusters)
		if c.Regression {
			worse = append(worse, c.What)
		}
	}
	assert.Equal(t, []string{"writes"}, worse)
	assert.Len(t, all, 3)

	_, err = Compare(run("a", of(1, 1, 1, 1)), run("b", of(1, 1, 1, 1)))
	require.ErrorContains(t, err, `the base ran on "a"`)
	_, err = Compare(run("a", of(1, 1, 1, 1)), run("a", of(8, 1, 1, 1)))
	require.ErrorContains(t, err, "no number of clusters in common")
}

func TestTheLastRunWithFiguresIsTheOneToCompareWith(t *testing.T) {
	file := filepath.Join(t.TempDir(), "performance.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"commit": "1", "results": [{"clusters": 1}]}, {"commit": "2", "results": [{"clusters": 8}]}, {"commit": "3", "processes": [{"clusters": 1}]}]`), 0o600))
	last, err := LastRun(file)
	require.NoError(t, err)
	assert.Equal(t, "2", last.Commit)
	require.NoError(t, os.WriteFile(file, []byte(`[]`), 0o600))
	_, err = LastRun(file)
	require.ErrorContains(t, err, "no run with figures")
}

// A new write has to be put into the budget, with what it is for. All run on one cluster: what is
// left over by one is written in the next, and is too much there.
func TestOperationsOnAClusterStayWithinTheirBudgets(t *testing.T) {
	all, err := MeasureOperations(t.Context(), plane, Case{Clusters: 1})
	require.NoError(t, err)
	var measured []string
	for _, m := range all {
		measured = append(measured, m.Operation)
		assert.Empty(t, Excess(onABusyMachine(FindOperation(m.Operation)), m.Cost), "%s", m)
	}
	var budgeted []string
	for _, o := range BudgetedOperations() {
		budgeted = append(budgeted, o.Name)
	}
	assert.Equal(t, budgeted, append([]string{startCluster}, measured...), "each budget is held, and no operation is without one")
}

// onABusyMachine is a budget in which what depends on timing may be twice as much, or nothing:
// other packages are tested beside this one. What is made, changed and deleted stays exact.
func onABusyMachine(o Operation) Operation {
	if len(o.Writes) == 0 {
		return o
	}
	known := map[rig.Request]bool{}
	out := Operation{Name: o.Name, Reconciles: map[string]Reconciled{}}
	for _, w := range o.Writes {
		known[rig.Request{Operator: w.Operator, Verb: w.Verb, Resource: w.Resource}] = true
		if w.Resource == "events" || strings.HasSuffix(w.Resource, "/status") {
			w.AtLeast, w.Most = 0, 2*w.Most+2
		}
		out.Writes = append(out.Writes, w)
	}
	for _, operator := range []string{"tidbcluster", "pdgroup", "tikvgroup", "tidbgroup", "instance"} {
		for resource, verb := range map[string]string{operator + "s/status": "patch", "instances/status": "patch", "events": "create"} {
			if request := (rig.Request{Operator: operator, Verb: verb, Resource: resource}); !known[request] {
				known[request] = true
				out.Writes = append(out.Writes, Write{operator, verb, resource, 0, 6, "a server that answers late"})
			}
		}
		out.Reconciles[operator] = Reconciled{Most: 2*o.Reconciles[operator].Most + 10}
	}
	return out
}

func TestEachKindOfWriteHasOneLineInABudget(t *testing.T) {
	for _, o := range BudgetedOperations() {
		t.Run(o.Name, func(t *testing.T) {
			assert.NotEmpty(t, o.What)
			requests := map[rig.Request]int{}
			for _, w := range o.Writes {
				request := rig.Request{Operator: w.Operator, Verb: w.Verb, Resource: w.Resource}
				assert.NotContains(t, requests, request)
				assert.True(t, request.Writes())
				assert.NotEmpty(t, w.Why)
				assert.LessOrEqual(t, w.AtLeast, w.Most)
				assert.Positive(t, w.Most)
				requests[request] = w.AtLeast
			}
			for controller, n := range o.Reconciles {
				assert.Positive(t, n.Seen, controller)
				assert.Greater(t, n.Most, n.Seen, controller)
			}
			assert.Empty(t, Excess(o, Cost{Requests: requests}))
			assert.Equal(t, o, FindOperation(o.Name))
		})
	}
}

func TestAWriteWithoutABudgetIsNamed(t *testing.T) {
	budget := Operation{Name: "one", Reconciles: map[string]Reconciled{"instance": {Seen: 5, Most: 10}}, Writes: []Write{
		{"instance", "create", "pods", 8, 8, "one for each member"},
		{"tikvgroup", "patch", "instances", 3, 3, "the Instances"},
		{"tidbgroup", "patch", "tidbgroups/status", 3, 12, "Ready"},
	}}
	requests := map[rig.Request]int{
		{Operator: "tikvgroup", Verb: "list", Resource: "pods"}:               7,
		{Operator: "tikvgroup", Verb: "patch", Resource: "instances"}:         4,
		{Operator: "tidbgroup", Verb: "patch", Resource: "tidbgroups/status"}: 100,
		{Operator: "tidbgroup", Verb: "delete", Resource: "pods"}:             1,
	}
	reconciles := map[string]int{"instance": 11, "tidbgroup": 1, "pod-actor": 1000, "backup": 0}
	assert.Equal(t, []string{
		"instance: create pods: 0 times, not 8",
		"tikvgroup: patch instances: 4 times, not 3",
		"tidbgroup: patch tidbgroups/status: 100 times, not 3 to 12",
		"tidbgroup: delete pods: 1 times, which no line of the budget allows",
		"instance: 11 reconciles, not at most 10",
		"tidbgroup: 1 reconciles, not at most 0",
	}, Excess(budget, Cost{Requests: requests, Reconciles: reconciles}))

	refused := map[rig.Request]int{{Operator: "tikvgroup", Verb: "patch", Resource: "instances"}: 1}
	assert.NotContains(t, Excess(budget, Cost{Requests: requests, Conflicts: refused}), "tikvgroup: patch instances: 4 times, not 3")

	assert.Equal(t, []string{"tikvgroup: patch instances: 4 times, which no line of the budget allows"},
		Excess(FindOperation("nothing of the kind"), Cost{Requests: map[rig.Request]int{{Operator: "tikvgroup", Verb: "patch", Resource: "instances"}: 4}}))
}

func TestBudgetsAreOnThePage(t *testing.T) {
	var out strings.Builder
	budgetTables(&out, []Operation{
		{Name: "One", What: "It is done.", Writes: []Write{{"instance", "create", "pods", 1, 2, "a member"}}, Reconciles: map[string]Reconciled{"instance": {5, 10}}},
		{Name: "None", What: "It is looked at.", Reconciles: map[string]Reconciled{"tidbcluster": {1, 2}}},
	})
	assert.Contains(t, out.String(), "#### One\n\nIt is done.\n\n| operator | writes | how many | why |\n|---|---|---|---|\n| instance | create pods | 1 to 2 | a member |\n")
	assert.Contains(t, out.String(), "#### None\n\nIt is looked at.\n\nNothing is written.\n")
	assert.Contains(t, out.String(), "| operation | instance | tidbcluster |\n|---|---|---|\n| One | 5 (10) | 0 |\n| None | 0 | 1 (2) |\n")
}

// The simulated world and the garbage collector are no operator's time.
func TestTheProcessorTimeIsTheOperatorsThatUsedIt(t *testing.T) {
	function := func(name string) *profile.Location {
		return &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}}
	}
	sample := func(spent int64, operator string, stack ...*profile.Location) *profile.Sample {
		out := &profile.Sample{Value: []int64{1, spent}, Location: stack}
		if operator != "" {
			out.Label = map[string][]string{rig.ProfileLabel: {operator}}
		}
		return out
	}
	by, functions := sumProfile(&profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu"}},
		Sample: []*profile.Sample{
			sample(10, "tikvgroup", function("plan"), function("reconcile")),
			sample(20, "tikvgroup", function("reconcile"), function("reconcile")),
			sample(40, "pdgroup", function("plan"), function("reconcile")),
			sample(80, "", function("model")),
			sample(160, "", function("work"), function("runtime.gcBgMarkWorker")),
		},
	})
	assert.Equal(t, map[string]time.Duration{"tikvgroup": 30, "pdgroup": 40, "": 80, collector: 160}, by)
	assert.Equal(t, []Function{{"reconcile", 70}, {"plan", 50}}, functions)
	assert.Equal(t, time.Duration(70), Cost{Processor: by}.Operators())
}

func TestRunsAreKeptBesideEachOther(t *testing.T) {
	docs := t.TempDir()
	page := filepath.Join(docs, "performance.md")
	require.NoError(t, os.WriteFile(page, []byte("# Performance\n\n<!-- written by make bench: begin -->\n<!-- written by make bench: end -->\n"), 0o600))
	run := func(commit string, writes int) Run {
		cost := Cost{Writes: 2 * writes, Reads: 10, Reconciles: map[string]int{"pdgroup": 40}, Processor: map[string]time.Duration{"pdgroup": time.Second, "": time.Minute},
			ControlPlane: map[string]time.Duration{"etcd": 4 * time.Second}}
		return Run{What: "of " + commit, Commit: commit, Machine: "m", Results: []Result{{Clusters: 2, Took: 5 * time.Second, Start: cost, Idle: &Cost{Took: time.Minute}}}}
	}
	require.NoError(t, Record(docs, run("one", 200)))
	loaded := run("two", 100)
	loaded.Load = 99
	require.NoError(t, Record(docs, loaded))
	require.NoError(t, Record(docs, loaded), "a commit that is measured again is replaced")

	text, err := os.ReadFile(filepath.Clean(page))
	require.NoError(t, err)
	assert.Contains(t, string(text), "| one | of one | 2 | 5.0 | 200 | 5 | 20 | 500 | 0 |\n"+
		"| two | of two (on a loaded machine, 99.0 processes wanted a processor: only counts can be compared) | 2 | 5.0 | 100 | 5 | 20 | 500 | 0 |\n\n")
	assert.Contains(t, string(text), "### 2 clusters, by who used the processor\n\nCommit two.\n")
	assert.Contains(t, string(text), "| pdgroup | 500 | 20 |\n| etcd | 2000 | |\n| simulated pods and databases, and the benchmark | 30000 | |\n")
	assert.Contains(t, string(text), "| nothing to do, 1m0s | 0 | 0 | 0 | 0 |")
	assert.Contains(t, string(text), "| instance | create pods | 8 | one for each member |")

	require.NoError(t, Record(docs, Run{Commit: "two", Machine: "m", Date: "2026-11-28", Adapted: []Adapted{
		{Name: "tidb-groups", Clusters: 2, Took: 5 * time.Second, Start: Usage{Writes: 200, Leases: 30, Reads: 10, Processor: time.Second}, Memory: 32 << 20, Whole: 64 << 20},
		{Name: "other", Clusters: 2, Took: time.Second, IdleFor: time.Minute, Idle: Usage{Writes: 30, Leases: 29, Reads: 28, Processor: time.Second}},
	}}), "beside the other run of the commit")
	text, err = os.ReadFile(filepath.Clean(page))
	require.NoError(t, err)
	assert.Contains(t, string(text), "### Beside other operators\n\n")
	assert.Contains(t, string(text), "| two | 2026-11-28 | tidb-groups | 2 | 5.0 | 100.0 (15.0) | 5.0 | 500 | 32 (64) | – |\n"+
		"| two | 2026-11-28 | other | 2 | 1.0 | 0.0 (0.0) | 0.0 | 0 | 0 (0) | 30 (29), 28, 1000 in 1m0s |\n")
	assert.Contains(t, string(text), "| two | of two (on a loaded")

	elsewhere := run("two", 90)
	elsewhere.Machine = "another"
	require.NoError(t, Record(docs, elsewhere), "a commit may be measured on several machines")
	text, err = os.ReadFile(filepath.Clean(page))
	require.NoError(t, err)
	assert.Contains(t, string(text), "| two, A | of two (on a loaded")
	assert.Contains(t, string(text), "| two, B | of two | 2 | 5.0 | 90 | 5 | 20 | 500 | 0 |\n")
	assert.Contains(t, string(text), "times cannot:\n\n- A: m\n- B: another\n")
}

func TestThisMachineIsDescribed(t *testing.T) {
	machine, load, err := Describe()
	require.NoError(t, err)
	assert.Contains(t, machine, "processors")
	assert.GreaterOrEqual(t, load, 0.0)
}
