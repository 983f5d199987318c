package rig_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/rig/sample"
)

// stranger is an object of a kind that has nothing to do with the suite.
func stranger(t *testing.T, key rig.Key) *unstructured.Unstructured {
	t.Helper()
	template := map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": "example.com/c:1"}}}}
	bodies := map[string]struct {
		version string
		fields  map[string]any
	}{
		"Service":             {"v1", map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}}},
		"PodDisruptionBudget": {"policy/v1", map[string]any{"spec": map[string]any{"minAvailable": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"theirs": "1"}}}}},
		"PersistentVolumeClaim": {"v1", map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}}},
		// It is never scheduled, so that it never runs.
		"Pod": {"v1", map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "example.com/c:1", "securityContext": map[string]any{
				"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}},
			}}},
			"securityContext": map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
			"schedulingGates": []any{map[string]any{"name": "example.com/theirs"}},
		}}},
		v1alpha1.KindInstance: {v1alpha1.GroupVersion().String(), map[string]any{"spec": map[string]any{
			"group": map[string]any{"kind": v1alpha1.KindTiFlashGroup, "name": strings.TrimSuffix(key.Name, "-0")}, "slot": int64(0), "revision": "r", "paused": true, "podTemplate": template,
		}}},
		v1alpha1.KindPDGroup: {v1alpha1.GroupVersion().String(), map[string]any{"spec": map[string]any{
			"version": sample.Version, "replicas": int64(1), "paused": true, "volumes": []any{map[string]any{"name": "data", "storage": "1Gi"}},
		}}},
	}
	body, known := bodies[key.Kind]
	require.True(t, known)
	u := &unstructured.Unstructured{Object: body.fields}
	u.SetAPIVersion(body.version)
	u.SetKind(key.Kind)
	u.SetName(key.Name)
	return u
}

// names reports whether a condition of the suite's objects says that another owner has
// a name: by its kind, a claim as "claim".
func names(o rig.Objects, key rig.Key) bool {
	kind := key.Kind
	if kind == "PersistentVolumeClaim" {
		kind = "claim"
	}
	reasons := []string{v1alpha1.ReasonNameConflict, v1alpha1.ReasonPodOfAnotherOwner, v1alpha1.ReasonClaimRejected}
	word := strings.ToLower(kind + " " + key.Name)
	return slices.ContainsFunc(o.Keys(), func(other rig.Key) bool {
		return other != key && slices.ContainsFunc(objects.Conditions(o.Get(other.Kind, other.Name)), func(c metav1.Condition) bool {
			said := strings.ToLower(c.Message)
			at := strings.Index(said, word)
			return slices.Contains(reasons, c.Reason) && at >= 0 && !strings.HasPrefix(said[at+len(word):], "-")
		})
	})
}

// P3, P7, S F5, M2, M11: an object of another owner under a name that a cluster needs
// is neither changed nor deleted, and status names it. Names that end with the hash of
// what is in them are not here: they cannot be known before.
func TestObjectsOfOtherOwnersUnderNeededNamesAreNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for _, key := range []rig.Key{
		{Kind: "Service", Name: "small-pd"},
		{Kind: "PodDisruptionBudget", Name: "small-pd-tikv"},
		{Kind: "PersistentVolumeClaim", Name: "data-small-pd-0"},
		{Kind: "Pod", Name: "small-tikv-0"},
		{Kind: v1alpha1.KindInstance, Name: "small-tikv-0"},
		{Kind: v1alpha1.KindPDGroup, Name: "small-pd"},
	} {
		t.Run(key.Kind, func(t *testing.T) {
			t.Parallel()
			r := rig.New(t, plane, rig.Options{Tolerate: sample.TakingDown(), ReasonDeadline: rig.Timeout})
			r.Start(rig.Operators()...)
			theirs := stranger(t, key)
			theirs.SetNamespace(r.Namespace())
			require.NoError(t, r.User().Create(t.Context(), theirs))
			r.Apply(sample.Parse[v1alpha1.TidbCluster](t, `
metadata: {name: small}
spec:
  version: v8.5.7
  pd: {replicas: 1, volumes: [{name: data, storage: 1Gi}]}
  tikv: [{replicas: 1, volumes: [{name: data, storage: 1Gi}]}]
  tidb: [{replicas: 1}]
`))
			r.Await(rig.Timeout, "a condition names "+key.String(), func(o rig.Objects) error {
				if !names(o, key) {
					return fmt.Errorf("no condition names %s", key)
				}
				return nil
			})
			now := theirs.DeepCopy()
			require.NoError(t, r.Get(now, key.Name))
			assert.Equal(t, theirs.GetUID(), now.GetUID(), "it is another one")
			assert.Equal(t, theirs.GetGeneration(), now.GetGeneration())
			assert.Equal(t, theirs.GetLabels(), now.GetLabels())
			assert.Nil(t, now.GetDeletionTimestamp())
			assert.Equal(t, theirs.Object["spec"], now.Object["spec"])
			assert.Equal(t, theirs.GetOwnerReferences(), now.GetOwnerReferences())
		})
	}
}
