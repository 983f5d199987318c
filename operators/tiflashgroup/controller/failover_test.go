package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// failing has a group of which a table wants all stores fail over by a policy.
func failing(t *testing.T, replicas int32, policy v1alpha1.FailoverPolicy) (*stage.Stage, *v1alpha1.TiFlashGroup) {
	t.Helper()
	s, g := serving(t, replicas)
	s.PD.Change(func(v *pd.View) { v.Rules = []pd.Rule{table(int(replicas))} })
	s.Edit(g, func() {
		g.Spec.Failover = &v1alpha1.Failover{Policy: policy, After: &metav1.Duration{Duration: 2 * time.Second}}
	})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	return s, g
}

// fails has the pod of a member not ready and PD not hear of its store.
func fails(s *stage.Stage, state, name string) {
	s.Helper()
	s.SetDown(name, state != pd.StateUp)
	s.PD.SetState(state, s.StoreID(name))
}

func TestFL07AStoreIsAddedForADeadOneUntilThatIsBack(t *testing.T) {
	t.Parallel()
	s, g := failing(t, 2, v1alpha1.AddOnFailover)
	begin := time.Now()
	fails(s, pd.StateDisconnected, "basic-tiflash-1")
	s.WaitForInstances(stage.Timeout, "basic-tiflash-0", "basic-tiflash-1", "basic-tiflash-2")
	assert.Greater(t, time.Since(begin), time.Second, "not before its time")
	s.WaitForMessage(g, v1alpha1.ReasonReplacing, "store "+s.StoreID("basic-tiflash-1")+" of Instance basic-tiflash-1 has been down for spec.failover.after (2s): another store replaces it until it is back")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	added := s.StoreID("basic-tiflash-2")
	s.ChangeStore("basic-tiflash-2", func(store *pd.Store) { store.Labels = map[string]string{"engine": "tiflash"} })
	s.RequireNoWrites(2 * time.Second)
	assert.Empty(t, orders(s), "nothing is taken from the tables")

	fails(s, pd.StateUp, "basic-tiflash-1")
	s.WaitForInstances(stage.Timeout, "basic-tiflash-0", "basic-tiflash-1")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"delete-store " + added}, orders(s))
	s.AtRest()
}

func TestFL07TheOnlyStoreIsReplacedForGood(t *testing.T) {
	t.Parallel()
	s, g := failing(t, 1, v1alpha1.ReplaceOnFailover)
	fails(s, pd.StateDown, "basic-tiflash-0")
	id := s.StoreID("basic-tiflash-0")
	s.WaitForInstances(stage.Timeout, "basic-tiflash-1")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"delete-store " + id}, orders(s))
	s.AtRest()
}
