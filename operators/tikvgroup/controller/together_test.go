package controller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// zones is a world of six stores in three zones which are all to get a new version,
// zone by zone.
func zones(t *testing.T) (*v1alpha1.TiKVGroup, observation.Snapshot) {
	t.Helper()
	g := sample()
	g.Spec.Replicas = ptr.To(int32(6))
	s := world(t, g, 6)
	g.Spec.RestartTogether, g.Spec.FlushLogBackups = "zone", ptr.To(false)
	s.PD.IsolationLevel = "zone"
	for n, i := range s.Instances {
		i.UID = types.UID("uid-" + i.Name)
		s.PD.Stores[n].Labels = map[string]string{"disk": "ssd", "zone": fmt.Sprintf("z%d", n%3)}
	}
	s.RegionsKnown = true
	g.Spec.Version = "v8.5.8"
	return g, s
}

// decided is the plan of a world in which PD answers what the plan asks.
func decided(t *testing.T, g *v1alpha1.TiKVGroup, s observation.Snapshot, found *pd.Region) groupPlan {
	t.Helper()
	p, err := makePlan(g, s)
	require.NoError(t, err)
	if p.Question == nil {
		return p
	}
	s.Answer = &observation.RegionAnswer{Stores: p.Question.Stores, Found: found}
	p, err = makePlan(g, s)
	require.NoError(t, err)
	require.Nil(t, p.Question)
	return p
}

// stopping are the Instances whose pods a plan lets stop.
func stopping(p groupPlan) []string {
	var out []string
	for _, c := range p.Instances {
		if c.Live != nil && c.Stops {
			out = append(out, c.Desired.Name)
		}
	}
	return out
}

// taken is a world whose Lease is what a plan takes.
func taken(s observation.Snapshot, p groupPlan) observation.Snapshot {
	take := p.Lease
	s.Lease = lease.NewState(lease.NewHolder(take.Take.Instance), s.Now, take.Leaders)
	s.Lease.Batch, s.Lease.BatchBlocked, s.Lease.Recreating = take.Batch, take.BatchBlocked, take.Recreating
	return s
}

// evicted takes the leaders of stores away.
func evicted(s observation.Snapshot, slots ...int) observation.Snapshot {
	s.PD.Stores = slices.Clone(s.PD.Stores)
	for _, n := range slots {
		s.PD.Stores[n].Leaders = 0
		s.PD.EvictLeader = append(slices.Clone(s.PD.EvictLeader), s.PD.Stores[n].ID)
	}
	return s
}

// follow writes what a plan says of some Instances. The pods of those that may stop
// have done so.
func follow(s observation.Snapshot, p groupPlan, names ...string) observation.Snapshot {
	s.Instances, s.PD.Stores = slices.Clone(s.Instances), slices.Clone(s.PD.Stores)
	for _, c := range p.Instances {
		at := slices.IndexFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Name == c.Desired.Name })
		if at < 0 || len(names) > 0 && !slices.Contains(names, c.Desired.Name) {
			continue
		}
		i := c.Desired.DeepCopy()
		for _, key := range []string{v1alpha1.AnnotationEvictLeaders, v1alpha1.AnnotationRemoveFirst} { // a user's, which stay
			if value, there := s.Instances[at].Annotations[key]; there {
				metav1.SetMetaDataAnnotation(&i.ObjectMeta, key, value)
			}
		}
		i.UID, i.Generation, i.Status = s.Instances[at].UID, 1, *s.Instances[at].Status.DeepCopy()
		if c.Stops {
			i.Status.Conditions = nil
			s.PD.Stores[at].State = pd.StateDisconnected
		}
		s.Instances[at] = i
	}
	return s
}

// returned has stopped members back.
func returned(s observation.Snapshot) observation.Snapshot {
	s.Instances, s.PD.Stores = slices.Clone(s.Instances), slices.Clone(s.PD.Stores)
	for n, i := range s.Instances {
		i = i.DeepCopy()
		i.Status.Revision, i.Status.Conditions = i.Spec.Revision, []metav1.Condition{is("Ready", true), is("PodReady", true), is("Joined", true), is("Healthy", true), is("UpToDate", true)}
		s.Instances[n], s.PD.Stores[n].State = i, pd.StateUp
	}
	return s
}

