package controller

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// ill is a region that has lost the peer of one store, and would lose its majority with
// store 1.
func ill(id string) pd.Region {
	return pd.Region{ID: id, Peers: []pd.Peer{{StoreID: "1", Voter: true}, {StoreID: "2", Voter: true}, {StoreID: "3", Voter: true, Down: true}}}
}

// restarting is a group of which the first member is asked to be restarted.
func restarting(t *testing.T, regions ...pd.Region) (*v1alpha1.TiKVGroup, observation.Snapshot) {
	t.Helper()
	g := sample()
	s := world(t, g, 3)
	for _, i := range s.Instances {
		i.Namespace = g.Namespace
	}
	first := s.Instances[0]
	first.Status.PodUID = "pod-1"
	if first.Annotations == nil {
		first.Annotations = map[string]string{}
	}
	first.Annotations[v1alpha1.AnnotationRestart] = "now"
	s.PD.MaxReplicas = 3
	for n := range s.PD.Stores {
		s.PD.Stores[n].Regions = 10
	}
	s.Regions, s.RegionsKnown = regions, true
	return g, s
}

func at(t *testing.T, g *v1alpha1.TiKVGroup, s *observation.Snapshot, later time.Duration, regions ...pd.Region) groupPlan {
	t.Helper()
	s.Now = now().Add(later)
	s.Regions = regions
	p, err := makePlan(g, *s)
	require.NoError(t, err)
	s.Hold = p.Hold
	return p
}

// KV-13.
func TestKV13ARegionThatBlocksForTooLongIsNamedWithARemedy(t *testing.T) {
	g, s := restarting(t)
	p := at(t, g, &s, 0, ill("7"), ill("8"))
	require.Equal(t, step.KindWait, p.Outcome.Kind)
	require.Equal(t, v1alpha1.ReasonUnsafe, p.Outcome.Reason, p.Outcome.Message)
	p = at(t, g, &s, 6*time.Minute, ill("8"), ill("9"))
	assert.Equal(t, step.KindWait, p.Outcome.Kind)
	p = at(t, g, &s, 9*time.Minute+59*time.Second, ill("8"), ill("9"))
	assert.Equal(t, step.KindWait, p.Outcome.Kind)

	p = at(t, g, &s, 10*time.Minute, ill("8"), ill("9"))
	assert.Equal(t, step.KindStall, p.Outcome.Kind)
	assert.Equal(t, v1alpha1.ReasonUnsafe, p.Outcome.Reason)
	assert.Contains(t, p.Outcome.Message, "has not replicated region 8: ", "7 was replicated, and 9 has come later")
	assert.Contains(t, p.Outcome.Message, "kubectl -n shop annotate instance basic-tikv-0 groups.tidb.dev/stop-anyway=pod-1 --overwrite")
	assert.NotZero(t, p.Outcome.After, "nothing wakes it when the region is well")
	assert.Nil(t, p.Lease.Take, "nothing is stopped because time has passed")
	told := regexp.MustCompile(`kubectl -n shop annotate instance basic-tikv-0 (\S+)=(\S+) --overwrite$`).FindStringSubmatch(p.Outcome.Message)
	require.Len(t, told, 3, p.Outcome.Message)
	s.Instances[0].Annotations[told[1]] = told[2]
	assert.NotNil(t, at(t, g, &s, 10*time.Minute+time.Second, ill("8"), ill("9")).Lease.Take, "what the message tells helps")
	delete(s.Instances[0].Annotations, told[1])

	p = at(t, g, &s, 11*time.Minute)
	assert.NotNil(t, p.Lease.Take, "it goes on when the region is well")
	assert.Empty(t, s.Hold.Instance)
}

func TestKV13AClusterThatIsAlwaysReplicatingSomethingIsNotStalled(t *testing.T) {
	g, s := restarting(t)
	for minute := range 60 {
		p := at(t, g, &s, time.Duration(minute)*time.Minute, ill(strings.Repeat("1", 1+minute/5)))
		require.Equal(t, step.KindWait, p.Outcome.Kind, "minute %d", minute)
	}
}

