package validation_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// kubectl runs in a namespace and returns what it prints.
func kubectl(t *testing.T, namespace string, args ...string) string {
	t.Helper()
	out, err := plane.Kubectl(t.Context(), append([]string{"--namespace", namespace}, args...)...)
	require.NoError(t, err)
	return out
}

func TestKubectlAppliesSamplesOverAndOver(t *testing.T) {
	samples, err := filepath.Glob("../samples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, sample := range samples {
		t.Run(filepath.Base(sample), func(t *testing.T) {
			namespace := newNamespace(t)
			kubectl(t, namespace, "apply", "--filename", sample)
			versions := func(field string) string {
				return kubectl(t, namespace, "get", "tidb-all", "--output", "jsonpath={.items[*].metadata."+field+"}")
			}
			before := versions("resourceVersion")
			// kubectl may say "configured", because it compares lists with what
			// the defaults made of them.
			kubectl(t, namespace, "apply", "--filename", sample)
			assert.Equal(t, before, versions("resourceVersion"), "client-side, the same again")
			before = versions("generation")
			for range 2 {
				kubectl(t, namespace, "apply", "--server-side", "--field-manager=kubectl-client-side-apply", "--filename", sample)
			}
			assert.Equal(t, before, versions("generation"), "server-side, the same again")
			assert.Empty(t, kubectl(t, namespace, "diff", "--filename", sample))
		})
	}
}

func TestKubectlAppliesServerSideFromTheStart(t *testing.T) {
	namespace := newNamespace(t)
	for range 2 {
		kubectl(t, namespace, "apply", "--server-side", "--filename", "../samples/two-tikv-groups.yaml")
	}
	// Two who write different entries of one list do not get in each other's way.
	patch := filepath.Join(t.TempDir(), "patch.yaml")
	require.NoError(t, os.WriteFile(patch, []byte("apiVersion: groups.tidb.dev/v1alpha1\nkind: TidbCluster\nmetadata: {name: tiers}\n"+
		"spec: {tikv: [{name: archive, resources: {requests: {cpu: 1}}}]}\n"), 0o600))
	kubectl(t, namespace, "apply", "--server-side", "--field-manager=other", "--filename", patch)
	kubectl(t, namespace, "apply", "--server-side", "--filename", "../samples/two-tikv-groups.yaml")
	assert.Equal(t, "1", kubectl(t, namespace, "get", "tidbcluster", "tiers", "--output", `jsonpath={.spec.tikv[?(@.name=="archive")].resources.requests.cpu}`))
}

func TestKubectlExplainsEveryField(t *testing.T) {
	for field, want := range map[string]string{
		"pdgroup.spec.replicas":                      "cannot be changed until the group is Bootstrapped",
		"tikvgroup.spec.storeLabels":                 "change in place",
		"tidbgroup.spec.shutdown.delaySeconds":       "in seconds",
		"tidbgroup.spec.sql.revision":                "to have it run again",
		"tiflashgroup.spec.volumes.mounts":           "/data0",
		"instance.spec.retire":                       "drained",
		"tidbcluster.spec.tikv":                      "<name>-tikv",
		"tidbcluster.spec.tikv.config":               "TOML",
		"tidbcluster.status.groups.ready":            "Ready condition",
		"tidbgroup.status.conditions":                "docs/conditions.md",
		"pdgroup.spec.topologySpreadConstraints":     "selector is the group's own",
		"pdgroup.spec.terminationGracePeriodSeconds": "in seconds",
	} {
		out := strings.Join(strings.Fields(kubectl(t, "default", "explain", field)), " ")
		assert.Contains(t, out, want, field)
	}
}

func TestKubectlFindsKindsByShortNameAndCategory(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	short := map[string]string{pd: "tgpd", tikv: "tgkv", tidb: "tgdb", tiflash: "tgfl", tiproxy: "tgpx", ticdc: "tgcdc", inst: "tgi", cluster: "tgc", v1alpha1.KindBackup: "tgb", v1alpha1.KindBackupSchedule: "tgbs", v1alpha1.KindLogBackup: "tglb", v1alpha1.KindRestore: "tgr"}
	for _, kind := range v1alpha1.Kinds() {
		require.NoError(t, c.Create(t.Context(), valid(t, kind, namespace)))
		assert.Equal(t, strings.ToLower(kind)+".groups.tidb.dev/basic\n", kubectl(t, namespace, "get", short[kind], "--output=name"))
	}
	lines := func(category string) int {
		return strings.Count(kubectl(t, namespace, "get", category, "--output=name"), "\n")
	}
	// The API server sorts the kinds of a group by name, so that in a category of
	// several the clusters never come first: they have one of their own.
	assert.Equal(t, "tidbcluster.groups.tidb.dev/basic\n", kubectl(t, namespace, "get", "tidb", "--output=name"), "the clusters alone")
	assert.Equal(t, len(v1alpha1.Kinds())-1, lines("tidb-groups"), "what a user writes: all but Instances")
	assert.Equal(t, len(v1alpha1.Kinds()), lines("tidb-all"), "everything of a cluster")
}

