package operator

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kinds "k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/schema"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

// published returns what the API server publishes to an account without rights, once that is all kinds.
func published(t *testing.T) map[string]schema.Property {
	t.Helper()
	powerless := rest.CopyConfig(access)
	powerless.Impersonate = rest.ImpersonationConfig{UserName: "powerless", Groups: []string{"system:authenticated"}}
	ask, err := discovery.NewDiscoveryClientForConfig(powerless)
	require.NoError(t, err)
	var out map[string]schema.Property
	require.Eventually(t, func() bool {
		out, err = schema.Read(t.Context(), ask.RESTClient())
		return err == nil && len(out) == len(v1alpha1.Kinds())
	}, timeout, tick)
	return out
}

// withoutEach calls with every field that a schema has below, while the schema lacks it.
func withoutEach(s schema.Property, path string, call func(path string)) {
	if s.Items != nil {
		withoutEach(*s.Items, path+"[]", call)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below, at := s.Properties[name], name
		if path != "" {
			at = path + "." + name
		}
		delete(s.Properties, name)
		call(at)
		s.Properties[name] = below
		withoutEach(below, at, call)
	}
}

// Whichever field a CRD lacks: a write that has it is refused as a whole. The metadata are Kubernetes' own.
func TestEveryFieldThatACRDLacksIsNamed(t *testing.T) {
	schemas := published(t)
	older, err := schema.FindOlder(schemas)
	require.NoError(t, err)
	require.Empty(t, older)
	fields := 0
	for _, kind := range v1alpha1.Kinds() {
		plural, _ := meta.UnsafeGuessKindToResource(v1alpha1.GroupVersion().WithKind(kind))
		withoutEach(schemas[kind], "", func(path string) {
			fields++
			older, err := schema.FindOlder(map[string]schema.Property{kind: schemas[kind]})
			require.NoError(t, err)
			assert.Equal(t, []string{plural.GroupResource().String() + " (no " + path + ")"}, older)
		})
	}
	assert.Greater(t, fields, 1000)

	delete(schemas[v1alpha1.KindInstance].Properties["status"].Properties["volumes"].Items.Properties, "nodeSelectors")
	delete(schemas[v1alpha1.KindTiKVGroup].Properties["status"].Properties, "stores")
	older, err = schema.FindOlder(schemas)
	require.NoError(t, err)
	assert.Equal(t, []string{"tikvgroups.groups.tidb.dev (no status.stores)", "instances.groups.tidb.dev (no status.volumes[].nodeSelectors)"}, older)

	// One that was installed a moment ago is not published yet.
	delete(schemas, v1alpha1.KindInstance)
	delete(schemas, v1alpha1.KindTiKVGroup)
	older, err = schema.FindOlder(schemas)
	require.NoError(t, err)
	assert.Empty(t, older)
}

// An operator whose CRDs are older says so and touches nothing; it starts when they are applied.
func TestAnOperatorStopsAndNamesACRDThatIsOlder(t *testing.T) {
	published(t)
	const name = "instances.groups.tidb.dev"
	change := func(edit func(crd *unstructured.Unstructured)) {
		crd := &unstructured.Unstructured{}
		crd.SetGroupVersionKind(kinds.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		require.Eventually(t, func() bool {
			require.NoError(t, api.Get(context.Background(), client.ObjectKey{Name: name}, crd))
			edit(crd)
			return api.Update(context.Background(), crd) == nil
		}, timeout, tick)
	}
	older := func() bool {
		out, err := schema.FindOlder(published(t))
		require.NoError(t, err)
		return len(out) == 1
	}
	var spec any
	change(func(crd *unstructured.Unstructured) {
		spec = crd.DeepCopy().Object["spec"]
		versions, _, err := unstructured.NestedSlice(crd.Object, "spec", "versions")
		require.NoError(t, err)
		unstructured.RemoveNestedField(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "status", "properties", "madeFrom")
		require.NoError(t, unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions"))
	})
	restore := func() {
		change(func(crd *unstructured.Unstructured) { crd.Object["spec"] = spec })
		require.Eventually(t, func() bool { return !older() }, timeout, tick)
	}
	defer restore()
	require.Eventually(t, older, timeout, tick)

	namespace := controlplane.CreateNamespace(t, api)
	flags, err := Parse("skewed", []string{"--namespaces=" + namespace, "--metrics-bind-address=0", "--health-probe-bind-address=0"})
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	assert.EqualError(t, Run(ctx, access, NewProgram((&toy{}).definition("skewed")), flags),
		"these CRDs are older than this operator: "+name+" (no status.madeFrom). Apply deploy/crds of its version, and this operator starts by itself")
	assert.NoError(t, ctx.Err())
	restore()
	run(t, namespace, "skewed")
	create(t, namespace, "a")
	isReady(t, namespace, "a")
}