func TestAZoneIsRestartedAtOnce(t *testing.T) {
	g, s := zones(t)
	rounds := 0
	for range 20 {
		p := decided(t, g, s, nil)
		if p.Lease.Take == nil {
			assert.Equal(t, step.KindDone, p.Outcome.Kind, p.Outcome.Message)
			break
		}
		rounds++
		require.Len(t, p.Lease.Batch, 1)
		s = taken(s, p)
		first, second := p.Lease.Take.Instance, p.Lease.Batch[0].Instance
		slot := int(first.Spec.Slot)

		p = decided(t, g, s, nil)
		assert.Empty(t, stopping(p), "their leaders go first")
		assert.Equal(t, []component.Call{
			{Verb: component.EvictLeaders, Target: fmt.Sprint(slot + 1), Instance: first.Name}, {Verb: component.EvictLeaders, Target: fmt.Sprint(slot + 4), Instance: second},
		}, p.Calls)
		s = follow(s, p)
		assert.Empty(t, stopping(decided(t, g, evicted(s, slot), nil)), "one still has leaders")

		s = evicted(s, slot, slot+3)
		p = decided(t, g, s, nil)
		assert.Equal(t, []string{first.Name, second}, stopping(p))
		assert.Contains(t, p.Outcome.Message, "are being restarted together")

		s = follow(s, p)
		assert.False(t, decided(t, g, s, nil).Lease.Release)
		s = returned(s)
		p = decided(t, g, s, nil)
		assert.Len(t, p.Calls, 2, "both are to lead again")
		assert.False(t, p.Lease.Release)
		s.PD.EvictLeader = nil
		assert.False(t, decided(t, g, s, nil).Lease.Release, "their leaders come back first")
		s.PD.Stores = slices.Clone(s.PD.Stores)
		s.PD.Stores[slot].Leaders, s.PD.Stores[slot+3].Leaders = 10, 0
		assert.False(t, decided(t, g, s, nil).Lease.Release, "so do those of the other")
		s.PD.Stores[slot+3].Leaders = 10
		p = decided(t, g, s, nil)
		assert.True(t, p.Lease.Release)
		s = follow(s, p)
		s.Lease = lease.State{}
	}
	assert.Equal(t, 3, rounds, "as many as there are zones")
}

// P1, P6: the operator dies after it has let any of them stop, and whichever of
// those are back by then: it never stops anybody else, stops who is left if that is
// still safe, and keeps the Lease until all are back.
func TestARestartOfAZoneGoesOnWhereItWasLeft(t *testing.T) {
	g, s := zones(t)
	s = taken(s, decided(t, g, s, nil))
	s = evicted(follow(s, decided(t, g, s, nil)), 0, 3)
	permit := decided(t, g, s, nil)
	members := stopping(permit)
	require.Equal(t, []string{"basic-tikv-0", "basic-tikv-3"}, members)
	for written := range 1 << 2 {
		for back := range 1 << 2 {
			for _, elsewhere := range []string{pd.StateUp, pd.StateDisconnected} {
				t.Run(fmt.Sprintf("written %02b, back %02b, another %s", written, back, elsewhere), func(t *testing.T) {
					now, slots := s, []int{0, 3}
					var done, left, away []string
					for n, name := range members {
						if written&(1<<n) == 0 {
							left = append(left, name)
							continue
						}
						done = append(done, name)
						now = follow(now, permit, name)
						if back&(1<<n) == 0 {
							away = append(away, name)
							continue
						}
						here := returned(now)
						now.Instances[slots[n]], now.PD.Stores[slots[n]] = here.Instances[slots[n]], here.PD.Stores[slots[n]]
					}
					now.PD.Stores = slices.Clone(now.PD.Stores)
					now.PD.Stores[1].State = elsewhere
					p := decided(t, g, now, nil)
					assert.False(t, p.Lease.Release, "it is not given back")
					switch {
					case elsewhere == pd.StateUp:
						assert.Equal(t, left, stopping(p))
						assert.Nil(t, p.Lease.Take)
					case len(left) == 0:
						assert.Empty(t, stopping(p))
						assert.Nil(t, p.Lease.Take)
					default:
						assert.Empty(t, stopping(p), "it is not safe any more")
						assert.Equal(t, len(away) == 0 && len(done) == 0, p.Lease.Take != nil, "it goes on alone once all are back and lead again: %s", p.Outcome.Message)
					}
					for _, c := range p.Instances {
						if slices.Contains(done, c.Desired.Name) {
							assert.Equal(t, string(member.Restart), c.Desired.Annotations[v1alpha1.AnnotationDisruption])
						}
					}
				})
			}
		}
	}
}