// What must be seen at a glance (U 4): that it is refused, held or stuck, how far it
// is, and what really runs.
func TestKubectlPrintsWhatAUserLooksFor(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	state := `reason: ScaleInRefused, message: "spec.replicas is 2, and nothing is removed", version: v8.5.6, conditions: [
		{type: Ready, status: "True", reason: Ready, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"},
		{type: UpToDate, status: "False", reason: ScaleInRefused, message: m, lastTransitionTime: "2026-01-01T00:00:00Z"}]`
	state = strings.Join(strings.Fields(state), " ")
	counts := `replicas: 3, readyReplicas: 2, updatedReplicas: 1, updated: "1/3", `
	columns := []string{"NAME", "READY", "UP-TO-DATE", "REASON", "UPDATED", "VERSION", "AGE"}
	row := []string{"basic", "True", "False", "ScaleInRefused", "1/3", "v8.5.6"}
	for _, want := range []struct {
		kind, status      string
		header, row, wide []string
	}{
		{pd, counts + "leader: basic-pd-1, " + state, columns, row, []string{"2", "3", "basic-pd-1"}},
		{tikv, counts + state, columns, row, []string{"2", "3", "basic-pd"}},
		{tidb, counts + "endpoint: 'basic-tidb.ns.svc:4000', " + state, columns, row, []string{"2", "2", "basic-tidb.ns.svc:4000"}},
		{tiflash, counts + state, columns, row, []string{"2", "1", "basic-pd"}},
		{tiproxy, counts + "endpoint: 'basic-tiproxy.ns.svc:6000', " + state, columns, row, []string{"2", "2", "basic-tiproxy.ns.svc:6000"}},
		{ticdc, counts + state, columns, row, []string{"2", "2", "basic-pd"}},
		{inst, "nodeName: node-1, member: {state: Leader}, " + strings.Replace(state, "version: v8.5.6, ", "", 1),
			[]string{"NAME", "READY", "UP-TO-DATE", "REASON", "MEMBER", "NODE", "AGE"}, []string{"basic", "True", "False", "ScaleInRefused", "Leader", "node-1"}, []string{"basic-pd"}},
		{cluster, `updated: "1/3", endpoint: 'basic-tidb.ns.svc:4000', ` + state, columns, row, []string{"basic-tidb.ns.svc:4000"}},
	} {
		t.Run(want.kind, func(t *testing.T) {
			o := valid(t, want.kind, namespace)
			require.NoError(t, c.Create(t.Context(), o))
			require.NoError(t, c.Status().Update(t.Context(), apply(t, o, change{"status", "{" + want.status + "}"})))
			table := strings.Split(kubectl(t, namespace, "get", strings.ToLower(want.kind)), "\n")
			assert.Equal(t, want.header, strings.Fields(table[0]))
			assert.Equal(t, want.row, strings.Fields(table[1])[:len(want.row)])
			assert.LessOrEqual(t, len(table[1]), 80, "it fits a terminal")
			wide := strings.Split(kubectl(t, namespace, "get", strings.ToLower(want.kind), "--output=wide"), "\n")
			assert.Contains(t, wide[1], "and nothing is removed")
			got := strings.Fields(wide[1])
			assert.Equal(t, want.wide, got[len(want.row)+1:][:len(want.wide)])
		})
	}
}

func TestGroupsScaleThroughTheirSubresource(t *testing.T) {
	c, namespace := newClient(t), newNamespace(t)
	for _, kind := range v1alpha1.GroupKinds(func(v1alpha1.ComponentInfo) bool { return true }) {
		t.Run(kind, func(t *testing.T) {
			o := valid(t, kind, namespace)
			require.NoError(t, c.Create(t.Context(), o))
			require.NoError(t, c.Status().Update(t.Context(), apply(t, o, bootstrapped("True"), change{"status.selector", "groups.tidb.dev/group=basic"})))
			get := func(path string) string {
				return kubectl(t, namespace, "get", strings.ToLower(kind), "basic", "--subresource=scale", "--output=jsonpath={"+path+"}")
			}
			assert.Equal(t, "3", get(".status.replicas"))
			assert.Equal(t, "groups.tidb.dev/group=basic", get(".status.selector"), "an autoscaler finds the pods")
			kubectl(t, namespace, "scale", strings.ToLower(kind), "basic", "--replicas=5")
			assert.Equal(t, "5", get(".spec.replicas"))
		})
	}
	t.Run("not past what the schema allows", func(t *testing.T) {
		_, err := plane.Kubectl(t.Context(), "--namespace", namespace, "scale", "pdgroup", "basic", "--replicas=9")
		assert.ErrorContains(t, err, "spec.replicas")
	})
	t.Run("not PD before it has bootstrapped", func(t *testing.T) {
		o := apply(t, valid(t, pd, namespace), change{"metadata.name", "fresh"})
		require.NoError(t, c.Create(t.Context(), o))
		_, err := plane.Kubectl(t.Context(), "--namespace", namespace, "scale", "pdgroup", "fresh", "--replicas=5")
		assert.ErrorContains(t, err, "cannot change until PD has bootstrapped")
	})
}

func TestEveryFieldOfTheGroupKindsIsDescribed(t *testing.T) {
	for _, file := range crdFiles() {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.Contains(file, "tidbclusters") {
			continue // its entries are described in the group kinds
		}
		var crd struct {
			Spec struct {
				Versions []struct{ Schema map[string]any }
			}
		}
		require.NoError(t, yaml.Unmarshal(text, &crd))
		describe(t, file, crd.Spec.Versions[0].Schema["openAPIV3Schema"])
	}
}

// describe checks that every property below a schema has a description.
func describe(t *testing.T, path string, in any) {
	t.Helper()
	schema, ok := in.(map[string]any)
	if !ok {
		return
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, p := range properties {
		property, ok := p.(map[string]any)
		require.True(t, ok)
		if path+"."+name != path+".metadata" {
			assert.NotEmpty(t, property["description"], "%s.%s", path, name)
		}
		describe(t, path+"."+name, property)
	}
	if items, ok := schema["items"]; ok {
		describe(t, path+"[]", items)
	}
}
