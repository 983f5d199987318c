package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// lost has the store of a member not be heard of, and its pod not ready for a while.
func lost(s *group.Snapshot, n int, ago time.Duration) {
	s.PD.Stores[n].State = pd.StateDisconnected
	podIs(s.Instances[n], v1alpha1.ReasonPodMissing)
	s.Instances[n].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now().Add(-ago))
}

func TestKV20WhoCountsAsDead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*group.Snapshot)
		extra  int32
		due    time.Duration
	}{
		"nobody":                        {func(*group.Snapshot) {}, 0, 0},
		"a store that is not heard of":  {func(s *group.Snapshot) { lost(s, 0, 5*time.Minute) }, 1, 0},
		"but not before its time":       {func(s *group.Snapshot) { lost(s, 0, 4*time.Minute) }, 0, 61 * time.Second},
		"nor while PD hears of it":      {func(s *group.Snapshot) { lost(s, 0, time.Hour); s.PD.Stores[0].State = pd.StateUp }, 0, 0},
		"nor while its pod is ready":    {func(s *group.Snapshot) { s.PD.Stores[0].State = pd.StateDown }, 0, 0},
		"nor one that leaves":           {func(s *group.Snapshot) { lost(s, 0, time.Hour); s.Instances[0].Spec.Retire = true }, 0, 0},
		"nor one that is being removed": {func(s *group.Snapshot) { lost(s, 0, time.Hour); s.PD.Stores[0].State = pd.StateOffline }, 0, 0},
		"nor one that never came": {func(s *group.Snapshot) {
			lost(s, 0, time.Hour)
			s.Instances[0].Status.Member, s.PD.Stores = nil, s.PD.Stores[1:]
		}, 0, 0},
		"nor while PD is silent":           {func(s *group.Snapshot) { lost(s, 0, time.Hour); s.PD = pd.View{Err: errors.New("no")} }, 0, 0},
		"nor if nobody runs what it is to": {func(s *group.Snapshot) { lost(s, 0, time.Hour); s.Instances[0].Spec.Revision = "new" }, 0, 0},
		"two":                              {func(s *group.Snapshot) { lost(s, 0, time.Hour); lost(s, 1, time.Hour) }, 2, 0},
		"not three, of which two may be": {func(s *group.Snapshot) {
			surplus(s)
			s.PD.Stores = append(s.PD.Stores, at(3, "4", pd.StateUp))
			lost(s, 0, time.Hour)
			lost(s, 1, time.Hour)
			lost(s, 2, time.Hour)
		}, 0, 0},
		"not one that has been deleted": {func(s *group.Snapshot) { lost(s, 0, time.Hour); deleted(s) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover, Max: ptr.To[int32](2)}
			c.change(&s)
			g.Spec.Replicas = ptr.To(int32(len(s.Instances))) //nolint:gosec // a few
			o := tikv(g, s).Failover(step.Wait("Instance", time.Hour, v1alpha1.ReasonPodMissing, "it is missing"))
			assert.Equal(t, c.extra, tikv(g, s).Extra())
			if c.due > 0 {
				assert.Equal(t, c.due, o.After)
			}
			assert.Empty(t, tikv(g, s).Dead(s.Instances[0]), "it is to come back")

			g.Spec.Failover.Policy = v1alpha1.ReplaceOnFailover
			assert.Zero(t, tikv(g, s).Extra())
			dead := c.extra > 0 || name == "not one that has been deleted"
			assert.Equal(t, dead, tikv(g, s).Dead(s.Instances[0]) != "")
			if dead {
				deleted(&s)
				assert.True(t, tikv(g, s).Replaced(s.Instances[0]), "another one comes before it goes")
			}

			g.Spec.Failover = nil
			assert.Zero(t, tikv(g, s).Extra())
			assert.Empty(t, tikv(g, s).Dead(s.Instances[0]))
		})
	}
}

// FL-07: a TiFlash is missed by its tables only, which TiKV can fill again: a group
// of one has another made for the one that is dead, if what it is to run has run.
func TestFL07ALoneStoreOfColumnsCountsAsDead(t *testing.T) {
	for name, c := range map[string]struct {
		revision string // of the dead one; all have reached "good"
		leads    bool
		extra    int32
	}{
		"what it is to run has run":          {"good", false, 1},
		"nobody has ever run what it is to":  {"bad", false, 0},
		"nor is a TiKV replaced by no other": {"good", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			for n := range s.Instances {
				lost(&s, n, time.Hour)
				s.Instances[n].Spec.Revision = c.revision
			}
			s.Instances, s.PD.Stores = s.Instances[:1], s.PD.Stores[:1]
			g.Spec.Replicas, g.Status.CurrentRevision = ptr.To[int32](1), "good"
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover}
			kind := tikv(g, s)
			kind.HasLeaders = c.leads
			assert.Equal(t, c.extra, kind.Extra())
			g.Spec.Failover.Policy = v1alpha1.ReplaceOnFailover
			assert.Equal(t, c.extra > 0, kind.Dead(s.Instances[0]) != "")
		})
	}
}

// KV-20, KV-21: whatever members are dead and however many there are beyond
// spec.replicas: who is awaited back leaves last, and while more are dead than
// spec.failover.max nobody is added, and nobody leaves who was.
func TestKV21WhoStandsInLeavesAndWhoIsAwaitedDoesNot(t *testing.T) {
	for members := 3; members <= 6; members++ {
		for dead := range 1 << members {
			g, s := small(make([]int, members), 1)
			g.Spec.Replicas, g.Spec.Failover = ptr.To[int32](3), &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover, Max: ptr.To[int32](2)}
			s.Now = now()
			gone := 0
			for n := range members {
				if dead>>n&1 == 1 {
					lost(&s, n, time.Hour)
					gone++
				}
			}
			if gone == members {
				continue // nobody runs what they are to run
			}
			c := tikv(g, s)
			want := gone
			if gone > 2 {
				want = min(members-3, 2)
			}
			assert.EqualValues(t, want, c.Extra(), "%d members, dead %b", members, dead)
			assert.Len(t, c.Awaited(), gone)
			for n, name := range leaving(c) {
				assert.Equal(t, n >= members-gone, c.Awaited()[name], "%d members, dead %b: %v", members, dead, leaving(c))
			}
		}
	}
}
