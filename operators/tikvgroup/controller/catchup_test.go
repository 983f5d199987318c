package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/machine"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// P1: nodes are drained one after the other. The store of the first one is Up, and its peers need
// snapshots: Kubernetes, which counts pods that are ready, must not evict another one.
func TestADrainEvictsNoStoreWhileAnotherOneCatchesUp(t *testing.T) {
	t.Parallel()
	s, g := running(t, 3)
	s.PD.Change(func(v *pd.View) {
		for n := range v.Stores {
			v.Stores[n].Regions = 10
		}
	})
	stay := func(want int) func() bool {
		return func() bool {
			var budget policyv1.PodDisruptionBudget
			key := client.ObjectKey{Namespace: g.Namespace, Name: observation.BudgetName(g)}
			return s.Client.Get(t.Context(), key, &budget) == nil && budget.Spec.MinAvailable.IntValue() == want
		}
	}
	require.Eventually(t, stay(2), machine.StretchWait(stage.Timeout), stage.Tick)

	s.PD.SetRegions(pd.Region{ID: "7", Peers: []pd.Peer{{StoreID: "1", Voter: true, Pending: true}, {StoreID: "2", Voter: true}, {StoreID: "3", Voter: true}}})
	s.PD.SetState(pd.StateDisconnected, s.StoreID("basic-tikv-0"))
	require.Eventually(t, stay(3), machine.StretchWait(stage.Timeout), stage.Tick)
	s.PD.SetState(pd.StateUp, s.StoreID("basic-tikv-0"))
	c := s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonRecovering)
	assert.Contains(t, c.Message, "a drain evicts no other one")
	require.True(t, stay(3)())

	// PD's leader was on the node that is drained.
	s.PD.Fail(pd.ErrNoLeader)
	s.Condition(g, v1alpha1.ConditionStoresHealthy, metav1.ConditionUnknown, "")
	require.True(t, stay(3)())
	s.PD.Fail(nil)
	s.Condition(g, v1alpha1.ConditionUpToDate, metav1.ConditionTrue, v1alpha1.ReasonRecovering)
	require.True(t, stay(3)())

	s.PD.SetRegions()
	require.Eventually(t, stay(2), machine.StretchWait(stage.Timeout), stage.Tick)
	s.AtRest()
	s.RequireNoWrites(time.Second)
}

// P1: nodes are drained while their cluster is paused, too. What guards the stores meanwhile is kept,
// and rests on the stores that there are: those that spec.replicas asks for wait until the pause ends.
func TestADrainEvictsNoStoreOfAPausedGroupWhileAnotherOneCatchesUp(t *testing.T) {
	g := sample()
	s := world(t, g, 3)
	s.Groups = []v1alpha1.Group{g}
	g.Spec.Paused, g.Spec.Replicas = true, ptr.To[int32](5)
	stays := func() int {
		p, err := makePlan(g, s)
		require.NoError(t, err)
		require.Empty(t, p.Instances)
		require.Nil(t, p.Revision)
		if p.Budget == nil {
			return -1
		}
		return p.Budget.Spec.MinAvailable.IntValue()
	}
	assert.Equal(t, -1, stays(), "none is made")
	s.Budget = &policyv1.PodDisruptionBudget{}
	assert.Equal(t, 2, stays())
	s.Regions = []pd.Region{{ID: "7", Peers: []pd.Peer{{StoreID: "1", Voter: true, Pending: true}, {StoreID: "2", Voter: true}, {StoreID: "3", Voter: true}}}}
	assert.Equal(t, 3, stays(), "a drain evicts none")
	s.Regions = nil
	s.Lease = lease.NewState(lease.Holder{Kind: v1alpha1.KindTiKVGroup, Instance: s.Instances[0].Name, UID: s.Instances[0].UID}, now(), 9)
	assert.Equal(t, 3, stays(), "nor beside one that an operator disrupts")
}

// P1: a mistake in the spec, or a certificate that is being made, keeps the operator from all but that.
func TestADrainEvictsNoStoreOfAGroupWithAMistakeWhileAnotherOneCatchesUp(t *testing.T) {
	g := sample()
	s := world(t, g, 3)
	s.Groups, s.Budget = []v1alpha1.Group{g}, &policyv1.PodDisruptionBudget{}
	g.Spec.Replicas, g.Spec.Config = ptr.To[int32](3), "x = ["
	for _, pending := range []bool{false, true} {
		s.Regions = []pd.Region{{ID: "7", Peers: []pd.Peer{{StoreID: "1", Voter: true, Pending: pending}, {StoreID: "2", Voter: true}, {StoreID: "3", Voter: true}}}}
		p, err := makePlan(g, s)
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.ReasonInvalidSpec, p.Outcome.Reason)
		assert.Nil(t, p.Revision)
		if assert.NotNil(t, p.Budget) {
			assert.Equal(t, map[bool]int{false: 2, true: 3}[pending], p.Budget.Spec.MinAvailable.IntValue())
		}
	}
	s.Budget = nil
	p, err := makePlan(g, s)
	require.NoError(t, err)
	assert.Nil(t, p.Budget, "none is made")
}
