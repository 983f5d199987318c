// Package sample has the objects that tests of rigs apply. In are names, replicas or the text of
// a manifest, out are groups and clusters as a user writes them.
package sample

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// TakingDown are the alarms that a test causes that takes everything away.
func TakingDown() []model.AlarmKind {
	return []model.AlarmKind{model.LostPDMajority, model.LostRegionMajority}
}

// Version is that of the components.
const Version = "v8.5.7"

// Basic is the cluster that the demo shows: 3 PD, 3 TiKV, 2 TiDB, 1 TiFlash.
const Basic = `
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

// Parse reads a manifest, strictly.
func Parse[T any](t *testing.T, text string) *T {
	t.Helper()
	out := new(T)
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), out))
	return out
}

// Data is one volume of 1 GiB.
func Data() []v1alpha1.Volume {
	return []v1alpha1.Volume{{Name: "data", Storage: resource.MustParse("1Gi")}}
}

// Component is what every group says, with these volumes.
func Component(volumes []v1alpha1.Volume) v1alpha1.ComponentSpec {
	return v1alpha1.ComponentSpec{Version: Version, Volumes: volumes}
}

// PDGroup is a group of PD members.
func PDGroup(name string, replicas int32) *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas = Component(Data()), ptr.To(replicas)
	return g
}

// TiKVGroup is a group of stores of TiKV of the cluster of a PDGroup.
func TiKVGroup(name, pd string, replicas int32) *v1alpha1.TiKVGroup {
	g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas, g.Spec.PDGroup.Name = Component(Data()), ptr.To(replicas), pd
	return g
}

// TiDBGroup is a group of servers of TiDB of the cluster of a PDGroup.
func TiDBGroup(name, pd string, replicas int32) *v1alpha1.TiDBGroup {
	g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas, g.Spec.PDGroup.Name = Component(nil), ptr.To(replicas), pd
	return g
}

// TiFlashGroup is a group of stores of TiFlash of the cluster of a PDGroup.
func TiFlashGroup(name, pd string, replicas int32) *v1alpha1.TiFlashGroup {
	g := &v1alpha1.TiFlashGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.ComponentSpec, g.Spec.Replicas, g.Spec.PDGroup.Name = Component(Data()), ptr.To(replicas), pd
	return g
}