func TestStoresAreRestartedOneByOneWhereABatchIsNotProvenSafe(t *testing.T) {
	const why = "one at a time: PD's isolation-level is \"\", and regions may have several peers in the same zone: kubectl -n shop exec svc/basic-pd -- /pd-ctl config set isolation-level zone"
	g, s := zones(t)
	s.PD.IsolationLevel = ""
	p := decided(t, g, s, nil)
	require.NotNil(t, p.Lease.Take)
	assert.Empty(t, p.Lease.Batch)
	assert.Contains(t, p.Outcome.Message, why)
	s = taken(s, p)
	p = decided(t, g, s, nil)
	assert.Contains(t, p.Outcome.Message, why)
	p = decided(t, g, evicted(follow(s, p), 0), nil)
	assert.Equal(t, []string{"basic-tikv-0"}, stopping(p))
	assert.Contains(t, p.Outcome.Message, why)

	// A region that shares a zone is found when the Lease is to be taken.
	g, s = zones(t)
	p = decided(t, g, s, &pd.Region{ID: "7", LeaderStore: "1"})
	require.NotNil(t, p.Lease.Take)
	assert.Empty(t, p.Lease.Batch)
	assert.Contains(t, p.Outcome.Message, "one at a time: region 7 may need more than one peer of the same zone")

	// Or when all are prepared.
	s = taken(s, decided(t, g, s, nil))
	s = evicted(follow(s, decided(t, g, s, nil)), 0, 3)
	p = decided(t, g, s, &pd.Region{ID: "7", LeaderStore: "1"})
	assert.Empty(t, stopping(p))
	require.NotNil(t, p.Lease.Take)
	assert.Equal(t, s.Lease.Since, p.Lease.Since)
	assert.Empty(t, p.Lease.Batch)
	assert.Equal(t, []component.Call{{Verb: component.StopEvictingLeaders, Target: "4", Instance: "basic-tikv-3"}}, p.Calls)
	s = taken(s, p)
	assert.Equal(t, []string{"basic-tikv-0"}, stopping(decided(t, g, s, nil)))
}

// A member whose node has ceased to answer would keep the Lease until it is back.
func TestAMemberOnANodeThatDoesNotAnswerLeavesTheBatch(t *testing.T) {
	for _, slot := range []int{0, 3} {
		g, s := zones(t)
		s = taken(s, decided(t, g, s, nil))
		s = evicted(follow(s, decided(t, g, s, nil)), 0, 3)
		cutOff := s.Instances[slot].DeepCopy()
		cutOff.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeUnreachable}}
		s.Instances[slot] = cutOff
		p := decided(t, g, s, nil)
		assert.Empty(t, stopping(p))
		require.NotNil(t, p.Lease.Take, p.Outcome.Message)
		assert.Empty(t, p.Lease.Batch)
		p = decided(t, g, taken(s, p), nil)
		assert.True(t, p.Lease.Release, p.Outcome.Message)
	}
}

// A canary counts all that are restarted at the same time.
func TestACanaryCountsTheWholeBatch(t *testing.T) {
	for most, want := range map[int32]int{1: 0, 2: 1, 3: 1} {
		g, s := zones(t)
		g.Spec.Disruption = &v1alpha1.Disruption{UpdateAtMost: &most}
		assert.Len(t, decided(t, g, s, nil).Lease.Batch, want, "at most %d", most)
	}
}

