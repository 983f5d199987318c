package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

func marked(s *observation.Snapshot, verb member.Verb) {
	s.Instances[0].Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(verb)}
}

func deleted(s *observation.Snapshot) {
	s.Instances[0].DeletionTimestamp = ptr.To(metav1.NewTime(now()))
}

func claimLost(s *observation.Snapshot) {
	s.Instances[0].Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data"}}
	s.Instances[0].Status.Conditions = append(s.Instances[0].Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionVolumesReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonClaimLost})
}

func nodeGone(s *observation.Snapshot) { s.LostNodes = map[string]string{"kv-0": "n7"} }

// surplus has a fourth member that would be enough without the first.
func surplus(s *observation.Snapshot) {
	s.Instances = append(s.Instances, storeInstance(3, "4", served()...))
}

func TestKV04FL04AMemberLeavesStepByStep(t *testing.T) {
	call := func(verb component.CallVerb) []component.Call {
		return []component.Call{{Verb: verb, Target: "1", Instance: "kv-0"}}
	}
	state := func(state string) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) { s.PD.Stores[0].State = state }
	}
	gone := func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:] }
	never := func(s *observation.Snapshot) { s.Instances[0].Status.Member = nil; gone(s) }
	evicts := func(s *observation.Snapshot) { s.PD.EvictLeader = []string{"1"} }
	roomy := func(s *observation.Snapshot) {
		fourth := s.PD.Stores[2]
		fourth.ID, fourth.Address = "4", "kv-9:20160"
		s.PD.Stores = append(s.PD.Stores, fourth)
	}
	fullStore := func(s *observation.Snapshot) { s.PD.Stores[2].LowSpace = true }
	unreachable := func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("PD is asleep")} }
	type want struct {
		leased, ready, stays, suspend, replaced bool

		calls []component.Call
		says  string
	}
	for name, c := range map[string]struct {
		changes []func(*observation.Snapshot)
		want    want
	}{
		"its leaders go first": {nil, want{leased: true, calls: call(component.EvictLeaders), says: "gives its leaders away"}},
		"then its regions": {[]func(*observation.Snapshot){evicts, func(s *observation.Snapshot) { s.PD.Stores[0].Leaders = 0 }},
			want{leased: true, calls: call(component.DeleteStore), says: "waiting for PD to move its regions"}},
		"its regions go too if its leaders have had their time": {[]func(*observation.Snapshot){evicts, func(s *observation.Snapshot) { s.Now = now().Add(time.Hour) }},
			want{leased: true, calls: call(component.DeleteStore), says: "waiting for PD to move its regions"}},
		"a store that is Down has no leaders":                       {[]func(*observation.Snapshot){state(pd.StateDown)}, want{leased: true, calls: call(component.DeleteStore), says: "waiting for PD to move its regions"}},
		"once it is Offline others do not wait for it":              {[]func(*observation.Snapshot){state(pd.StateOffline)}, want{says: "is Offline and has about 30 regions left: only 2 TiKV stores can take them (store 2, store 3)"}},
		"while PD finds room for its regions nothing is said of it": {[]func(*observation.Snapshot){state(pd.StateOffline), roomy}, want{says: "is Offline and has about 30 regions left"}},
		"that PD finds no room for its regions is said":             {[]func(*observation.Snapshot){state(pd.StateOffline), roomy, fullStore}, want{says: "about 30 regions left: PD moves none to a store whose disk is less than 20% free (store 3): let their volumes grow, or add stores"}},
		"and it is not kept from leading any more":                  {[]func(*observation.Snapshot){state(pd.StateOffline), evicts, func(s *observation.Snapshot) { marked(s, member.Remove) }}, want{calls: call(component.StopEvictingLeaders), says: "is Offline", replaced: true}},
		"a tombstone has left":                                      {[]func(*observation.Snapshot){gone}, want{ready: true}},
		"but PD may evict them once it has loaded its schedulers":   {[]func(*observation.Snapshot){gone, func(s *observation.Snapshot) { s.PD.EvictionsUnknown = true }}, want{calls: call(component.StopEvictingLeaders), says: "has left"}},
		"but PD has to forget about its leaders":                    {[]func(*observation.Snapshot){gone, evicts}, want{calls: call(component.StopEvictingLeaders), says: "has left"}},
		"a PD without any stores has forgotten":                     {[]func(*observation.Snapshot){func(s *observation.Snapshot) { s.PD.Stores = nil }}, want{says: "PD lists no store at all"}},
		"who never came is stopped first":                           {[]func(*observation.Snapshot){never}, want{suspend: true, says: "has never registered with PD and is being stopped"}},
		"and has left then": {[]func(*observation.Snapshot){never, func(s *observation.Snapshot) {
			i := s.Instances[0]
			i.Spec.Suspended, i.Status.PodUID, i.Status.ObservedGeneration = true, "", 1
		}}, want{ready: true, suspend: true}},
		"nothing begins while PD does not answer": {[]func(*observation.Snapshot){unreachable}, want{leased: true, says: "PD is asleep"}},
		"what has begun waits for PD":             {[]func(*observation.Snapshot){unreachable, func(s *observation.Snapshot) { s.Instances[0].Spec.Retire = true }}, want{says: "PD is asleep"}},
		"and keeps the Lease if it holds it": {[]func(*observation.Snapshot){unreachable, func(s *observation.Snapshot) {
			s.Instances[0].Spec.Retire = true
			s.Lease = lease.NewState(lease.NewHolder(s.Instances[0]), now(), 1)
		}}, want{leased: true, says: "PD is asleep"}},
		"another store in its place is a problem":        {[]func(*observation.Snapshot){func(s *observation.Snapshot) { s.PD.Stores[0].ID = "99" }}, want{leased: true, says: "is store 1, but"}},
		"a deleted member that is needed comes back":     {[]func(*observation.Snapshot){deleted}, want{ready: true, stays: true}},
		"when nothing is left in PD of a restart":        {[]func(*observation.Snapshot){deleted, evicts, func(s *observation.Snapshot) { marked(s, member.Restart) }}, want{stays: true, calls: call(component.StopEvictingLeaders), says: "will lead again"}},
		"which PD has to say":                            {[]func(*observation.Snapshot){deleted, unreachable, func(s *observation.Snapshot) { marked(s, member.Restart) }}, want{stays: true, says: "PD is asleep"}},
		"a deleted member that is one too many leaves":   {[]func(*observation.Snapshot){deleted, surplus}, want{leased: true, replaced: true, calls: call(component.EvictLeaders), says: "gives its leaders away"}},
		"a deleted member goes on leaving":               {[]func(*observation.Snapshot){deleted, state(pd.StateOffline), func(s *observation.Snapshot) { marked(s, member.Remove) }}, want{replaced: true, says: "is Offline"}},
		"a deleted member that has lost its data leaves": {[]func(*observation.Snapshot){deleted, state(pd.StateDown), claimLost}, want{leased: true, replaced: true, calls: call(component.DeleteStore), says: "waiting for PD to move its regions"}},
		"unless a user has restored its claim": {[]func(*observation.Snapshot){deleted, claimLost, func(s *observation.Snapshot) {
			s.Claims = map[string][]metav1.ObjectMeta{"kv-0": {{Name: "data-kv-0"}}}
		}}, want{ready: true, stays: true}},
		"a deleted member whose data goes with it leaves": {[]func(*observation.Snapshot){deleted, func(s *observation.Snapshot) {
			s.Instances[0].Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data"}}
			s.Instances[0].Spec.ClaimRetention.WhenDeleted = v1alpha1.DeleteClaim
		}}, want{leased: true, replaced: true, calls: call(component.EvictLeaders), says: "gives its leaders away"}},
		"a deleted member whose claim is being deleted leaves": {[]func(*observation.Snapshot){deleted, func(s *observation.Snapshot) {
			s.Instances[0].Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data"}}
			s.Claims = map[string][]metav1.ObjectMeta{"kv-0": {{Name: "data-kv-0", DeletionTimestamp: ptr.To(metav1.NewTime(now()))}}}
		}}, want{leased: true, replaced: true, calls: call(component.EvictLeaders), says: "gives its leaders away"}},
		"a deleted member whose node is gone with its volume leaves": {[]func(*observation.Snapshot){deleted, state(pd.StateDown), nodeGone}, want{leased: true, replaced: true, calls: call(component.DeleteStore), says: "waiting for PD to move its regions"}},
		"who never came goes with a claim that is being deleted": {[]func(*observation.Snapshot){never, func(s *observation.Snapshot) {
			s.Claims = map[string][]metav1.ObjectMeta{"kv-0": {{Name: "data-kv-0", DeletionTimestamp: ptr.To(metav1.NewTime(now()))}}}
		}}, want{ready: true, suspend: true}},
		"and is not recreated on it if it never came": {[]func(*observation.Snapshot){deleted, never, nodeGone}, want{suspend: true, says: "has never registered with PD and is being stopped"}},
		"nor on a claim that has lost its volume": {[]func(*observation.Snapshot){deleted, state(pd.StateDown), claimLost, func(s *observation.Snapshot) {
			s.Claims = map[string][]metav1.ObjectMeta{"kv-0": {{Name: "data-kv-0"}}}
			s.Instances[0].Status.Volumes = []v1alpha1.VolumeStatus{{Name: "data", Phase: string(corev1.ClaimLost)}}
		}}, want{leased: true, replaced: true, calls: call(component.DeleteStore), says: "waiting for PD to move its regions"}},
		"one that PD never knew has lost nothing":    {[]func(*observation.Snapshot){deleted, never, claimLost}, want{ready: true, stays: true}},
		"a deleted member that has left is replaced": {[]func(*observation.Snapshot){deleted, gone}, want{ready: true, replaced: true}},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			s.PD.Bootstrapped = true
			for _, change := range c.changes {
				change(&s)
			}
			d := component.Disruption{Instance: s.Instances[0], Verb: member.Remove, Why: "spec.replicas is 2"}
			kind := tikv(g, s)
			p := kind.Leave(d, now())
			assert.Contains(t, p.Wait.Message, c.want.says)
			assert.Equal(t, c.want.says == "", p.Wait.Message == "", p.Wait.Message)
			c.want.says = ""
			replaced := kind.IsReplacedWhenDeleted(s.Instances[0]) && (c.want.replaced || s.Instances[0].DeletionTimestamp != nil)
			assert.Equal(t, c.want, want{kind.NeedsLease(d), p.Ready, p.Stays, p.Suspend, replaced, p.Calls, ""})
			if !p.Ready {
				assert.Positive(t, p.Wait.After)
				assert.NotEmpty(t, p.Wait.Reason)
			}
		})
	}
}

