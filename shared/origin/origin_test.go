package origin_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/origin"
)

func TestAPersonIsToldWhatToEdit(t *testing.T) {
	meta := func(name, kind string) metav1.ObjectMeta {
		m := metav1.ObjectMeta{Namespace: "ns", Name: name}
		if kind != "" {
			m.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "basic", Controller: ptr.To(true)}}
		}
		return m
	}
	for name, c := range map[string]struct {
		group                        v1alpha1.Group
		field, either, edit, replica string
	}{
		"a group alone": {
			&v1alpha1.TiKVGroup{ObjectMeta: meta("kv", "")}, "spec.replicas", "spec.paused",
			"kubectl -n ns edit tikvgroup kv", "kubectl -n ns scale tikvgroup kv --replicas=4",
		},
		"a group of somebody else's": {
			&v1alpha1.TiKVGroup{ObjectMeta: meta("kv", "Fleet")}, "spec.replicas", "spec.paused",
			"kubectl -n ns edit tikvgroup kv", "kubectl -n ns scale tikvgroup kv --replicas=4",
		},
		"PD of a TidbCluster": {
			&v1alpha1.PDGroup{ObjectMeta: meta("basic-pd", v1alpha1.KindTidbCluster)}, "spec.pd.replicas", "spec.paused or spec.pd.paused",
			"kubectl -n ns edit tidbcluster basic", "kubectl -n ns edit tidbcluster basic (spec.pd.replicas: 4)",
		},
		"the entry without a name": {
			&v1alpha1.TiKVGroup{ObjectMeta: meta("basic-tikv", v1alpha1.KindTidbCluster)}, "spec.tikv[].replicas", "spec.paused or spec.tikv[].paused",
			"kubectl -n ns edit tidbcluster basic", "kubectl -n ns edit tidbcluster basic (spec.tikv[].replicas: 4)",
		},
		"an entry with a name": {
			&v1alpha1.TiFlashGroup{ObjectMeta: meta("basic-tiflash-hot", v1alpha1.KindTidbCluster)}, "spec.tiflash[hot].replicas", "spec.paused or spec.tiflash[hot].paused",
			"kubectl -n ns edit tidbcluster basic", "kubectl -n ns edit tidbcluster basic (spec.tiflash[hot].replicas: 4)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := origin.Of(c.group)
			assert.Equal(t, c.field, o.Field("replicas"))
			assert.Equal(t, c.either, o.Either("paused"))
			assert.Equal(t, c.edit, o.Edit())
			assert.Equal(t, c.replica, o.Scale(4))
		})
	}
}
