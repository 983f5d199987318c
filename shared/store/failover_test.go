package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// countLostMembers has the store of a member not be heard of, and its pod not ready for a while.
func countLostMembers(s *observation.Snapshot, n int, ago time.Duration) {
	s.PD.Stores[n].State, s.PD.Stores[n].NotUpSince = pd.StateDisconnected, now().Add(-ago)
	podIs(s.Instances[n], v1alpha1.ReasonPodMissing)
	s.Instances[n].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now().Add(-ago))
}

func TestKV20WhichStoresCountAsDead(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		extra  int32
		due    time.Duration
	}{
		"no store":                     {func(*observation.Snapshot) {}, 0, 0},
		"a store that is not heard of": {func(s *observation.Snapshot) { countLostMembers(s, 0, 5*time.Minute) }, 1, 0},
		"but not before its time":      {func(s *observation.Snapshot) { countLostMembers(s, 0, 4*time.Minute) }, 0, 61 * time.Second},
		"nor while PD hears of it": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			s.PD.Stores[0].State, s.PD.Stores[0].NotUpSince = pd.StateUp, time.Time{}
		}, 0, 0},
		"nor one that PD just lost": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			s.PD.Stores[0].NotUpSince = now().Add(-4 * time.Minute)
		}, 0, time.Minute + time.Second},
		"nor while its pod is ready": {func(s *observation.Snapshot) { s.PD.Stores[0].State = pd.StateDown }, 0, 0},
		"nor one that leaves":        {func(s *observation.Snapshot) { countLostMembers(s, 0, time.Hour); s.Instances[0].Spec.Retire = true }, 0, 0},
		"nor one that is being removed": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			s.PD.Stores[0].State, s.PD.Stores[0].NotUpSince = pd.StateOffline, time.Time{}
		}, 0, 0},
		"nor one that was just resumed": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			s.Instances[0].Status.Conditions[1].Reason = v1alpha1.ReasonSuspended
		}, 0, 0},
		"nor one that was resumed a minute ago": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			s.Instances[0].Status.Conditions[1].LastTransitionTime = metav1.NewTime(now().Add(-time.Minute))
		}, 0, 4*time.Minute + time.Second},
		"nor one that never came": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			s.Instances[0].Status.Member, s.PD.Stores = nil, s.PD.Stores[1:]
		}, 0, 0},
		"nor while PD does not answer": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			s.PD = pd.View{Err: errors.New("no")}
		}, 0, 0},
		"nor if no member runs its revision": {func(s *observation.Snapshot) { countLostMembers(s, 0, time.Hour); s.Instances[0].Spec.Revision = "new" }, 0, 0},
		"an edit is not why a pod stopped that runs what it was before": {func(s *observation.Snapshot) {
			countLostMembers(s, 0, time.Hour)
			podIs(s.Instances[0], v1alpha1.ReasonPodTerminating)
			s.Instances[0].Status.Conditions[0].LastTransitionTime = metav1.NewTime(now().Add(-time.Hour))
			for _, i := range s.Instances {
				i.Status.Revision = "old"
			}
			s.Instances[0].Spec.Revision = "new"
		}, 1, 0},
		"two": {func(s *observation.Snapshot) { countLostMembers(s, 0, time.Hour); countLostMembers(s, 1, time.Hour) }, 2, 0},
		"not three, of which two may be": {func(s *observation.Snapshot) {
			surplus(s)
			s.PD.Stores = append(s.PD.Stores, at(3, "4", pd.StateUp))
			countLostMembers(s, 0, time.Hour)
			countLostMembers(s, 1, time.Hour)
			countLostMembers(s, 2, time.Hour)
		}, 0, 0},
		"not one that has been deleted": {func(s *observation.Snapshot) { countLostMembers(s, 0, time.Hour); deleted(s) }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover, Max: ptr.To[int32](2)}
			c.change(&s)
			g.Spec.Replicas = ptr.To(int32(len(s.Instances))) //nolint:gosec // a few
			o := tikv(g, s).ReportFailover(step.Wait("Instance", time.Hour, v1alpha1.ReasonPodMissing, "it is missing"))
			assert.Equal(t, c.extra, tikv(g, s).ExtraMembers())
			if c.due > 0 {
				assert.Equal(t, c.due, o.After)
			}
			assert.Empty(t, tikv(g, s).ReasonDead(s.Instances[0]).Text(), "it is to come back")

			g.Spec.Failover.Policy = v1alpha1.ReplaceOnFailover
			assert.Zero(t, tikv(g, s).ExtraMembers())
			dead := c.extra > 0 || name == "not one that has been deleted"
			assert.Equal(t, dead, tikv(g, s).ReasonDead(s.Instances[0]).IsGiven())
			if dead {
				deleted(&s)
				assert.True(t, tikv(g, s).IsReplacedWhenDeleted(s.Instances[0]), "another one comes before it goes")
			}

			g.Spec.Failover = nil
			assert.Zero(t, tikv(g, s).ExtraMembers())
			assert.Empty(t, tikv(g, s).ReasonDead(s.Instances[0]).Text())
		})
	}
}