// A deleted member that is to stay is restarted with care if that makes a
// difference, and else released at once.
func TestWhichDeletedMembersAreRestartedUnderTheLease(t *testing.T) {
	for name, c := range map[string]struct {
		changes []func(*observation.Snapshot)
		want    bool
	}{
		"one that serves is":                        {nil, true},
		"one that is not deleted has no need of it": {[]func(*observation.Snapshot){func(s *observation.Snapshot) { s.Instances[0].DeletionTimestamp = nil }}, false},
		"one that is one too many leaves":           {[]func(*observation.Snapshot){surplus}, false},
		"one without a pod goes":                    {[]func(*observation.Snapshot){func(s *observation.Snapshot) { s.Instances[0].Status.PodUID = "" }}, false},
		"unless it holds the Lease": {[]func(*observation.Snapshot){func(s *observation.Snapshot) {
			s.Instances[0].Status.PodUID = ""
			s.Lease = lease.NewState(lease.NewHolder(s.Instances[0]), now(), 1)
		}}, true},
		"one that is Down goes": {[]func(*observation.Snapshot){func(s *observation.Snapshot) {
			s.PD.Stores[0].State = pd.StateDown
			podIs(s.Instances[0], v1alpha1.ReasonPodNotReady)
		}}, false},
		"one that PD has never listed goes":           {[]func(*observation.Snapshot){func(s *observation.Snapshot) { s.Instances[0].Status.Member, s.PD.Stores = nil, s.PD.Stores[1:] }}, false},
		"one of which nothing is known stays for now": {[]func(*observation.Snapshot){func(s *observation.Snapshot) { s.PD = pd.View{Err: errors.New("PD is asleep")} }}, true},
		"one that is another store goes":              {[]func(*observation.Snapshot){func(s *observation.Snapshot) { s.PD.Stores[0].ID = "99" }}, false},
		"one whose data goes with it leaves": {[]func(*observation.Snapshot){func(s *observation.Snapshot) {
			s.Instances[0].Spec.VolumeClaimTemplates = []v1alpha1.VolumeClaimTemplate{{Name: "data"}}
			s.Instances[0].Spec.ClaimRetention.WhenDeleted = v1alpha1.DeleteClaim
		}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			s.PD.Bootstrapped = true
			deleted(&s)
			for _, change := range c.changes {
				change(&s)
			}
			assert.Equal(t, c.want, tikv(g, s).RestartsWhenDeleted(s.Instances[0]))
		})
	}
	g, s := world()
	deleted(&s)
	g.Spec.Suspended = true
	assert.False(t, tikv(g, s).RestartsWhenDeleted(s.Instances[0]), "a suspended group stops anyway")
}

