package rig_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/objects"
	"github.com/tidb-groups/tidb-groups/e2e/rig"
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
		"ConfigMap":           {"v1", map[string]any{"data": map[string]any{"theirs": "1"}}},
		"ControllerRevision":  {"apps/v1", map[string]any{"revision": int64(1), "data": map[string]any{"theirs": "1"}}},
		"PodDisruptionBudget": {"policy/v1", map[string]any{"spec": map[string]any{"minAvailable": int64(0), "selector": map[string]any{"matchLabels": map[string]any{"theirs": "1"}}}}},
		"PersistentVolumeClaim": {"v1", map[string]any{"spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}}},
		// It is never scheduled, so that nobody runs it.
		"Pod": {"v1", map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "c", "image": "example.com/c:1"}}, "schedulingGates": []any{map[string]any{"name": "example.com/theirs"}},
		}}},
		v1alpha1.KindInstance: {v1alpha1.GroupVersion().String(), map[string]any{"spec": map[string]any{
			"group": map[string]any{"kind": v1alpha1.KindTiFlashGroup, "name": strings.TrimSuffix(key.Name, "-0")}, "slot": int64(0), "revision": "r", "paused": true, "podTemplate": template,
		}}},
		v1alpha1.KindPDGroup: {v1alpha1.GroupVersion().String(), map[string]any{"spec": map[string]any{
			"version": tidbVersion, "replicas": int64(1), "paused": true, "volumes": []any{map[string]any{"name": "data", "storage": "1Gi"}},
		}}},
	}
	body, known := bodies[key.Kind]
	if !known {
		return nil
	}
	u := &unstructured.Unstructured{Object: body.fields}
	u.SetAPIVersion(body.version)
	u.SetKind(key.Kind)
	u.SetName(key.Name)
	return u
}

// names reports whether a condition of the suite's objects says that somebody else has
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

// P3, P7, S F5, M2, M11: an object of somebody else under any name that a cluster
// needs is neither changed nor deleted, and status names it.
func TestStrangersUnderEveryNameThatAClusterNeeds(t *testing.T) {
	r := rig.New(t, plane, rig.Options{Tolerate: takingDown(), Silence: rig.Patience})
	r.Start(rig.Operators()...)
	cluster := parse[v1alpha1.TidbCluster](t, `
metadata: {name: small}
spec:
  version: v8.5.7
  pd: {replicas: 1, volumes: [{name: data, storage: 1Gi}]}
  tikv: [{replicas: 1, volumes: [{name: data, storage: 1Gi}]}]
  tidb: [{replicas: 1}]
`)
	r.Apply(cluster)
	r.AwaitConverged(rig.Key{Kind: v1alpha1.KindTidbCluster, Name: "small"})
	var wanted []rig.Key
	r.Watcher.Now(func(o rig.Objects) {
		for _, key := range o.Keys() {
			if strings.HasPrefix(key.Name, "small-") || key.Kind == "PersistentVolumeClaim" {
				wanted = append(wanted, key)
			}
		}
	})
	kinds := map[string]int{}
	for _, key := range wanted {
		theirs := stranger(t, key)
		if theirs == nil {
			continue // other groups are as PD's; nobody needs the Lease yet
		}
		clear := func(o rig.Objects) error {
			for _, other := range o.Keys() {
				if other != key && (strings.HasPrefix(other.Name, "small") || other.Kind == "PersistentVolumeClaim") {
					return fmt.Errorf("%s is still there", other)
				}
			}
			return nil
		}
		r.Delete(&v1alpha1.TidbCluster{ObjectMeta: metav1.ObjectMeta{Name: "small"}}, client.PropagationPolicy(metav1.DeletePropagationForeground))
		r.Await(rig.Patience, "the cluster is gone", func(o rig.Objects) error {
			for _, other := range o.Keys() {
				if strings.HasPrefix(other.Name, "small") {
					return fmt.Errorf("%s is still there", other)
				}
			}
			return nil
		})
		r.Watcher.Now(func(o rig.Objects) {
			for _, claim := range o.Names("PersistentVolumeClaim", "") {
				r.Consent(claim)
			}
		})
		for _, claim := range wanted {
			if claim.Kind == "PersistentVolumeClaim" {
				r.Delete(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: claim.Name}})
			}
		}
		r.Await(rig.Patience, "nothing is left", clear)

		theirs.SetNamespace(r.Namespace())
		require.NoError(t, r.User().Create(t.Context(), theirs), key)
		r.Apply(cluster)
		took := r.Await(rig.Patience, "somebody names "+key.String(), func(o rig.Objects) error {
			if !names(o, key) {
				return fmt.Errorf("nobody names %s", key)
			}
			return nil
		})
		now := theirs.DeepCopy()
		require.NoError(t, r.Get(now, key.Name), key)
		assert.Equal(t, theirs.GetUID(), now.GetUID(), "%s is another one", key)
		assert.Equal(t, theirs.GetGeneration(), now.GetGeneration(), key)
		assert.Equal(t, theirs.GetLabels(), now.GetLabels(), key)
		assert.Nil(t, now.GetDeletionTimestamp(), key)
		for _, field := range []string{"spec", "data"} {
			assert.Equal(t, theirs.Object[field], now.Object[field], "%s: %s", key, field)
		}
		assert.Equal(t, theirs.GetOwnerReferences(), now.GetOwnerReferences(), key)
		t.Logf("%s is named %s after the cluster was applied", key, took)
		kinds[key.Kind]++
		r.Consent(key.Name)
		require.NoError(t, client.IgnoreNotFound(r.User().Delete(t.Context(), now)))
		if key.Kind == v1alpha1.KindInstance {
			require.Eventually(t, func() bool { return apierrors.IsNotFound(r.Get(now, key.Name)) }, rig.Patience, 100*time.Millisecond)
		}
	}
	assert.Subset(t, slices.Collect(maps.Keys(kinds)), []string{"Service", "ConfigMap", "ControllerRevision", "PodDisruptionBudget", "PersistentVolumeClaim", "Pod", v1alpha1.KindInstance, v1alpha1.KindPDGroup})
}
