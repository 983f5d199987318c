package rig

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

func TestAwaitLooksOnlyOnceItHasSeenWhatTheUserWrote(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	w := newWatcher("here", reasonDeadline)
	user := w.Follow(fake.NewClientBuilder().WithScheme(scheme).Build())

	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "here", Name: "a"}}
	require.NoError(t, user.Create(t.Context(), claim))
	content := func(Objects) error { return nil }
	at, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorContains(t, w.Await(at, content), "PersistentVolumeClaim")

	old := &unstructured.Unstructured{Object: map[string]any{"kind": kindClaim, "metadata": map[string]any{"name": "a", "resourceVersion": claim.ResourceVersion}}}
	w.see(t.Context(), arrival{watch.Added, old})
	require.NoError(t, w.Await(at, content))

	changed := claim.DeepCopy()
	changed.Labels = map[string]string{"x": "y"}
	require.NoError(t, user.Patch(t.Context(), changed, client.MergeFrom(claim)))
	require.Error(t, w.Await(at, content))
	seen := old.DeepCopy()
	seen.SetResourceVersion(changed.ResourceVersion)
	w.see(t.Context(), arrival{watch.Modified, seen})
	require.NoError(t, w.Await(at, content))

	require.NoError(t, user.Delete(t.Context(), changed))
	require.NoError(t, w.Await(at, content), "a deleted object has no version to wait for")
	require.NoError(t, user.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: "a"}}))
	assert.NoError(t, w.Await(at, content), "another namespace is not watched")
}