// Who leaves, was deleted or leaves its node is not one of several.
func TestOnlyRestartsInPlaceAreBatched(t *testing.T) {
	g, s := zones(t)
	g.Spec.Replicas = ptr.To(int32(5))
	s.Instances[3].Annotations = map[string]string{v1alpha1.AnnotationRemoveFirst: ""}
	p := decided(t, g, s, nil)
	require.NotNil(t, p.Lease.Take)
	assert.Equal(t, member.Remove, p.Lease.Take.Verb)
	assert.Empty(t, p.Lease.Batch)

	g, s = zones(t)
	deleted := s.Now
	s.Instances[3].DeletionTimestamp = ptr.To(metav1.NewTime(deleted))
	p = decided(t, g, s, nil)
	require.NotNil(t, p.Lease.Take)
	assert.Empty(t, p.Lease.Batch)

	g, s = zones(t)
	g.Spec.Version = "v8.5.7"
	for _, n := range []int{0, 3} {
		s.Instances[n].Status.NodeName = "n2"
	}
	s.Cordoned = map[string]bool{"n2": true}
	p = decided(t, g, s, nil)
	require.NotNil(t, p.Lease.Take)
	assert.Empty(t, p.Lease.Batch)
}

// One that does not come back keeps the Lease for all, and is fixed by reverting.
func TestAMemberOfTheBatchThatDoesNotComeBackKeepsTheLease(t *testing.T) {
	g, s := zones(t)
	s = taken(s, decided(t, g, s, nil))
	s = evicted(follow(s, decided(t, g, s, nil)), 0, 3)
	s = follow(s, decided(t, g, s, nil))
	here := returned(s)
	s.Instances[0], s.PD.Stores[0] = here.Instances[0], here.PD.Stores[0]
	s.PD.EvictLeader, s.PD.Stores[0].Leaders = nil, 10
	p := decided(t, g, s, nil)
	assert.False(t, p.Lease.Release)
	assert.Contains(t, p.Outcome.Message, "basic-tikv-3")

	// Another TiKV group sees who is not back, though the holder may be gone.
	s.HolderLost = true
	s.Instances[0].UID = "another"
	p = decided(t, g, s, nil)
	assert.Nil(t, p.Lease.Take)
	assert.False(t, p.Lease.Release)

	s.HolderLost = false
	s.Instances[0].UID = s.Lease.Holder.UID
	s.PD.Stores[3].State = pd.StateDown
	g.Spec.Version = "v8.5.7"
	p = decided(t, g, s, nil)
	for _, c := range p.Instances {
		if c.Desired.Name == "basic-tikv-3" {
			assert.NotEqual(t, c.Live.Spec.Revision, c.Desired.Spec.Revision, "one that does not serve gets what is wanted at once")
		}
	}
}

// prepared is a world in which a zone is about to be stopped, halted one in which it
// has been, and neither member is back.
func prepared(t *testing.T) (*v1alpha1.TiKVGroup, observation.Snapshot) {
	t.Helper()
	g, s := zones(t)
	s = taken(s, decided(t, g, s, nil))
	return g, evicted(follow(s, decided(t, g, s, nil)), 0, 3)
}

func halted(t *testing.T) (*v1alpha1.TiKVGroup, observation.Snapshot) {
	t.Helper()
	g, s := prepared(t)
	return g, follow(s, decided(t, g, s, nil))
}

// desired is what a plan makes of an Instance.
func desired(t *testing.T, p groupPlan, name string) *v1alpha1.Instance {
	t.Helper()
	for _, c := range p.Instances {
		if c.Desired.Name == name {
			return c.Desired
		}
	}
	t.Fatalf("nothing becomes of %s", name)
	return nil
}