// KV-21: a dead member that does not count as dead for a while is still to come back: the one
// that was added for it stays, and no other one is added.
func TestKV21TheAddedStoreStaysWhileTheDeadOneIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		extra  int32
	}{
		"it is dead":                                 {func(*observation.Snapshot) {}, 1},
		"the operator has just been started":         {func(s *observation.Snapshot) { s.PD.Stores[0].NotUpSince = now() }, 1},
		"no other member runs what it is to run now": {func(s *observation.Snapshot) { s.Instances[0].Spec.Revision = "new" }, 1},
		"the group was just resumed": {func(s *observation.Snapshot) {
			s.Instances[0].Status.Conditions[1].Reason = v1alpha1.ReasonSuspended
		}, 1},
		"its store is Up again": {func(s *observation.Snapshot) {
			s.PD.Stores[0].State, s.PD.Stores[0].NotUpSince = pd.StateUp, time.Time{}
		}, 0},
		"its pod is ready again": {func(s *observation.Snapshot) { s.Instances[0].Status.Conditions = served() }, 0},
		"it leaves":              {func(s *observation.Snapshot) { s.Instances[0].Spec.Retire = true }, 0},
		"it is deleted":          {func(s *observation.Snapshot) { deleted(s) }, 0},
		"a user has it replaced": {func(s *observation.Snapshot) {
			s.Instances[0].Annotations = map[string]string{v1alpha1.AnnotationReplace: ""}
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			surplus(&s)
			s.PD.Stores = append(s.PD.Stores, at(3, "4", pd.StateUp))
			g.Spec.Replicas = ptr.To[int32](3)
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover}
			countLostMembers(&s, 0, time.Hour)
			c.change(&s)
			assert.Equal(t, c.extra, tikv(g, s).ExtraMembers())
		})
	}
}

func TestAStoreThatIsWellIsNotDeadHoweverSoonOneIs(t *testing.T) {
	for _, policy := range []v1alpha1.FailoverPolicy{v1alpha1.AddOnFailover, v1alpha1.ReplaceOnFailover} {
		g, s := small(make([]int, 3), 1)
		g.Spec.Failover = &v1alpha1.Failover{Policy: policy, After: &metav1.Duration{}}
		s.Now = now()
		assert.Zero(t, tikv(g, s).ExtraMembers())
		for _, i := range s.Instances {
			assert.False(t, tikv(g, s).ReasonDead(i).IsGiven(), i.Name)
			assert.Equal(t, step.Done(), tikv(g, s).ReportFailover(step.Done()))
		}
		countLostMembers(&s, 0, time.Second)
		assert.Equal(t, policy == v1alpha1.AddOnFailover, tikv(g, s).ExtraMembers() == 1)
		assert.Equal(t, policy == v1alpha1.ReplaceOnFailover, tikv(g, s).ReasonDead(s.Instances[0]).IsGiven())
		assert.False(t, tikv(g, s).ReasonDead(s.Instances[1]).IsGiven())
	}
}

// KV-22: PD cannot move a region that has lost its majority, and a store that returns brings it
// back as it was.
func TestKV22NoStoreIsReplacedWhileRegionsLackTheirMajority(t *testing.T) {
	for why, lose := range map[string]func(*pd.View){
		"regions have lost their majority with the stores that are down: bring them back":                func(v *pd.View) { v.MajorityLost = true },
		"PD has not answered yet whether regions have lost their majority with the stores that are down": func(v *pd.View) { v.MajorityUnknown = true },
	} {
		for _, leads := range []bool{true, false} {
			g, s := world()
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.ReplaceOnFailover}
			countLostMembers(&s, 0, time.Hour)
			lose(&s.PD)
			kind := tikv(g, s)
			kind.HasLeaders = leads
			assert.Equal(t, !leads, kind.ReasonDead(s.Instances[0]).IsGiven())
			text := kind.ReportFailover(step.Done()).Message
			assert.Equal(t, leads, strings.HasSuffix(text, "nothing is replaced, because "+why), text)
		}
	}
}

