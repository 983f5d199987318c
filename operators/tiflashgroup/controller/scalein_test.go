package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// table returns the placement rule that TiDB sets for a table with replicas.
func table(replicas int) pd.Rule {
	return pd.Rule{Group: "tiflash", ID: "table-45-r", Role: "learner", Count: replicas,
		Constraints: []pd.Constraint{{Key: "engine", Op: "in", Values: []string{"tiflash"}}}}
}

// serving is running beside three TiKV stores and with the labels that a TiFlash
// gives itself.
func serving(t *testing.T, replicas int32) (*stage.Stage, *v1alpha1.TiFlashGroup) {
	t.Helper()
	s, g := running(t, replicas)
	for _, address := range []string{"kv-0", "kv-1", "kv-2"} {
		s.PD.Register(address + ".kv-peer.elsewhere.svc:20160")
	}
	for _, i := range s.Instances() {
		s.ChangeStore(i.Name, func(store *pd.Store) { store.Labels = map[string]string{"engine": "tiflash"} })
	}
	return s, g
}

// orders returns what PD was told of stores, without repetitions.
func orders(s *stage.Stage) []string {
	return slices.Compact(slices.DeleteFunc(s.PD.Calls(), func(call string) bool { return call == "placement-rules" }))
}

func TestFL04ATiFlashGivesItsRegionsAwayBeforeItsInstanceGoes(t *testing.T) {
	t.Parallel()
	s, g := serving(t, 2)
	s.PD.Change(func(v *pd.View) { v.Rules = []pd.Rule{table(1)} })
	s.PD.DelayRemoval(1 << 20)
	s.ChangeStore("basic-tiflash-1", func(store *pd.Store) { store.Regions = 7 })
	id := s.StoreID("basic-tiflash-1")
	s.Edit(g, func() { g.Spec.Replicas = ptr.To[int32](1) })
	s.WaitForMessage(g, v1alpha1.ReasonDraining, "store "+id+" of Instance basic-tiflash-1 (spec.replicas is 1) is Offline and has 7 regions left")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")

	// It is taken back, and done then.
	s.Edit(g, func() { g.Spec.Replicas = ptr.To[int32](2) })
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
	assert.Equal(t, []string{"delete-store " + id, "restore " + id}, orders(s))
	assert.Empty(t, s.StoppedInstances())
	s.PD.DelayRemoval(1)
	s.Edit(g, func() { g.Spec.Replicas = ptr.To[int32](1) })
	s.WaitForInstances(stage.Timeout, "basic-tiflash-0")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.AtRest()
	s.RequireNoWrites(time.Second)
}

func TestFL05ATableThatNeedsTheReplicasRefusesAScaleIn(t *testing.T) {
	t.Parallel()
	s, g := serving(t, 2)
	s.PD.Change(func(v *pd.View) { v.Rules = []pd.Rule{table(2)} })
	s.Edit(g, func() { g.Spec.Replicas = ptr.To[int32](1) })
	s.WaitForMessage(g, v1alpha1.ReasonScaleInRefused, "the table with ID 45 has 2 TiFlash replicas and 1 TiFlash store would stay Up: its owner must lower that first: ALTER TABLE ... SET TIFLASH REPLICA 1")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	assert.Len(t, s.Instances(), 2)
	assert.Empty(t, orders(s))
	s.AtRest()
	s.RequireNoWrites(time.Second)

	// The owner lowers it, and the group need not be edited.
	s.PD.Change(func(v *pd.View) { v.Rules = []pd.Rule{table(1)} })
	s.WaitForInstances(stage.Timeout, "basic-tiflash-0")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.AtRest()
}