// P5: who does not come back is replaced as the message says, by deleting its
// Instance, and the Lease goes on to the one that comes with the whole batch.
func TestADeletedHolderOfAZonesRestartIsRecreated(t *testing.T) {
	g, s := halted(t)
	s.PD.Stores[0].State = pd.StateDown
	s.Instances[0].DeletionTimestamp = ptr.To(metav1.NewTime(s.Now))
	p := decided(t, g, s, nil)
	assert.True(t, member.HasMemberFinalizer(desired(t, p, "basic-tikv-0")), "the Lease says first that a member comes back")
	require.NotNil(t, p.Lease.Take)
	assert.Equal(t, "basic-tikv", p.Lease.Recreating)
	require.Len(t, p.Lease.Batch, 1)
	s = taken(s, p)
	p = decided(t, g, s, nil)
	assert.False(t, member.HasMemberFinalizer(desired(t, p, "basic-tikv-0")), "it may go, also if another one is not back")
	assert.Nil(t, p.Lease.Take)
	assert.False(t, p.Lease.Release)

	s.Instances, s.HolderRecreated = s.Instances[1:], true
	p = decided(t, g, s, nil)
	assert.False(t, p.Lease.Release)
	recreated := desired(t, p, "basic-tikv-0").DeepCopy()
	recreated.UID, recreated.Generation = "recreated", 1
	s.Instances = append([]*v1alpha1.Instance{recreated}, s.Instances...)
	marked := desired(t, decided(t, g, s, nil), "basic-tikv-0")
	assert.Equal(t, string(member.Restart), marked.Annotations[v1alpha1.AnnotationDisruption])
	recreated.Annotations = marked.Annotations
	p = decided(t, g, s, nil)
	require.NotNil(t, p.Lease.Take)
	assert.Equal(t, types.UID("recreated"), p.Lease.Take.Instance.UID)
	assert.Len(t, p.Lease.Batch, 1)
	s = taken(s, p)
	s.HolderRecreated = false
	p = decided(t, g, s, nil)
	assert.False(t, p.Lease.Release)
	assert.Equal(t, string(member.Restart), desired(t, p, "basic-tikv-3").Annotations[v1alpha1.AnnotationDisruption], "both are waited for")
}

// P5: another member of the batch likewise. PD forgets first what was begun with it.
func TestADeletedMemberOfABatchIsRecreated(t *testing.T) {
	g, s := halted(t)
	s.PD.Stores[3].State = pd.StateDown
	s.Instances[3].DeletionTimestamp = ptr.To(metav1.NewTime(s.Now))
	p := decided(t, g, s, nil)
	assert.Contains(t, p.Calls, component.Call{Verb: component.StopEvictingLeaders, Target: "4", Instance: "basic-tikv-3"})
	s.PD.EvictLeader = []string{"1"}
	p = decided(t, g, s, nil)
	assert.False(t, member.HasMemberFinalizer(desired(t, p, "basic-tikv-3")))
	assert.False(t, p.Lease.Release)
}

// KV-15: one that was recreated, with its finalizer taken off, and serves already
// leads again before the Lease is given back.
func TestARecreatedMemberOfTheBatchWithoutAMarkLeadsAgain(t *testing.T) {
	g, s := halted(t)
	s = returned(s)
	delete(s.Instances[3].Annotations, v1alpha1.AnnotationDisruption)
	s.Instances[3].CreationTimestamp = metav1.NewTime(s.Now)
	s.PD.EvictLeader, s.PD.Stores[0].Leaders = []string{"4"}, 10
	p := decided(t, g, s, nil)
	assert.False(t, p.Lease.Release)
	assert.Equal(t, string(member.Restart), desired(t, p, "basic-tikv-3").Annotations[v1alpha1.AnnotationDisruption])
	s = follow(s, p)
	assert.Contains(t, decided(t, g, s, nil).Calls, component.Call{Verb: component.StopEvictingLeaders, Target: "4", Instance: "basic-tikv-3"})
}