// KV-05: only what carries our mark is restored, and what cannot be is replaced.
func TestKV05ACancelledRemovalIsUndone(t *testing.T) {
	g, s := world()
	s.PD.Bootstrapped = true
	s.PD.Stores[0].State = pd.StateOffline
	assert.Empty(t, tikv(g, s).UndoPreparation(s.Instances[0]), "a user's")
	marked(&s, member.Restart)
	assert.Empty(t, tikv(g, s).UndoPreparation(s.Instances[0]), "a user's while we restarted it")
	marked(&s, member.Remove)
	assert.Equal(t, []component.Call{{Verb: component.RestoreStore, Target: "1", Instance: "kv-0"}}, tikv(g, s).UndoPreparation(s.Instances[0]))
	assert.Empty(t, tikv(g, s).ReasonDead(s.Instances[0]).Text())
	s.PD.Stores = s.PD.Stores[1:]
	assert.Empty(t, tikv(g, s).UndoPreparation(s.Instances[0]))
	assert.Contains(t, tikv(g, s).ReasonDead(s.Instances[0]).Text(), "store 1 had left PD")
	marked(&s, "")
	assert.Empty(t, tikv(g, s).ReasonDead(s.Instances[0]).Text(), "a user's tombstone is for a user")
}

func TestDrainedIsSetForMembersThatHaveLeft(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*observation.Snapshot)
		left   bool
		want   string
	}{
		"one that stays":       {func(*observation.Snapshot) {}, false, ""},
		"one that is to leave": {func(s *observation.Snapshot) { s.Instances[0].Spec.Retire = true }, false, "False: store 1 is Up and must leave"},
		"one that gives regions away": {func(s *observation.Snapshot) {
			s.Instances[0].Spec.Retire = true
			s.PD.Stores[0].State, s.PD.Stores[0].Regions = pd.StateOffline, 1234
		}, false, "False: store 1 is Offline and has about 1200 regions left"},
		"one that has left":       {func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:] }, true, "True: PD no longer lists store 1"},
		"one that a user removed": {func(s *observation.Snapshot) { s.PD.Stores = s.PD.Stores[1:] }, false, ""},
		"one that never came":     {func(s *observation.Snapshot) { s.Instances[0].Status.Member = nil; s.PD.Stores = s.PD.Stores[1:] }, true, "True: the pod has stopped and PD has never listed a store of it"},
	} {
		t.Run(name, func(t *testing.T) {
			g, s := world()
			c.change(&s)
			members := storestate.Members(storestate.Matches(g, s, v1alpha1.PortTiKV), map[string]bool{"kv-0": c.left}, nil, now())
			got := ""
			for _, x := range members[0].Conditions {
				if x.Type == v1alpha1.ConditionDrained {
					got = string(x.Status) + ": " + x.Message
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}
