package rig_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

const tidbVersion = "v8.5.7"

// basic is the cluster that the demo shows: 3 PD, 3 TiKV, 2 TiDB, 1 TiFlash.
const basic = `
metadata: {name: basic}
spec:
  version: v8.5.7
  pd:
    replicas: 3
    config: |
      [replication]
      location-labels = ["zone", "host"]
    volumes: [{name: data, storage: 1Gi}]
  tikv:
  - replicas: 3
    volumes: [{name: data, storage: 10Gi}]
  tidb:
  - replicas: 2
  tiflash:
  - replicas: 1
    volumes: [{name: data, storage: 10Gi}]
`

func parse[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

func data() []v1alpha1.Volume {
	return []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
}

func component(volumes []v1alpha1.Volume) v1alpha1.ComponentSpec {
	return v1alpha1.ComponentSpec{Version: tidbVersion, Volumes: volumes}
}

func pdGroup(name string, replicas int32) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas = component(data()), ptr.To(replicas)
	return g
}

func tikvGroup(name, pd string, replicas int32) *v1alpha1.TiKVGroup {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas, g.Spec.PDGroup.Name = component(data()), ptr.To(replicas), pd
	return g
}

func tidbGroup(name, pd string, replicas int32) *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas, g.Spec.PDGroup.Name = component(nil), ptr.To(replicas), pd
	return g
}

func tiflashGroup(name, pd string, replicas int32) *v1alpha1.TiFlashGroup {
	g := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas, g.Spec.PDGroup.Name = component(data()), ptr.To(replicas), pd
	return g
}
