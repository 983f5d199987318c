package validation_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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
	_ = os.Getenv("PAGES") // with other pages, Go does not take an old result for this one
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