// FL-07: a TiFlash is missed by its tables only, which TiKV can fill again: a group
// of one has another made for the one that is dead, if what it is to run has run.
func TestFL07TheOnlyTiFlashStoreCountsAsDead(t *testing.T) {
	for name, c := range map[string]struct {
		revision string // of the dead one; all have reached "good"
		leads    bool
		extra    int32
	}{
		"what it is to run has run":          {"good", false, 1},
		"no member has ever run it":          {"bad", false, 0},
		"nor is a TiKV replaced by no other": {"good", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			for n := range s.Instances {
				countLostMembers(&s, n, time.Hour)
				s.Instances[n].Spec.Revision = c.revision
			}
			s.Instances, s.PD.Stores = s.Instances[:1], s.PD.Stores[:1]
			g.Spec.Replicas, g.Status.CurrentRevision = ptr.To[int32](1), "good"
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover}
			kind := tikv(g, s)
			kind.HasLeaders = c.leads
			assert.Equal(t, c.extra, kind.ExtraMembers())
			g.Spec.Failover.Policy = v1alpha1.ReplaceOnFailover
			assert.Equal(t, c.extra > 0, kind.ReasonDead(s.Instances[0]).IsGiven())
		})
	}
}

// without returns a component whose world has no Instance and store of a name.
func without(c store.Component, g *v1alpha1.TiKVGroup, name string) store.Component {
	s := c.Snapshot
	at := slices.IndexFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Name == name })
	s.Instances, s.PD.Stores = slices.Delete(slices.Clone(s.Instances), at, at+1), slices.Delete(slices.Clone(s.PD.Stores), at, at+1)
	return tikv(g, s)
}

// KV-09, KV-20: whatever members are dead, however many may be replaced and
// however many are wanted: a scale-in takes none that serves while one does not,
// and ends with as many that serve as are wanted, if there were as many.
func TestKV09AScaleInRemovesDeadStoresBeforeServingOnes(t *testing.T) {
	for members := 1; members <= 6; members++ {
		for dead := range 1<<members - 1 { // if all are dead, none runs its revision
			for wanted := 1; wanted <= members; wanted++ {
				for most := range 4 {
					g, s := small(make([]int, members), 1)
					g.Spec.Replicas = ptr.To(int32(wanted)) //nolint:gosec // a few
					g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover, Max: ptr.To(int32(most))}
					s.Now = now()
					isDead, left := map[string]bool{}, 0
					for n := range members {
						if dead>>n&1 == 1 {
							countLostMembers(&s, n, time.Hour)
							isDead[s.Instances[n].Name] = true
							left++
						}
					}
					serving, c := members-left, tikv(g, s)
					for began := serving; len(c.Snapshot.Instances) > wanted+int(c.ExtraMembers()); {
						name := leaving(c)[0]
						if isDead[name] {
							left--
						} else {
							serving--
						}
						assert.True(t, isDead[name] || left == 0, "%d members, dead %b, %d wanted, %d replaced: %s leaves", members, dead, wanted, most, name)
						assert.GreaterOrEqual(t, serving, min(wanted, began), "%d members, dead %b, %d wanted, %d replaced", members, dead, wanted, most)
						c = without(c, g, name)
					}
				}
			}
		}
	}
}

// KV-20, KV-21: as long as a store is dead and spec.replicas stays the same, no member
// leaves, also when more die than are replaced.
func TestKV21NoMemberLeavesWhileAStoreIsDead(t *testing.T) {
	for most := 1; most <= 3; most++ {
		members := 3
		for dead := 1; dead <= 4; dead++ {
			g, s := small(make([]int, members), 1)
			g.Spec.Replicas = ptr.To[int32](3)
			g.Spec.Failover = &v1alpha1.Failover{Policy: v1alpha1.AddOnFailover, Max: ptr.To(int32(most))}
			s.Now = now()
			if dead == members {
				break // no member runs its revision
			}
			for n := range dead {
				countLostMembers(&s, n, time.Hour)
			}
			extra := int(tikv(g, s).ExtraMembers())
			assert.Equal(t, min(dead, most), extra, "%d dead of %d, %d replaced", dead, members, most)
			assert.GreaterOrEqual(t, 3+extra, members, "%d dead of %d, %d replaced", dead, members, most)
			members = 3 + extra
		}
	}
}