// P5: when the holder is lost, a member of the batch that is not what it is to be does not wait
// for itself.
func TestAMemberOfTheBatchOfALostHolderIsRestartedAgain(t *testing.T) {
	g, s := halted(t)
	s = returned(s)
	s.HolderLost, s.PD.EvictLeader = true, nil
	s.Instances[0].UID = "another"
	s.Instances[3].Status.Conditions = []metav1.Condition{is("Ready", false), is("PodReady", false)}
	g.Spec.Version = "v8.5.9"
	p := decided(t, g, s, nil)
	require.NotNil(t, p.Lease.Take, p.Outcome.Message)
	assert.Equal(t, "basic-tikv-3", p.Lease.Take.Instance.Name)
}

// P5: the instance operator stops no pod whose claim is being deleted.
func TestAStoreWhoseClaimIsBeingDeletedIsNotInTheBatch(t *testing.T) {
	g, s := prepared(t)
	s.Claims = map[string][]metav1.ObjectMeta{"basic-tikv-3": {{Name: "data-basic-tikv-3", DeletionTimestamp: ptr.To(metav1.NewTime(s.Now))}}}
	p := decided(t, g, s, nil)
	assert.Empty(t, stopping(p))
	require.NotNil(t, p.Lease.Take)
	assert.Empty(t, p.Lease.Batch)
	assert.Contains(t, p.Lease.BatchBlocked, "claim data-basic-tikv-3 is being deleted")
}

// P5: who comes first in an upgrade may wait for the Lease. No member is stopped then
// before its turn, so the Lease is not kept.
func TestTheLeaseIsNotKeptWhileEarlierGroupsRoll(t *testing.T) {
	first := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: "shop", Generation: 2}}
	waits := []metav1.Condition{{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonWaitingForLease, ObservedGeneration: 2}}
	leads := func(ids ...string) (out []component.Call) {
		for n, id := range ids {
			out = append(out, component.Call{Verb: component.StopEvictingLeaders, Target: id, Instance: fmt.Sprintf("basic-tikv-%d", 3*n)})
		}
		return out
	}
	g, s := prepared(t)
	s.Groups = []v1alpha1.Group{first}
	p := decided(t, g, s, nil)
	assert.False(t, p.Lease.Release, "the other does not wait for the Lease")
	first.Status.Conditions = waits
	p = decided(t, g, s, nil)
	assert.True(t, p.Lease.Release)
	assert.Empty(t, stopping(p))
	assert.Equal(t, leads("1", "4"), p.Calls)
	for _, i := range s.Instances {
		i.Spec.Revision = "another" // its pod may be stopped for it at any moment
	}
	assert.False(t, decided(t, g, s, nil).Lease.Release)

	// One has been stopped, and has to come back first.
	g, s = prepared(t)
	s = follow(s, decided(t, g, s, nil), "basic-tikv-0")
	s.Groups = []v1alpha1.Group{first}
	p = decided(t, g, s, nil)
	assert.Empty(t, stopping(p))
	assert.False(t, p.Lease.Release)
	assert.Nil(t, p.Lease.Take)
	s.PD.EvictLeader = []string{"4"}
	s = returned(s)
	s.PD.Stores[0].Leaders = 10
	p = decided(t, g, s, nil)
	require.NotNil(t, p.Lease.Take)
	assert.Empty(t, p.Lease.Batch)
	s = taken(s, p)
	assert.True(t, decided(t, g, s, nil).Lease.Release)

	// So is one that is restarted alone.
	g, s = zones(t)
	g.Spec.RestartTogether = ""
	s = taken(s, decided(t, g, s, nil))
	s = evicted(follow(s, decided(t, g, s, nil)), 0)
	assert.Equal(t, []string{"basic-tikv-0"}, stopping(decided(t, g, s, nil)))
	s.Groups = []v1alpha1.Group{first}
	p = decided(t, g, s, nil)
	assert.True(t, p.Lease.Release)
	assert.Empty(t, stopping(p))
	assert.Contains(t, p.Calls, leads("1")[0])
	// One that keeps its revision has no turn to wait for.
	s.Instances[0].Annotations[v1alpha1.AnnotationRestart] = "now"
	g.Spec.Version = "v8.5.7"
	assert.Equal(t, []string{"basic-tikv-0"}, stopping(decided(t, g, s, nil)))
}
