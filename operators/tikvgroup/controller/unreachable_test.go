package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/testkit/instancetest"
)

// unreachable has the node of the second member not answer, for a time that is no failover yet.
func unreachable(s *observation.Snapshot, reason, state string, since time.Duration) *v1alpha1.Instance {
	i := s.Instances[1]
	for n := range i.Status.Conditions {
		if c := &i.Status.Conditions[n]; c.Type == v1alpha1.ConditionPodReady || c.Type == v1alpha1.ConditionReady {
			c.Status, c.Reason, c.LastTransitionTime = metav1.ConditionFalse, reason, metav1.NewTime(s.Now.Add(-since))
		}
	}
	for n := range s.PD.Stores {
		if s.PD.Stores[n].ID == i.Status.Member.ID {
			if s.PD.Stores[n].State = state; state != pd.StateUp {
				s.PD.Stores[n].NotUpSince = s.Now.Add(-since)
			}
		}
	}
	return i
}

// A node whose kubelet has ended runs its containers on, and its pods are deleted after five minutes:
// they stop when it is back.
func TestAPodThatDoesNotStopWithinItsGraceDoesNotTakeTheLease(t *testing.T) {
	for since, takes := range map[time.Duration]bool{time.Minute: true, 6 * time.Minute: false} {
		g := sample()
		s := world(t, g, 3)
		i := unreachable(&s, v1alpha1.ReasonPodTerminating, pd.StateUp, since)
		g.Spec.Version = "v9"
		p, err := makePlan(g, s)
		require.NoError(t, err)
		assert.Equal(t, takes, p.Lease.Take != nil && p.Lease.Take.Instance.Name == i.Name, "%s: %s", since, p.Outcome.Message)
	}
}

// KV-20: a member whose pod nothing can stop neither takes the Lease, which it would hold until its
// node is back, nor gets a revision that no other runs, and is replaced when it is dead.
func TestAMemberOnANodeThatDoesNotAnswerDoesNotTakeTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		reason, state string
		begin         func(g *v1alpha1.TiKVGroup, i *v1alpha1.Instance)
		takes         bool
	}{
		"it is deleted":                     {v1alpha1.ReasonNodeUnreachable, pd.StateDisconnected, func(_ *v1alpha1.TiKVGroup, i *v1alpha1.Instance) { instancetest.MarkDeleted(i) }, false},
		"an edit":                           {v1alpha1.ReasonNodeUnreachable, pd.StateDisconnected, func(g *v1alpha1.TiKVGroup, _ *v1alpha1.Instance) { g.Spec.Version = "v9" }, false},
		"an edit, and its process runs on":  {v1alpha1.ReasonNodeUnreachable, pd.StateUp, func(g *v1alpha1.TiKVGroup, _ *v1alpha1.Instance) { g.Spec.Version = "v9" }, false},
		"it is deleted, and its pod is too": {v1alpha1.ReasonPodTerminating, pd.StateDisconnected, func(_ *v1alpha1.TiKVGroup, i *v1alpha1.Instance) { instancetest.MarkDeleted(i) }, false},
		"it is deleted, and PD calls it Up": {v1alpha1.ReasonPodTerminating, pd.StateUp, func(_ *v1alpha1.TiKVGroup, i *v1alpha1.Instance) { instancetest.MarkDeleted(i) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := sample()
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.ReplaceOnFailover}
			s := world(t, g, 3)
			i := unreachable(&s, c.reason, c.state, time.Minute)
			c.begin(g, i)
			p, err := makePlan(g, s)
			require.NoError(t, err)
			assert.Equal(t, c.takes, p.Lease.Take != nil && p.Lease.Take.Instance.Name == i.Name, p.Outcome.Message)
			assert.False(t, p.StopPermitted[i.Name] || p.Released[i.Name])
			if c.takes || c.state == pd.StateUp {
				return
			}
			unreachable(&s, c.reason, c.state, time.Hour)
			p, err = makePlan(g, s)
			require.NoError(t, err)
			leaves := len(p.Deletes) == 1 || len(p.Instances) == 4 // deleted, or another one is made for it
			assert.True(t, leaves, "it is dead and replaced: %s", p.Outcome.Message)
		})
	}
}
