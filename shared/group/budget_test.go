package group

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
)

func TestADrainMayTakeOneStoreOfAClusterAndNoneBesideTheOperators(t *testing.T) {
	group := func(name string, replicas int32) *v1alpha1.TiKVGroup {
		g := &v1alpha1.TiKVGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(replicas)
		return g
	}
	hot, cold := group("hot", 3), group("cold", 2)
	s := Snapshot{PDGroup: &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "pd", UID: "1"}}, Groups: []v1alpha1.Group{hot, cold}}
	for name, c := range map[string]struct {
		holder string
		lost   bool
		stay   int
	}{
		"nobody is disrupted":                          {"", false, 4},
		"a store is disrupted":                         {v1alpha1.KindTiKVGroup, false, 5},
		"a store that is gone is not":                  {v1alpha1.KindTiKVGroup, true, 4},
		"PD is disrupted, which is nothing to a store": {v1alpha1.KindPDGroup, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			s.Lease, s.HolderLost = lease.State{Holder: lease.Holder{Kind: c.holder, Instance: "x-0"}}, c.lost
			a, b := SharedBudget(hot, s), SharedBudget(cold, s)
			assert.Equal(t, c.stay, a.Spec.MinAvailable.IntValue())
			assert.Equal(t, a.Name, b.Name)
			assert.Equal(t, a.Spec, b.Spec, "both groups ask for the same")
		})
	}
	s.PDGroup = nil
	assert.Nil(t, SharedBudget(hot, s))
}

func TestADrainMayTakeOneServerOfATiDBGroup(t *testing.T) {
	for replicas, stay := range map[int32]int{0: 0, 1: 0, 2: 1, 5: 4} {
		g := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", UID: "7"}}
		g.Spec.PDGroup.Name, g.Spec.Replicas = "pd", ptr.To(replicas)
		b := OwnBudget(g)
		assert.Equal(t, stay, b.Spec.MinAvailable.IntValue())
		assert.Equal(t, "db-tidb", b.Name)
		assert.Equal(t, BudgetName(g), b.Name)
		require.Len(t, b.OwnerReferences, 1)
		assert.Equal(t, v1alpha1.KindTiDBGroup, b.OwnerReferences[0].Kind, "it goes with its group")
		assert.Equal(t, "db", b.Spec.Selector.MatchLabels[v1alpha1.LabelGroup])
	}
}
