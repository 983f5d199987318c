package validation_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/docs"
)

// objects are those of a manifest.
func objects(t *testing.T, namespace, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		o := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(document), &o.Object), document)
		o.SetNamespace(namespace)
		out = append(out, o)
	}
	return out
}

// What a page shows can be pasted: the API server takes every example of a kind.
func TestTheAPIServerTakesTheExamplesOfThePages(t *testing.T) {
	pages, err := docs.Pages("../..")
	require.NoError(t, err)
	c, namespace, n := newClient(t), newNamespace(t), 0
	for name, page := range pages {
		for _, block := range docs.Blocks(page, "yaml") {
			if !strings.HasPrefix(block.Text, "apiVersion: "+v1alpha1.GroupName+"/") {
				continue
			}
			for _, o := range objects(t, namespace, block.Text) {
				n++
				assert.NoError(t, c.Create(t.Context(), o, client.DryRunAll), "%s:%d: %s", name, block.Line, block.Text)
			}
		}
	}
	assert.GreaterOrEqual(t, n, 6, "one of each kind at least")
}

// The API server takes every patch of a page, of the objects that the samples have.
func TestTheAPIServerTakesThePatchesOfThePages(t *testing.T) {
	pages, err := docs.Pages("../..")
	require.NoError(t, err)
	c, namespace, n := newClient(t), newNamespace(t), 0
	groups, err := os.ReadFile("../samples/groups-only.yaml")
	require.NoError(t, err)
	texts := []string{string(groups), strings.ReplaceAll(string(groups), "shop-", "basic-"), strings.ReplaceAll(string(groups), "shop-", "hot-")}
	for _, sample := range []string{"../samples/basic.yaml", "../samples/three-zones.yaml"} {
		text, err := os.ReadFile(sample) //nolint:gosec // a file of the repository
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	for _, text := range texts {
		for _, o := range objects(t, namespace, text) {
			require.NoError(t, c.Create(t.Context(), o), text)
		}
	}
	patch := func(kind, name, form, text string, options ...client.PatchOption) error {
		at := slices.IndexFunc(v1alpha1.Kinds(), func(k string) bool { return strings.EqualFold(k, kind) })
		require.GreaterOrEqual(t, at, 0, kind)
		o := valid(t, v1alpha1.Kinds()[at], namespace)
		o.SetName(name)
		what := types.MergePatchType
		if form == "--type=json" {
			what = types.JSONPatchType
		}
		return c.Patch(t.Context(), o, client.RawPatch(what, []byte(text)), options...)
	}
	bootstrapped := valid(t, v1alpha1.KindTidbCluster, namespace)
	require.NoError(t, c.Status().Patch(t.Context(), bootstrapped, client.RawPatch(types.MergePatchType, []byte(`{"status": {"clusterID": "1"}}`))))
	// What the page has set before, for those that take it away; and a second entry.
	require.NoError(t, patch("tidbcluster", "basic", "--type=json", `[{"op": "add", "path": "/spec/tikv/0/disruption", "value": {"updateAtMost": 1}},
		{"op": "add", "path": "/spec/tikv/-", "value": {"name": "hot", "volumes": [{"name": "tikv", "storage": "1Gi"}]}}]`))
	for kind, name := range map[string]string{v1alpha1.KindBackupSchedule: "nightly", v1alpha1.KindLogBackup: "pitr", v1alpha1.KindRestore: "from-monday"} {
		o := valid(t, kind, namespace)
		o.SetName(name)
		require.NoError(t, c.Create(t.Context(), o))
	}
	for name, page := range pages {
		commands, err := docs.Commands(t.Context(), page)
		require.NoError(t, err, name)
		for _, c := range commands {
			args := c.Args
			if args[0] == "-n" {
				args = args[2:]
			}
			if args[0] != "patch" || args[1] == "instance" || args[1] == "deployment" || len(args) != 6 || args[4] != "-p" {
				continue
			}
			n++
			assert.NoError(t, patch(args[1], args[2], args[3], args[5], client.DryRunAll), "%s:%d: kubectl %q", name, c.Line, args)
		}
	}
	assert.Greater(t, n, 30)
}
