package deploy_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// warnings keeps what the API server warns of.
type warnings struct {
	lock sync.Mutex
	all  []string
}

func (w *warnings) HandleWarningHeader(code int, _ string, text string) {
	w.lock.Lock()
	defer w.lock.Unlock()
	if code == 299 {
		w.all = append(w.all, text)
	}
}

// taken returns what was warned of since it was last asked.
func (w *warnings) taken() string {
	w.lock.Lock()
	defer w.lock.Unlock()
	out := strings.Join(w.all, "\n")
	w.all = nil
	return out
}

// U 15: an annotation that no operator reads is warned of, and nothing is refused for it.
func TestAnUnknownAnnotationCausesAWarning(t *testing.T) {
	w := withPolicies(t)
	heard := &warnings{}
	config := rest.CopyConfig(plane.Config)
	config.WarningHandler = heard
	warned := w.as(config)
	instance := w.stored(w.object("Instance", "annotated", ours()))
	pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "spec": map[string]any{"containers": []any{map[string]any{"name": "a", "image": "a"}}},
	}}
	pod.SetNamespace(w.namespace)
	pod.SetName("annotated")
	pod.SetLabels(ours())
	w.stored(pod)
	annotate := func(o *unstructured.Unstructured, key string) string {
		require.NoError(t, warned.Patch(t.Context(), o.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+key+`":"1"}}}`))))
		return heard.taken()
	}
	require.Eventually(t, func() bool { // policies come to the API server by watching
		return annotate(instance, "groups.tidb.dev/restrat") != "" && annotate(pod, "tidb.pingcap.com/evict-leader") != ""
	}, waitFor, tick)
	clean := func(o *unstructured.Unstructured) {
		require.NoError(t, w.patch(w.admin, o, `{"metadata":{"annotations":null}}`))
	}
	clean(instance)
	clean(pod)

	for _, c := range []struct {
		on        *unstructured.Unstructured
		key, says string
	}{
		{instance, "groups.tidb.dev/restrat", "nothing reads annotation groups.tidb.dev/restrat: is it misspelt?"},
		{instance, "tidb.pingcap.com/evict-leader", "which TiDB Operator v1 reads: see groups.tidb.dev/evict-leaders"},
		{pod, "tidb.pingcap.com/evict-leader", "Annotate its Instance, with groups.tidb.dev/evict-leaders, restart, replace or remove-first: kubectl -n " + w.namespace + " annotate instance annotated"},
		{pod, "groups.tidb.dev/restart", "nothing reads annotation groups.tidb.dev/restart of a pod"},
		{instance, "groups.tidb.dev/restart", ""},
		{instance, "example.com/restrat", ""},
		{pod, "example.com/note", ""},
	} {
		said := annotate(c.on, c.key)
		if c.says == "" {
			assert.Empty(t, said, c.key)
		} else {
			assert.Contains(t, said, c.says)
		}
		clean(c.on)
	}
	w.stored(w.object("TiKVGroup", "kept", ours()))
	for _, key := range known(t) {
		assert.Empty(t, annotate(w.object("TiKVGroup", "kept", nil), key))
	}
}

// known are the annotations that the suite reads or writes, from its sources.
func known(t *testing.T) []string {
	t.Helper()
	var out []string
	parsed, err := parser.ParseFile(token.NewFileSet(), "../apis/groups/v1alpha1/labels.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, is := n.(*ast.ValueSpec)
		if !is || !strings.HasPrefix(spec.Names[0].Name, "Annotation") || len(spec.Values) == 0 {
			return true
		}
		sum, is := spec.Values[0].(*ast.BinaryExpr)
		if !is {
			return true
		}
		if name, is := sum.Y.(*ast.BasicLit); is {
			value, err := strconv.Unquote(name.Value)
			require.NoError(t, err)
			out = append(out, v1alpha1.LabelPrefix+value)
		}
		return true
	})
	require.Greater(t, len(out), 25)
	return out
}
