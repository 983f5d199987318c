package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// failing has a group of three fail over by a policy, for one store at most.
func failing(t *testing.T, policy v1alpha1.FailoverPolicy) (*stage.Stage, *v1alpha1.TiKVGroup) {
	t.Helper()
	s, g := running(t, 3)
	s.Edit(g, func() {
		g.Spec.Failover = &v1alpha1.Failover{Policy: policy, After: &metav1.Duration{Duration: 2 * time.Second}, Max: ptr.To[int32](1)}
	})
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	return s, g
}

// fails has the pods of members not ready and PD not hear of their stores.
func fails(s *stage.Stage, state string, members ...string) {
	s.Helper()
	var ids []string
	for _, name := range members {
		s.SetDown(name, state != pd.StateUp)
		ids = append(ids, s.StoreID(name))
	}
	s.PD.SetState(state, ids...) // at once: between them one alone would be down
}

func TestKV20KV21AStoreIsAddedForADeadOneUntilThatIsBack(t *testing.T) {
	t.Parallel()
	s, g := failing(t, v1alpha1.AddOnFailover)
	begin := time.Now()
	fails(s, pd.StateDisconnected, "basic-tikv-1")
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2", "basic-tikv-3")
	assert.Greater(t, time.Since(begin), time.Second, "not before its time")
	s.WaitForMessage(g, v1alpha1.ReasonReplacing, "store "+s.StoreID("basic-tikv-1")+" of Instance basic-tikv-1 has been down for spec.failover.after (2s): another store replaces it until it is back")
	s.Condition(g, v1alpha1.ConditionReady, metav1.ConditionTrue, "")
	s.WaitUntilSettled()
	s.RequireNoWrites(2 * time.Second)

	fails(s, pd.StateUp, "basic-tikv-1")
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Contains(t, s.PD.Calls(), "delete-store 4")
	s.AtRest()
}

func TestKV20MoreDeadStoresThanExpectedAreLeftToAUser(t *testing.T) {
	t.Parallel()
	s, g := failing(t, v1alpha1.AddOnFailover)
	fails(s, pd.StateDown, "basic-tikv-1", "basic-tikv-2")
	s.WaitForMessage(g, v1alpha1.ReasonReplacing, "nothing is added or removed, because 2 stores are down, more than spec.failover.max")
	assert.Len(t, s.Instances(), 3)
	s.Edit(g, func() { g.Spec.Failover.Policy = v1alpha1.NoFailover })
	fails(s, pd.StateUp, "basic-tikv-2")
	s.WaitUntilSettled()
	s.RequireNoWrites(3 * time.Second)
	assert.Len(t, s.Instances(), 3)
}

func TestKV22ADeadStoreIsReplacedForGood(t *testing.T) {
	t.Parallel()
	s, g := failing(t, v1alpha1.ReplaceOnFailover)
	fails(s, pd.StateDown, "basic-tikv-1")
	id := s.StoreID("basic-tikv-1")
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-2", "basic-tikv-3")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"delete-store " + id}, orders(s), "it had no leaders")
	s.AtRest()
}

// KV-21: the store that was added stays while the dead one is away, whatever happens meanwhile:
// the operator has it from memory for how long PD has not called a store Up, and an edit gives
// the dead one a revision that no other runs yet.
func TestKV21ADeadStoreIsNotRemovedBeforeItIsBack(t *testing.T) {
	t.Parallel()
	for name, happens := range map[string]func(s *stage.Stage, g *v1alpha1.TiKVGroup){
		"PD does not answer for a moment": func(s *stage.Stage, g *v1alpha1.TiKVGroup) {
			s.PD.Fail(errors.New("no"))
			s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionUnknown, "")
			s.PD.Fail(nil)
			s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionFalse, "")
		},
		"an edit": func(s *stage.Stage, g *v1alpha1.TiKVGroup) {
			s.Edit(g, func() { g.Spec.Version = "v8.5.9" })
			s.WaitForMessage(g, v1alpha1.ReasonPodNotReady, "Instance basic-tikv-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, g := failing(t, v1alpha1.AddOnFailover)
			fails(s, pd.StateDown, "basic-tikv-1")
			s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-1", "basic-tikv-2", "basic-tikv-3")
			s.WaitUntilSettled()
			happens(s, g)
			s.WaitUntilSettled()
			assert.Len(t, s.Instances(), 4)
			assert.Empty(t, orders(s))
		})
	}
}

// A roll that waits for a store that is Down names this to have it replaced. Deleting the
// Instance would not: it comes back in its slot, with the same claims.
func TestAStoreThatIsDownIsReplacedWhenAUserAsks(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	fails(s, pd.StateDown, "basic-tikv-1")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionFalse, v1alpha1.ReasonPodNotReady)
	id, i := s.StoreID("basic-tikv-1"), s.Instance("basic-tikv-1")
	s.Edit(&i, func() { member.SetAnnotation(&i, v1alpha1.AnnotationReplace, "") })
	s.WaitForInstances(stage.Timeout, "basic-tikv-0", "basic-tikv-2", "basic-tikv-3")
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, "")
	assert.Equal(t, []string{"delete-store " + id}, orders(s))
}
