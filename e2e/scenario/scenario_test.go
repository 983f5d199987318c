package scenario_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

func TestEveryScenarioFileIsRead(t *testing.T) {
	all, err := scenario.Load()
	require.NoError(t, err)
	assert.NotEmpty(t, all)
	for _, s := range all {
		for _, v := range s.Variants(true) {
			assert.True(t, v.RunsIn(scenario.Rig) || v.RunsIn(scenario.Containers), "%s runs somewhere", v.Name)
		}
	}
}

func TestAVariantIsFoundByItsName(t *testing.T) {
	s, err := scenario.Find("groups-in-every-order/tidb,pd,tiflash,tikv")
	require.NoError(t, err)
	assert.Equal(t, []string{"tidb"}, s.Steps[0].Apply)
	assert.Equal(t, []string{"tikv"}, s.Steps[3].Apply)
	_, err = scenario.Find("no-such-thing")
	assert.ErrorContains(t, err, `no scenario "no-such-thing"`)
}

const head = `
name: x
shows: A test.
bears: [P1]
manifests:
  pd: {apiVersion: groups.tidb.dev/v1alpha1, kind: PDGroup, metadata: {name: a}}
steps:
`

func TestTheErrorOfAnInvalidScenarioIsReported(t *testing.T) {
	for name, c := range map[string]struct{ steps, says string }{
		"a field that does not exist":     {"- await: {converges: [PDGroup a]}", `unknown field "steps[0].await.converges"`},
		"a step with two verbs":           {"- {apply: [pd], start: [all]}", "a step has one verb"},
		"a step without a verb":           {"- {}", "a step has one verb"},
		"an object without a name":        {"- await: {gone: [PDGroup]}", "is no object"},
		"a manifest that does not exist":  {"- apply: [tikv]", `there is no manifest "tikv"`},
		"a sample that does not exist":    {"- apply: [none.yaml]", "none.yaml"},
		"an operator that does not exist": {"- start: [ticdc]", `no operator is called "ticdc"`},
		"a refusal without words":         {"- refuse: {apply: pd}", "a refuse step has"},
		"a cascade that does not exist":   {"- delete: {object: PDGroup a, cascade: all}", `there is no cascade "all"`},
		"a patch that is two":             {"- patch: {object: PDGroup a, merge: {}, json: [{}]}", "either merge or json"},
		"a command of nothing":            {"- paste: {object: PDGroup a, command: edit}", "a paste has a command, and condition, path or event"},
		"a command of two":                {"- paste: {object: PDGroup a, command: edit, condition: Ready, event: SetBack}", "a paste has a command, and condition, path or event"},
		"an order without a sample":       {"- permute: {apply: [pd]}", "how many orders"},
		"a workload on nothing":           {"- workload: {split: 2}", "a workload step has a tidbGroup, or end"},
		"an end of no workload":           {"- workload: {end: true}", "no workload runs"},
		"an end that says more":           {"- workload: {tidbGroup: c}\n- workload: {end: true, user: x}", "says nothing else"},
		"two workloads":                   {"- workload: {tidbGroup: c}\n- workload: {end: true}\n- workload: {tidbGroup: c}", "a scenario has one workload"},
		"an operation under no workload":  {"- operation: {name: x, steps: [{start: [all]}]}", "operation x needs a workload"},
		"an operation after the workload": {"- workload: {tidbGroup: c}\n- workload: {end: true}\n- operation: {name: x, steps: [{start: [all]}]}", "operation x needs a workload"},
		"an operation of nothing":         {"- workload: {tidbGroup: c}\n- operation: {name: x}", "an operation has a name and steps"},
		"an operation in an operation":    {"- workload: {tidbGroup: c}\n- operation: {name: x, steps: [{operation: {name: z}}]}", "step 1, [operation], cannot be part"},
		"a wrong step in an operation":    {"- workload: {tidbGroup: c}\n- operation: {name: x, steps: [{start: [ticdc]}]}", `operation x: step 1: no operator is called "ticdc"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := scenario.Parse([]byte(head + c.steps))
			assert.ErrorContains(t, err, c.says)
		})
	}
}

func TestVariantsAreEveryOrderOnceAndASampleIsPartOfThem(t *testing.T) {
	s, err := scenario.Parse([]byte(head + "- permute: {apply: [pd], start: [pdgroup, tikvgroup, instance], sample: 5}"))
	require.NoError(t, err)
	names := func(all []scenario.Scenario) map[string]bool {
		out := map[string]bool{}
		for _, v := range all {
			require.Len(t, v.Steps, 4, v.Name)
			out[v.Name] = true
		}
		return out
	}
	every, sample := names(s.Variants(true)), names(s.Variants(false))
	assert.Len(t, every, 24)
	assert.Len(t, sample, 5)
	assert.Subset(t, every, sample)
}

// object returns an object as the API server would.
func object(kind, name string, fields map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: fields}
	out.SetKind(kind)
	out.SetName(name)
	out.SetUID(types.UID("uid-of-" + kind + "-" + name))
	return out
}

func outcome(t *testing.T, namespace string, all ...*unstructured.Unstructured) []scenario.Object {
	t.Helper()
	set := map[objects.Key]*unstructured.Unstructured{}
	for _, o := range all {
		set[objects.Key{Kind: o.GetKind(), Name: o.GetName()}] = o
	}
	out, err := scenario.Outcome(objects.NewSet(set), namespace)
	require.NoError(t, err)
	return out
}

func pod(node, image string) *unstructured.Unstructured {
	return object("Pod", "a-0", map[string]any{"spec": map[string]any{"nodeName": node, "image": image}})
}

func TestAnOutcomeLeavesOutWhatDiffersByChance(t *testing.T) {
	one := outcome(t, "ns-1", pod("node-1", "pd.ns-1.svc"))
	other := outcome(t, "ns-2", pod("node-2", "pd.ns-2.svc"))
	assert.Empty(t, scenario.Compare(one, other))
}

func TestDifferencesOfOutcomesAreNamed(t *testing.T) {
	config := object("ConfigMap", "c", map[string]any{"data": map[string]any{"k": "v"}})
	want := outcome(t, "ns", pod("n", "pd:1"), config)
	have := outcome(t, "ns", pod("n", "pd:2"), object("Service", "s", map[string]any{}))
	differences := scenario.Compare(have, want)
	require.Len(t, differences, 3)
	assert.Equal(t, "ConfigMap c is missing", differences[0])
	assert.Contains(t, differences[1], `Pod a-0 differs: …`)
	assert.Contains(t, differences[1], "pd:2")
	assert.Equal(t, "Service s should not be there", differences[2])

	want[slices.IndexFunc(want, func(o scenario.Object) bool { return o.Key.Kind == "Pod" })].Spec = nil
	assert.Len(t, scenario.Compare(have, want), 2, "any spec of the pod will do")
	assert.NotNil(t, have[slices.IndexFunc(have, func(o scenario.Object) bool { return o.Key.Kind == "Pod" })].Spec, "what is compared stays as it is")

	again := scenario.Result{Restarts: map[string]int{"a-0": 1}, Bootstraps: map[string]int{"a": 2}}
	assert.Equal(t, []string{"replacements of pod a-0: 1, undisturbed 0", "PD clusters bootstrapped for a: 2, undisturbed 1"},
		again.Differences(scenario.Result{Bootstraps: map[string]int{"a": 1}}))
}

func TestAScenarioHasTheOperatorsOfWhatItNames(t *testing.T) {
	pd := scenario.Manifest{"apiVersion": "groups.tidb.dev/v1alpha1", "kind": "PDGroup", "metadata": map[string]any{"name": "a"}}
	cluster := scenario.Manifest{"kind": "TidbCluster", "spec": map[string]any{"tiproxy": []any{map[string]any{"name": "x"}}}}
	for name, c := range map[string]struct {
		scenario scenario.Scenario
		want     []string
	}{
		"what is applied": {
			scenario.Scenario{Manifests: map[string]scenario.Manifest{"pd": pd, "cluster": cluster}, Steps: []scenario.Step{{Apply: []string{"pd"}}}},
			[]string{"pdgroup", "instance"},
		},
		"entries of a TidbCluster": {
			scenario.Scenario{Manifests: map[string]scenario.Manifest{"cluster": cluster}, Steps: []scenario.Step{{Apply: []string{"cluster"}}}},
			[]string{"tidbgroup", "tiproxygroup", "instance", "tidbcluster"},
		},
		"samples, also of an operation": {
			scenario.Scenario{Steps: []scenario.Step{{Operation: &scenario.Operation{Steps: []scenario.Step{{Apply: []string{"basic.yaml"}}}}}}},
			[]string{"pdgroup", "tikvgroup", "tidbgroup", "tiflashgroup", "instance", "tidbcluster"},
		},
		"who is stopped": {
			scenario.Scenario{Steps: []scenario.Step{{Stop: []string{"ticdcgroup"}}}}, []string{"ticdcgroup", "instance"},
		},
	} {
		got, err := c.scenario.Needed()
		require.NoError(t, err, name)
		assert.ElementsMatch(t, c.want, got, name)
	}
}
