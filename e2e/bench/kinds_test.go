package bench

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
)

// The API server lets the first creations of a new kind wait for two seconds, which were
// counted as the operators' time in two of five runs.
func TestAMeasurementBeginsWhenNoKindIsJustMade(t *testing.T) {
	kinds, err := clientset.NewForConfig(plane.Config)
	require.NoError(t, err)
	crds := kinds.ApiextensionsV1().CustomResourceDefinitions()
	kind := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "tries.bench.example.com"}}
	kind.Spec.Group, kind.Spec.Scope = "bench.example.com", apiextensionsv1.ClusterScoped
	kind.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Plural: "tries", Kind: "Try"}
	kind.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{
		OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)},
	}}}
	_, err = crds.Create(t.Context(), kind, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, crds.Delete(context.WithoutCancel(t.Context()), kind.Name, metav1.DeleteOptions{}))
	})
	require.NoError(t, wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		have, err := crds.Get(ctx, kind.Name, metav1.GetOptions{})
		return err == nil && establishDelay([]apiextensionsv1.CustomResourceDefinition{*have}, time.Now()) > 0, err
	}))

	require.NoError(t, awaitKinds(t.Context(), plane.Config))
	objects, err := dynamic.NewForConfig(plane.Config)
	require.NoError(t, err)
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "bench.example.com/v1", "kind": "Try", "metadata": map[string]any{"name": "first"}}}
	began := time.Now()
	_, err = objects.Resource(schema.GroupVersionResource{Group: "bench.example.com", Version: "v1", Resource: "tries"}).Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Less(t, time.Since(began), machine.StretchWait(2*time.Second))
}