func TestKV13AStoreThatIsDownForTooLongStallsToo(t *testing.T) {
	g, s := restarting(t)
	s.PD.Stores[2].State = pd.StateDown
	require.Equal(t, step.KindWait, at(t, g, &s, 0).Outcome.Kind)
	p := at(t, g, &s, 10*time.Minute)
	assert.Equal(t, step.KindStall, p.Outcome.Kind, p.Outcome.Message)
	assert.Contains(t, p.Outcome.Message, "is Down")
	assert.Contains(t, p.Outcome.Message, "stop-anyway=pod-1")
}

// PD needs every store for it, and begins again if one fails.
func TestKV13NoRestartIsToBeForcedWhilePDRemovesStoresByForce(t *testing.T) {
	g, s := restarting(t)
	s.PD.ForceRemoved = []string{"8", "9"}
	at(t, g, &s, 0)
	p := at(t, g, &s, 10*time.Minute)
	assert.Equal(t, v1alpha1.ReasonUnsafe, p.Outcome.Reason)
	assert.Contains(t, p.Outcome.Message, "unsafe remove-failed-stores show")
	assert.NotContains(t, p.Outcome.Message, "stop-anyway")
}

func TestKV13AUserMayForceTheStopOfOnePod(t *testing.T) {
	g, s := restarting(t)
	first := s.Instances[0]
	require.Nil(t, at(t, g, &s, 0, ill("7")).Lease.Take)
	first.Annotations[v1alpha1.AnnotationStopAnyway] = "pod-1"
	assert.NotNil(t, at(t, g, &s, 0, ill("7")).Lease.Take)

	s.PD.Members, s.PD.Leader = nil, ""
	assert.Nil(t, at(t, g, &s, 0, ill("7")).Lease.Take, "not without PD")

	g, s = restarting(t)
	s.Instances[0].Annotations[v1alpha1.AnnotationStopAnyway] = "pod-0"
	assert.Nil(t, at(t, g, &s, 0, ill("7")).Lease.Take, "it counts for the pod that was named, and so once")
}

// KV-10, KV-13: PD calls the peers of a region pending until they have answered its new
// leader, and giving leaders away makes new ones. That is waited for with the Lease; an
// eviction that was taken back for it would never end.
func TestKV13RegionsThatCatchUpCostNoEviction(t *testing.T) {
	fresh := pd.Region{ID: "7", LeaderStore: "2", Peers: []pd.Peer{{StoreID: "1", Voter: true, Pending: true}, {StoreID: "2", Voter: true}, {StoreID: "3", Voter: true, Pending: true}}}
	g, s := restarting(t)
	g.Spec.FlushLogBackups = ptr.To(false)
	first := s.Instances[0]
	first.UID, first.Finalizers = "uid-0", []string{v1alpha1.FinalizerMember}
	first.Annotations[v1alpha1.AnnotationDisruption] = string(member.Restart)
	s.PD.EvictLeader = []string{"1"}
	s.Lease = lease.NewState(lease.NewHolder(first), now(), 10)

	s.PD.Stores[0].Leaders = 3
	p := at(t, g, &s, 0, fresh)
	assert.False(t, p.Lease.Release, p.Outcome.Message)
	assert.Equal(t, v1alpha1.ReasonPreparing, p.Outcome.Reason, "regions are not judged before the leaders are away")

	s.PD.Stores[0].Leaders = 0
	p = at(t, g, &s, time.Second, fresh)
	assert.False(t, p.Lease.Release, p.Outcome.Message)
	assert.Empty(t, p.Calls)
	assert.Empty(t, stopping(p))
	assert.Equal(t, v1alpha1.ReasonUnsafe, p.Outcome.Reason)
	assert.NotZero(t, p.Outcome.After, "nothing wakes it when the peers have answered")

	waits := s
	p = at(t, g, &s, 2*time.Second)
	assert.Equal(t, []string{"basic-tikv-0"}, stopping(p), p.Outcome.Message)
	assert.Empty(t, s.Hold.Instance)

	// What does not pass is waited for without the Lease.
	assert.False(t, at(t, g, &waits, 30*time.Second, fresh).Lease.Release)
	p = at(t, g, &waits, 31*time.Second, fresh)
	assert.True(t, p.Lease.Release, p.Outcome.Message)
	assert.Empty(t, stopping(p))
	if assert.Len(t, p.Calls, 1) {
		assert.Equal(t, component.StopEvictingLeaders, p.Calls[0].Verb)
	}
	assert.Equal(t, "basic-tikv-0", waits.Hold.Instance, "how long it is held back is known on")
}
