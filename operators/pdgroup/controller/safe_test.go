package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/voting"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// edited is a PDGroup whose members all need a restart.
func edited(g *v1alpha1.PDGroup) { bootstrapped(g); g.Spec.Config = "lease = 5" }

// tells replaces conditions of an Instance, as type/status/since.
func tells(i *v1alpha1.Instance, ago time.Duration, list ...string) {
	set := conditions.New(nil, i.Generation, clock().Add(-ago))
	for n := 0; n < len(list); n += 3 {
		set.SetCondition(list[n], metav1.ConditionStatus(list[n+1]), list[n+2], "test")
	}
	i.Status.Conditions = set.List()
}

// member sets what PD and the conditions say of a member.
func lives(s *observation.Snapshot, slot int, healthy, runs bool) {
	i, word := s.Instances[slot], func(b bool) string {
		if b {
			return "True"
		}
		return "False"
	}
	reason := v1alpha1.ReasonReady
	if !runs {
		reason = v1alpha1.ReasonPodNotReady
	} else if !healthy {
		reason = v1alpha1.ReasonGatesPending
	}
	s.PD.Members[slot].Healthy = healthy
	tells(i, 10*time.Minute, "Ready", word(healthy && runs), reason, "PodReady", word(runs), "PodReady",
		"Joined", "True", "MemberJoined", "Healthy", word(healthy), "MemberHealthy")
}

// deleted marks an Instance as one that a user has deleted.
func deleted(s *observation.Snapshot, slot int, ago time.Duration) {
	s.Instances[slot].DeletionTimestamp = ptr.To(metav1.NewTime(clock().Add(-ago)))
}

// holds gives the Lease to an Instance, of which something has been done already.
func holds(s *observation.Snapshot, slot int) {
	s.Instances[slot].Annotations = map[string]string{v1alpha1.AnnotationDisruption: string(member.Restart)}
	s.Lease = lease.NewState(lease.NewHolder(s.Instances[slot]), clock().Add(-time.Minute), 0)
}

// scene is a group of n members that are healthy, changed.
func scene(t *testing.T, n int, changes ...func(*observation.Snapshot)) observation.Snapshot {
	t.Helper()
	return started(t, stored(), n, append([]func(*observation.Snapshot){func(s *observation.Snapshot) {
		s.Now = clock()
		for slot := range n {
			s.Instances[slot].UID = s.Instances[slot].Status.PodUID
			lives(s, slot, true, true)
			s.Instances[slot].Status.Revision = s.Instances[slot].Spec.Revision
			s.Instances[slot].Status.Member = &v1alpha1.MemberStatus{ID: fmt.Sprint(slot + 1)}
		}
	}}, changes...)...)
}

// did summarises what a plan does.
type did struct {
	granted, created, deleted, calls []string
	taken                            string
	given                            bool
}

func does(p groupPlan) did {
	var out did
	for _, c := range p.Instances {
		switch {
		case c.Live == nil:
			out.created = append(out.created, c.Desired.Name)
		case c.Desired.Spec.Revision != c.Live.Spec.Revision, c.Desired.Spec.StopPod != c.Live.Spec.StopPod:
			out.granted = append(out.granted, c.Desired.Name)
		}
	}
	for _, i := range p.Deletes {
		out.deleted = append(out.deleted, i.Name)
	}
	for _, c := range p.Calls {
		out.calls = append(out.calls, fmt.Sprintf("%s %s", c.Verb, c.Target))
	}
	if p.Lease.Take != nil {
		out.taken = p.Lease.Take.Instance.Name
	}
	out.given = p.Lease.Release
	return out
}

// PD-08, PD-10, PD-11, PD-20.
func TestARoll(t *testing.T) {
	updated := func(slots ...int) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			target := mustPlan(t, stored(edited), *s).Target
			for _, slot := range slots {
				i := s.Instances[slot]
				raw, err := json.Marshal(target.Template)
				require.NoError(t, err)
				i.Spec.PodTemplate.Raw, i.Spec.Revision, i.Status.Revision = raw, target.Hash, target.Hash
			}
		}
	}
	goes := func(slot int) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			name := s.Instances[slot].Name
			s.Claims = map[string][]metav1.ObjectMeta{name: {{Name: "data-" + name, DeletionTimestamp: ptr.To(metav1.NewTime(clock()))}}}
		}
	}
	for name, c := range map[string]struct {
		n      int
		change []func(*observation.Snapshot)
		want   did
		reason string
		says   string
	}{
		"begins with a follower": {3, nil, did{taken: "basic-pd-1"}, v1alpha1.ReasonPreparing, "Instance basic-pd-1 is next"},
		"stops a follower that holds the Lease": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) { holds(s, 1) }},
			did{granted: []string{"basic-pd-1"}}, v1alpha1.ReasonRestarting, "Instance basic-pd-1 is being restarted"},
		"waits for it to be healthy again": {3, []func(*observation.Snapshot){updated(1), func(s *observation.Snapshot) { holds(s, 1); lives(s, 1, false, true); says2(s, 1) }},
			did{}, v1alpha1.ReasonRecovering, "member basic-pd-1 is coming back: PD does not call it healthy"},
		"goes round one whose claim would go with its pod": {3, []func(*observation.Snapshot){goes(1)}, did{taken: "basic-pd-2"}, "", ""},
		"says so when it is the last": {3, []func(*observation.Snapshot){updated(0, 2), goes(1)},
			did{}, v1alpha1.ReasonUnsafe, "claim data-basic-pd-1 is being deleted, and would go with its pod: replace the member with its data: kubectl delete instance basic-pd-1 -n ns"},
		"but not for the claim of a volume that the spec has no more": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) {
			s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-1": {{Name: "log-basic-pd-1", DeletionTimestamp: ptr.To(metav1.NewTime(clock()))}}}
		}}, did{taken: "basic-pd-1"}, "", ""},
		"and gives the Lease back for it": {3, []func(*observation.Snapshot){goes(1), func(s *observation.Snapshot) { holds(s, 1) }}, did{given: true}, v1alpha1.ReasonUnsafe, "claim data-basic-pd-1 is being deleted"},
		"gives the Lease back then":       {3, []func(*observation.Snapshot){updated(1), func(s *observation.Snapshot) { holds(s, 1) }}, did{given: true}, "", ""},
		"goes on with the next follower":  {3, []func(*observation.Snapshot){updated(1)}, did{taken: "basic-pd-2"}, "", ""},
		"takes the leader last":           {3, []func(*observation.Snapshot){updated(1, 2)}, did{taken: "basic-pd-0"}, "", ""},
		"moves the leader to a member that is updated": {3, []func(*observation.Snapshot){updated(2), func(s *observation.Snapshot) { holds(s, 0) }},
			did{calls: []string{"TransferLeader basic-pd-2"}}, v1alpha1.ReasonPreparing, "PD's leader moves from basic-pd-0 to basic-pd-2"},
		"and not to one that leaves": {3, []func(*observation.Snapshot){updated(1, 2), func(s *observation.Snapshot) { holds(s, 0); deleted(s, 1, 0) }},
			did{calls: []string{"TransferLeader basic-pd-2"}}, "", ""},
		"stops the former leader when PD says that another leads": {3, []func(*observation.Snapshot){updated(1, 2), func(s *observation.Snapshot) { holds(s, 0); s.PD.Leader = "basic-pd-2" }},
			did{granted: []string{"basic-pd-0"}}, "", ""},
		"does not stop the former leader while no member leads": {3, []func(*observation.Snapshot){updated(1, 2), func(s *observation.Snapshot) { holds(s, 0); s.PD.Leader = "" }},
			did{given: true}, v1alpha1.ReasonUnsafe, "PD has no quorum"},
		"restarts a single member without moving its leader": {1, []func(*observation.Snapshot){func(s *observation.Snapshot) { holds(s, 0) }},
			did{granted: []string{"basic-pd-0"}}, "", ""},
		"refuses to stop one of two": {2, nil, did{}, v1alpha1.ReasonUnsafe, "scale pdgroup basic-pd --replicas=3"},
		"stops one of four":          {4, nil, did{taken: "basic-pd-1"}, "", ""},
		"stops none of four when one is down": {4, []func(*observation.Snapshot){updated(3), func(s *observation.Snapshot) { lives(s, 3, false, false) }},
			did{}, v1alpha1.ReasonPodNotReady, "Instance basic-pd-3"},
		"stops none of three when one is down": {3, []func(*observation.Snapshot){updated(2), func(s *observation.Snapshot) { lives(s, 2, false, false) }},
			did{}, v1alpha1.ReasonPodNotReady, "Instance basic-pd-2"},
		"replaces the pod of one that does not work at once": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) { lives(s, 2, false, false) }},
			did{granted: []string{"basic-pd-2"}}, "", ""},
		"restarts one that is unhealthy first, and with the Lease": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) { lives(s, 2, false, true) }},
			did{taken: "basic-pd-2"}, "", ""},
		"gives the Lease back when it has become unsafe": {3, []func(*observation.Snapshot){updated(2), func(s *observation.Snapshot) { holds(s, 1); lives(s, 2, false, false) }},
			did{given: true}, v1alpha1.ReasonPodNotReady, "Instance basic-pd-2"},
		"stops no member while PD does not answer":           {3, []func(*observation.Snapshot){pdUnreachable}, did{}, v1alpha1.ReasonUnsafe, "connection refused"},
		"stops no member while another cluster's PD answers": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) { s.PD.ClusterID = "9" }}, did{}, "", "cluster ID 9"},
		"restarts members that never got a leader together after a while": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) {
			for slot := range 3 {
				lives(s, slot, false, true)
			}
			s.PD = pd.View{Err: &pd.Refused{Call: "members", Status: 500, Body: "[PD:apiutil:ErrRedirect]redirect failed"}}
			lost(s, time.Minute)
		}}, did{granted: []string{"basic-pd-0", "basic-pd-1", "basic-pd-2"}}, "", ""},
		"but not during an election": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) {
			for slot := range 3 {
				lives(s, slot, false, true)
			}
			s.PD = pd.View{Err: &pd.Refused{Call: "members", Status: 500, Body: "[PD:apiutil:ErrRedirect]redirect failed"}}
			lost(s, time.Second)
		}}, did{}, v1alpha1.ReasonGatesPending, ""},
		"nor when PD cannot be reached": {3, []func(*observation.Snapshot){func(s *observation.Snapshot) {
			for slot := range 3 {
				lives(s, slot, false, true)
			}
			pdUnreachable(s)
			lost(s, time.Minute)
		}}, did{}, v1alpha1.ReasonGatesPending, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(t, c.n, c.change...)
			g := stored(edited, replicasOf(int32(c.n)))
			if s.PDGroup != nil {
				g.Status.Conditions = s.PDGroup.Status.Conditions
			}
			p := mustPlan(t, g, s)
			assert.Equal(t, c.want, does(p), "%v", p.Notes)
			if c.reason != "" {
				assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			}
			assert.Contains(t, p.Outcome.Message, c.says)
		})
	}
}

// lost has the group say for how long it has had no quorum.
func lost(s *observation.Snapshot, ago time.Duration) {
	set := conditions.New(nil, 2, clock().Add(-ago))
	set.MarkUnknown(v1alpha1.ConditionQuorumHealthy, v1alpha1.ReasonQuorumLost, "test")
	s.PDGroup = stored()
	s.PDGroup.Status.Conditions = set.List()
}

// says2 has an Instance be Ready although PD does not call it healthy yet: its
// gates lag behind.
func says2(s *observation.Snapshot, slot int) {
	tells(s.Instances[slot], time.Hour, "Ready", "True", "Ready", "PodReady", "True", "PodReady", "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
}

// PD-06, PD-07, PD-08, PD-09.
func TestAScaleIn(t *testing.T) {
	tikv := &v1alpha1.TiKVGroup{}
	tikv.Name = "basic-tikv"
	retired := func(slot int) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) { s.Instances[slot].Spec.Retire = true }
	}
	for name, c := range map[string]struct {
		n, want int
		change  []func(*observation.Snapshot)
		does    did
		reason  string
		says    string
	}{
		"begins with the newest follower": {5, 3, nil, did{taken: "basic-pd-4"}, v1alpha1.ReasonPreparing, "Instance basic-pd-4 is next: spec.replicas is 3"},
		"removes it from PD": {5, 3, []func(*observation.Snapshot){retired(4), func(s *observation.Snapshot) { holds(s, 4) }},
			did{calls: []string{"DeleteMember 5"}}, v1alpha1.ReasonDraining, "member basic-pd-4 is being removed from PD"},
		"moves the leader away from it first": {5, 4, []func(*observation.Snapshot){retired(4), func(s *observation.Snapshot) { holds(s, 4); s.PD.Leader = "basic-pd-4" }},
			did{calls: []string{"TransferLeader basic-pd-0"}}, v1alpha1.ReasonPreparing, "PD's leader moves from basic-pd-4 to basic-pd-0"},
		"keeps the pod until PD has let the member go and all can see it": {5, 3, []func(*observation.Snapshot){retired(4), func(s *observation.Snapshot) { holds(s, 4); s.PD.Members = s.PD.Members[:4] }},
			did{}, v1alpha1.ReasonDraining, "the member of Instance basic-pd-4 has left"},
		"deletes the Instance then": {5, 3, []func(*observation.Snapshot){retired(4), func(s *observation.Snapshot) {
			holds(s, 4)
			s.PD.Members = s.PD.Members[:4]
			tells(s.Instances[4], 0, "Drained", "True", "MemberLeft")
		}}, did{deleted: []string{"basic-pd-4"}}, v1alpha1.ReasonDraining, "Instance basic-pd-4 is being deleted"},
		"does not believe a member that was removed and still answers": {5, 3, []func(*observation.Snapshot){retired(4), func(s *observation.Snapshot) {
			holds(s, 4)
			tells(s.Instances[4], 0, "Drained", "True", "MemberLeft")
		}}, did{deleted: []string{"basic-pd-4"}}, "", ""},
		"is cancelled by setting replicas back": {5, 5, []func(*observation.Snapshot){retired(4), func(s *observation.Snapshot) { holds(s, 4) }}, did{given: true}, "", ""},
		"that is cancelled too late is a replacement": {5, 5, []func(*observation.Snapshot){retired(4), func(s *observation.Snapshot) {
			s.PD.Members = s.PD.Members[:4]
			s.Instances[4].Annotations = map[string]string{v1alpha1.AnnotationDisruption: "Remove"}
		}}, did{deleted: []string{"basic-pd-4"}}, v1alpha1.ReasonReplacing, "PD has removed its member"},
		"takes one that is down first, and without the Lease": {5, 4, []func(*observation.Snapshot){func(s *observation.Snapshot) { lives(s, 1, false, false) }},
			did{calls: []string{"DeleteMember 2"}}, v1alpha1.ReasonDraining, "member basic-pd-1"},
		"takes whom a user names": {5, 4, []func(*observation.Snapshot){func(s *observation.Snapshot) {
			s.Instances[2].Annotations = map[string]string{v1alpha1.AnnotationRemoveFirst: ""}
		}}, did{taken: "basic-pd-2"}, "", ""},
		"to one ends with the last member": {2, 1, nil, did{taken: "basic-pd-1"}, "", ""},
		"waits while PD has no quorum":     {5, 3, []func(*observation.Snapshot){func(s *observation.Snapshot) { s.PD.Leader = "" }}, did{}, v1alpha1.ReasonUnsafe, "PD has no quorum"},
		"waits while another member joins": {5, 4, []func(*observation.Snapshot){func(s *observation.Snapshot) {
			s.PD.Members = append(s.PD.Members, pd.Member{ID: "9", PeerURL: "http://elsewhere:2380"})
		}}, did{}, v1alpha1.ReasonUnsafe, "member http://elsewhere:2380 is joining PD"},
		"to nothing is refused and names who needs PD": {3, 0, []func(*observation.Snapshot){func(s *observation.Snapshot) { s.Groups = []v1alpha1.Group{tikv} }},
			did{}, v1alpha1.ReasonScaleInRefused, "TiKVGroup basic-tikv would be left without a PD"},
		"to nothing is refused even if no group needs PD": {3, 0, nil, did{}, v1alpha1.ReasonScaleInRefused, "the cluster would be lost with its last member"},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, stored(bootstrapped, replicasOf(int32(c.want))), scene(t, c.n, c.change...))
			assert.Equal(t, c.does, does(p), "%v: %s", p.Notes, p.Outcome.Message)
			if c.reason != "" {
				assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			}
			assert.Contains(t, p.Outcome.Message, c.says)
			for _, change := range p.Instances {
				if c.want == c.n && change.Live != nil {
					assert.False(t, change.Desired.Spec.Retire)
				}
			}
		})
	}
}

// P1: PD calls a member healthy for as long as it answers. One whose pod is being
// stopped, or stops again and again, is not counted on but by one that stands no better.
func TestAMemberThatIsHealthyInPDButNotReadyInKubernetesDoesNotCount(t *testing.T) {
	says := func(ready, podReady, reason string) func(*v1alpha1.Instance) {
		return func(i *v1alpha1.Instance) {
			tells(i, time.Minute, "Ready", ready, reason, "PodReady", podReady, reason, "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
		}
	}
	firm := func(*v1alpha1.Instance) {}
	between, crashing := says("True", "True", v1alpha1.ReasonContainerCrashing), says("False", "False", v1alpha1.ReasonContainerCrashing)
	stopping := says("False", "False", v1alpha1.ReasonPodTerminating)
	for name, c := range map[string]struct {
		own, other func(*v1alpha1.Instance)
		held       bool
	}{
		"all are firm": {firm, firm, false},
		"another one crashed and is ready for now":  {firm, between, true},
		"another one crashes":                       {firm, crashing, true},
		"another one is being stopped":              {firm, stopping, true},
		"both crash, and either may be fixed":       {crashing, crashing, false},
		"it crashes itself":                         {crashing, between, false},
		"it crashes, and another one is stopping":   {crashing, stopping, true},
		"it crashed, and another one does not come": {between, crashing, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(t, 3)
			c.own(s.Instances[1])
			c.other(s.Instances[0])
			v := voting.New(stored(bootstrapped), s)
			why := v.Allows(component.Disruption{Instance: s.Instances[1], Verb: member.Restart}).Reason()
			assert.Equal(t, c.held, why != "", why)
			if c.held {
				assert.Contains(t, why, "describe instance basic-pd-0")
				assert.Equal(t, "basic-pd-2", v.Successor(component.Disruption{Instance: s.Instances[1], Verb: member.Restart}, voting.FitsAny))
			}
		})
	}
}

// P1: a drain takes no member beside one whose pod is ready and that PD does not hear of.
func TestADrainStopsNoMemberWhilePDMissesAnother(t *testing.T) {
	g := stored(bootstrapped)
	s := scene(t, 3)
	assert.EqualValues(t, 3, countForBudget(g, s))
	lives(&s, 2, false, true)
	assert.EqualValues(t, 4, countForBudget(g, s))
	lives(&s, 2, false, false)
	assert.EqualValues(t, 3, countForBudget(g, s), "a pod that is not ready Kubernetes does not count")
	lives(&s, 2, true, true)
	g.Status.Members = []v1alpha1.PDMember{{Name: ""}, {Name: "basic-pd-0"}, {Name: "basic-pd-1"}, {Name: "basic-pd-2"}, {Name: "basic-pd-3"}}
	assert.EqualValues(t, 4, countForBudget(g, s), "a member without an Instance votes")
	g.Status.Members, g.Spec.Replicas = nil, ptr.To(int32(5))
	assert.EqualValues(t, 5, countForBudget(g, s))
	g.Spec.Paused = true
	assert.EqualValues(t, 3, countForBudget(g, s), "while it is paused, no member is added")
	g.Spec.Paused = false
	one := scene(t, 1)
	lives(&one, 0, false, true)
	g.Spec.Replicas = ptr.To(int32(1))
	assert.EqualValues(t, 1, countForBudget(g, one), "a single one never keeps a drain from ending")
}

// P6: who restores a claim does not have to know which labels it is found by.
func TestAMemberWithAClaimIsNotRemovedWhenItsInstanceIsMissing(t *testing.T) {
	g := stored(bootstrapped)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "data-basic-pd-2"}}
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	r := &steps{Env: operator.Env{Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim).Build()}}
	// P11: whatever else the group waits for, what a user has to do is named, and the
	// reason, from which others read whether PD has a roll ahead, is the plan's.
	p := groupPlan{Orphan: pd.Member{ID: "3", Name: "basic-pd-2"}}
	for _, reason := range []string{"", v1alpha1.ReasonCreating} {
		if reason != "" {
			p.Outcome = step.Wait("Instance", time.Minute, reason, "creating 1 of 3 Instances")
		}
		o := r.removeOrphan(t.Context(), g, scene(t, 3), p)
		status, _, end := reportStatus(g, scene(t, 3), p, o, clock())
		upToDate := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionUpToDate)
		assert.Contains(t, upToDate.Message, "claim data-basic-pd-2 exists")
		assert.Equal(t, cmp.Or(reason, v1alpha1.ReasonDraining), upToDate.Reason)
		assert.Positive(t, end.After)
	}
}

// P5: a member that PD lists, and of which only the claim is left, votes. One that is not wanted any
// more, such as of a scale-in or a replacement in which a user removed the finalizers of its Instance,
// starts again all the same, and leaves like others that are too many.
func TestAMemberWithAClaimStartsAgainAlsoIfThereAreEnough(t *testing.T) {
	for name, c := range map[string]struct {
		gone    []int
		claim   metav1.ObjectMeta
		wanted  int32
		created []string
		orphan  string
	}{
		"one too many":                         {[]int{3}, metav1.ObjectMeta{}, 3, []string{"basic-pd-3"}, ""},
		"one in the place of which another is": {[]int{1}, metav1.ObjectMeta{}, 3, []string{"basic-pd-1"}, ""},
		"two without which there is no quorum": {[]int{1, 2}, metav1.ObjectMeta{}, 2, []string{"basic-pd-1", "basic-pd-2"}, ""},
		"not on a claim that is being deleted": {[]int{3}, metav1.ObjectMeta{DeletionTimestamp: ptr.To(metav1.NewTime(clock()))}, 3, nil, "4"},
		"not on a claim of other files":        {[]int{3}, metav1.ObjectMeta{Name: "logs-basic-pd-3"}, 3, nil, "4"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scene(t, 4, func(s *observation.Snapshot) {
				s.Claims = map[string][]metav1.ObjectMeta{}
				for _, slot := range c.gone {
					lives(s, slot, false, false)
					claim := c.claim
					claim.Name = cmp.Or(claim.Name, fmt.Sprintf("data-basic-pd-%d", slot))
					s.Claims[fmt.Sprintf("basic-pd-%d", slot)] = []metav1.ObjectMeta{claim}
				}
				s.Instances = slices.DeleteFunc(s.Instances, func(i *v1alpha1.Instance) bool { return slices.Contains(c.gone, int(i.Spec.Slot)) })
			})
			p := mustPlan(t, stored(bootstrapped, replicasOf(c.wanted)), s)
			assert.Equal(t, did{created: c.created}, does(p), "%v: %s", p.Notes, p.Outcome.Message)
			assert.Equal(t, c.orphan, p.Orphan.ID)
		})
	}
	back := scene(t, 4, func(s *observation.Snapshot) { lives(s, 3, false, false) })
	assert.Equal(t, []string{"DeleteMember 4"}, does(mustPlan(t, stored(bootstrapped, replicasOf(3)), back)).calls, "it leaves when it is back")
}

// P5: a member that PD was told of and that has never run has no data on its claim. It
// has no name as yet, and would keep all others from joining.
func TestAMemberThatNeverRanIsRemovedEvenWithAClaim(t *testing.T) {
	g := stored(bootstrapped)
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: "data-basic-pd-3"}}
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	s := scene(t, 3)
	s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-3": {claim.ObjectMeta}}
	s.PD.Members = append(s.PD.Members, pd.Member{ID: "4", PeerURL: "http://basic-pd-3.basic-pd-peer.ns.svc:2380"})
	p := mustPlan(t, g, s)
	require.Equal(t, "4", p.Orphan.ID)
	answers := pdtest.New(s.PD)
	r := &steps{Env: operator.Env{
		Live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim).Build(), Recorder: events.NewFakeRecorder(9),
		PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return answers, nil }),
	}}
	r.removeOrphan(t.Context(), g, s, p)
	assert.Contains(t, answers.Calls(), "delete-member 4")
}

// hanging is a PD that takes orders and answers none before their deadline.
type hanging struct {
	*pdtest.PD
	left []time.Duration
}

func (h *hanging) note(ctx context.Context) error {
	left := time.Duration(0)
	if until, bounded := ctx.Deadline(); bounded {
		left = time.Until(until)
	}
	h.left = append(h.left, left)
	return context.DeadlineExceeded
}

func (h *hanging) DeleteMember(ctx context.Context, _ string) error            { return h.note(ctx) }
func (h *hanging) SetPeerURLs(ctx context.Context, _ string, _ []string) error { return h.note(ctx) }

// P10: a PD that takes an order and does not answer holds no worker for longer than any other call.
func TestP10AnOrderAboutMembersIsBounded(t *testing.T) {
	g, s := stored(bootstrapped), scene(t, 3)
	s.PD.Members = append(s.PD.Members, pd.Member{ID: "4", PeerURL: "http://basic-pd-3.basic-pd-peer.ns.svc:2380"})
	scheme, err := operator.NewScheme()
	require.NoError(t, err)
	answers := &hanging{PD: pdtest.New(s.PD)}
	r := &steps{Env: operator.Env{
		Live: fake.NewClientBuilder().WithScheme(scheme).Build(), Recorder: events.NewFakeRecorder(9),
		PD: polling.New(func(types.NamespacedName) (pd.Client, error) { return answers, nil }),
	}}
	assert.Equal(t, step.KindFail, r.removeOrphan(t.Context(), g, s, mustPlan(t, g, s)).Kind)
	assert.Equal(t, step.KindFail, r.setPeerURLs(t.Context(), g, []membership.PeerURLs{{ID: "1", Name: "basic-pd-0", URLs: []string{"http://a:2380"}}}).Kind)
	require.Len(t, answers.left, 2)
	for _, left := range answers.left {
		assert.Positive(t, left, "it is bounded by the reconcile alone")
		assert.LessOrEqual(t, left, 5*time.Second)
	}
}

// P1: until a member that joins has started, a majority needs the others, and one that
// crashes again and again may be down then. One more that makes the majority no larger
// may be what fixes PD.
func TestNoMemberJoinsBesideACrashLoopingOne(t *testing.T) {
	crashing := func(slots ...int) func(*observation.Snapshot) {
		return func(s *observation.Snapshot) {
			for _, slot := range slots {
				tells(s.Instances[slot], time.Minute, "Ready", "True", v1alpha1.ReasonReady, "PodReady", "True", v1alpha1.ReasonContainerCrashing, "Joined", "True", "MemberJoined", "Healthy", "True", "MemberHealthy")
			}
		}
	}
	for name, c := range map[string]struct {
		n       int
		crashes []int
		created []string
	}{
		"all are firm":         {3, nil, []string{"basic-pd-3"}},
		"one of three crashes": {3, []int{0}, nil},
		"one of five crashes":  {5, []int{0}, []string{"basic-pd-5"}},
		"two of five crash":    {5, []int{0, 1}, nil},
		"one of two crashes":   {2, []int{0}, []string{"basic-pd-2"}},
		"one of four crashes":  {4, []int{0}, []string{"basic-pd-4"}},
		"the only one":         {1, []int{0}, []string{"basic-pd-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, stored(bootstrapped, replicasOf(7)), scene(t, c.n, crashing(c.crashes...)))
			assert.Equal(t, c.created, does(p).created)
			if c.created == nil {
				assert.Contains(t, p.Outcome.Message, "delete instance basic-pd-")
			}
		})
	}
	// P5: who replaces it by hand is not kept waiting for it.
	s := scene(t, 3, crashing(0), func(s *observation.Snapshot) { deleted(s, 0, voting.ReplacementTimeout); s.PD.Leader = "basic-pd-1" })
	p := mustPlan(t, stored(bootstrapped), s)
	assert.Equal(t, "basic-pd-0", does(p).taken)
	holds(&s, 0)
	assert.Equal(t, []string{"DeleteMember 1"}, does(mustPlan(t, stored(bootstrapped), s)).calls)
}

// PD-13, PD-08.
func TestAReplacement(t *testing.T) {
	never := func(g *v1alpha1.PDGroup) { g.Spec.ReplaceAfter = &metav1.Duration{} }
	for name, c := range map[string]struct {
		n      int
		edit   func(*v1alpha1.PDGroup)
		change func(*observation.Snapshot)
		does   did
		reason string
		says   string
	}{
		"of a member that works begins with the new one": {3, nil, func(s *observation.Snapshot) { deleted(s, 1, 0) },
			did{created: []string{"basic-pd-3"}}, "", ""},
		"does not begin while PD does not answer": {3, nil, func(s *observation.Snapshot) { deleted(s, 1, 0); pdUnreachable(s) },
			did{}, v1alpha1.ReasonUnsafe, "connection refused"},
		"removes the old one when the new one works": {4, replacing(3), func(s *observation.Snapshot) { deleted(s, 1, 0); holds(s, 1) },
			did{calls: []string{"DeleteMember 2"}}, v1alpha1.ReasonDraining, ""},
		"keeps the old one while the new one does not": {4, replacing(3), func(s *observation.Snapshot) { deleted(s, 1, 0); lives(s, 3, false, true) },
			did{}, v1alpha1.ReasonGatesPending, "Instance basic-pd-3"},
		"gets on without the new one after a while": {4, replacing(3), func(s *observation.Snapshot) { deleted(s, 1, 10*time.Minute); lives(s, 3, false, false) },
			did{taken: "basic-pd-1"}, "", ""},
		"of the only member never gets on without": {1, nil, func(s *observation.Snapshot) {
			deleted(s, 0, time.Hour)
			s.Instances = append(s.Instances, joiner(s, 1))
		}, did{}, v1alpha1.ReasonGatesPending, ""},
		"of a member that is down begins with its removal": {3, nil, func(s *observation.Snapshot) { deleted(s, 1, 0); lives(s, 1, false, false) },
			did{calls: []string{"DeleteMember 2"}}, v1alpha1.ReasonDraining, ""},
		"of two that are down is one at a time": {5, nil, func(s *observation.Snapshot) {
			for _, slot := range []int{1, 3} {
				deleted(s, slot, 0)
				lives(s, slot, false, false)
			}
		}, did{calls: []string{"DeleteMember 2"}}, v1alpha1.ReasonDraining, "member basic-pd-1 is being removed"},
		"removes no member without a quorum": {3, nil, func(s *observation.Snapshot) {
			deleted(s, 1, time.Hour)
			lives(s, 1, false, false)
			lives(s, 2, false, false)
		}, did{}, v1alpha1.ReasonPodNotReady, "Instance basic-pd-2"},
		"lets one go that never joined": {3, nil, func(s *observation.Snapshot) {
			i := joiner(s, 3)
			i.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
			tells(i, 0, "Drained", "True", "MemberLeft")
			s.Instances = append(s.Instances, i)
		}, did{}, v1alpha1.ReasonDraining, "Instance basic-pd-3 is being deleted: its member has left"},
		"begins when a volume is lost": {3, nil, func(s *observation.Snapshot) { lives(s, 1, false, false); claimLost(s, 1) },
			did{deleted: []string{"basic-pd-1"}}, v1alpha1.ReasonReplacing, "the volume with its data is gone"},
		"begins beside a deleted one that works, whose replacement may not join sooner": {3, nil, func(s *observation.Snapshot) {
			deleted(s, 0, 10*time.Minute)
			lives(s, 2, false, false)
			claimLost(s, 2)
		}, did{deleted: []string{"basic-pd-2"}}, "", ""},
		"does not begin when two volumes are lost": {3, nil, func(s *observation.Snapshot) {
			for slot := range 2 {
				lives(s, slot, false, false)
				claimLost(s, slot)
			}
		}, did{}, "", ""},
		"begins when the node of a volume is gone": {3, nil, func(s *observation.Snapshot) {
			lives(s, 1, false, false)
			s.LostNodes = map[string]string{"basic-pd-1": "n7"}
		}, did{deleted: []string{"basic-pd-1"}}, v1alpha1.ReasonReplacing, "its volume is on node n7, which is gone"},
		"begins when a member was unhealthy for long": {3, nil, func(s *observation.Snapshot) { unhealthyFor(s, 1, time.Hour) },
			did{deleted: []string{"basic-pd-1"}}, v1alpha1.ReasonReplacing, "unhealthy for spec.replaceAfter (30m0s)"},
		"does not begin for the time in which PD had no quorum, as while it was suspended": {3, func(g *v1alpha1.PDGroup) {
			set := conditions.New(nil, 2, clock().Add(-5*time.Second))
			set.MarkTrue(v1alpha1.ConditionQuorumHealthy, v1alpha1.ReasonQuorumHealthy, "test")
			g.Status.Conditions = set.List()
		}, func(s *observation.Snapshot) { unhealthyFor(s, 1, time.Hour) }, did{}, "", ""},
		"nor before that is known": {3, func(g *v1alpha1.PDGroup) {
			set := conditions.New(nil, 2, clock().Add(-time.Hour))
			set.MarkFalse(v1alpha1.ConditionQuorumHealthy, v1alpha1.ReasonSuspended, "test")
			g.Status.Conditions = set.List()
		}, func(s *observation.Snapshot) { unhealthyFor(s, 1, time.Hour) }, did{}, "", ""},
		"does not begin sooner":     {3, nil, func(s *observation.Snapshot) { unhealthyFor(s, 1, 29*time.Minute) }, did{}, "", ""},
		"nor at all if it must not": {3, never, func(s *observation.Snapshot) { unhealthyFor(s, 1, time.Hour) }, did{}, "", ""},
		"nor when it may be the spec that keeps it from working": {3, nil, func(s *observation.Snapshot) {
			unhealthyFor(s, 1, time.Hour)
			for _, slot := range []int{0, 2} {
				s.Instances[slot].Status.Revision = "another"
			}
		}, did{}, "", ""},
		"waits for the one before to settle": {4, func(g *v1alpha1.PDGroup) {
			set := conditions.New(nil, 2, clock().Add(-time.Hour))
			set.MarkTrue(v1alpha1.ConditionBootstrapped, v1alpha1.ReasonBootstrapped, "test")
			g.Status.Conditions = set.List()
		}, func(s *observation.Snapshot) {
			lives(s, 1, false, false)
			claimLost(s, 1)
			s.Instances[3].CreationTimestamp = metav1.NewTime(clock().Add(-10 * time.Second))
		}, did{}, "", ""},
		"begins when a user has removed the member": {3, nil, func(s *observation.Snapshot) {
			s.PD.Members = s.PD.Members[:2]
			tells(s.Instances[2], time.Minute, "Ready", "False", "GatesPending", "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
		}, did{deleted: []string{"basic-pd-2"}}, v1alpha1.ReasonReplacing, "PD has removed its member"},
		"begins when a volume is of a member that PD has removed": {3, nil, func(s *observation.Snapshot) { leftover(s, 3*time.Minute, v1alpha1.ReasonContainerCrashing) },
			did{deleted: []string{"basic-pd-2"}}, v1alpha1.ReasonReplacing, "its volume belongs to a member that PD no longer knows"},
		"does not begin before it has had the time to join": {3, nil, func(s *observation.Snapshot) { leftover(s, time.Minute, v1alpha1.ReasonContainerCrashing) }, did{}, "", ""},
		"does not begin while it has no reason not to join": {3, nil, func(s *observation.Snapshot) { leftover(s, 3*time.Minute, v1alpha1.ReasonPodPending) }, did{}, "", ""},
		"does not begin when its pod is ready, although it has crashed": {3, nil, func(s *observation.Snapshot) {
			leftover(s, 3*time.Minute, v1alpha1.ReasonContainerCrashing)
			meta.FindStatusCondition(s.Instances[2].Status.Conditions, v1alpha1.ConditionPodReady).Status = metav1.ConditionTrue
		}, did{}, "", ""},
		"does not begin when another volume is older, and the data is new": {3, nil, func(s *observation.Snapshot) {
			leftover(s, 3*time.Minute, v1alpha1.ReasonContainerCrashing)
			name := s.Instances[2].Name
			s.Claims[name] = []metav1.ObjectMeta{
				{Name: "log-" + name, CreationTimestamp: metav1.NewTime(clock().Add(-time.Hour))},
				{Name: "data-" + name, CreationTimestamp: metav1.NewTime(clock())},
			}
		}, did{}, "", ""},
		"goes on beside one that has left and does not stop": {3, nil, func(s *observation.Snapshot) {
			deleted(s, 2, time.Hour)
			s.Instances[2].Finalizers = []string{v1alpha1.FinalizerInstance}
			tells(s.Instances[2], time.Minute, "Ready", "False", "PodTerminating", "Drained", "True", "MemberLeft", "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
			s.PD.Members = s.PD.Members[:2]
		}, did{created: []string{"basic-pd-3"}}, "", ""},
		"keeps its slot for a while": {3, nil, func(s *observation.Snapshot) {
			deleted(s, 2, 30*time.Second)
			s.Instances[2].Finalizers = []string{v1alpha1.FinalizerInstance}
			tells(s.Instances[2], time.Minute, "Drained", "True", "MemberLeft", "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
			s.PD.Members = s.PD.Members[:2]
		}, did{}, v1alpha1.ReasonDeleting, "its pod has not stopped yet"},
		"of the next one does not wait for the pod of one that has left": {5, nil, func(s *observation.Snapshot) {
			deleted(s, 4, time.Hour)
			s.Instances[4].Finalizers = []string{v1alpha1.FinalizerInstance}
			tells(s.Instances[4], time.Minute, "Drained", "True", "MemberLeft")
			s.PD.Members = s.PD.Members[:4]
			s.Instances = append(s.Instances, s.Instances[0].DeepCopy())
			s.Instances[5].Name, s.Instances[5].Spec.Slot = "basic-pd-5", 5
			s.PD.Members = append(s.PD.Members, pd.Member{Name: "basic-pd-5", ID: "6", Healthy: true, ClientURL: "http://basic-pd-5"})
			lives(s, 1, false, false)
			claimLost(s, 1)
		}, did{deleted: []string{"basic-pd-1"}}, "", "its member has left, and its pod has not stopped yet"},
		"of the next one waits a while for the one before": {5, nil, func(s *observation.Snapshot) {
			deleted(s, 4, 30*time.Second)
			tells(s.Instances[4], time.Minute, "Drained", "True", "MemberLeft")
			s.PD.Members = s.PD.Members[:4]
			lives(s, 1, false, false)
			claimLost(s, 1)
		}, did{}, "", ""},
		"of one that never started although it was added": {3, nil, func(s *observation.Snapshot) {
			s.PD.Members[2] = pd.Member{ID: "3", PeerURL: "http://basic-pd-2.basic-pd-peer.ns.svc:2380"}
			tells(s.Instances[2], time.Minute, "Ready", "False", "ClaimLost", "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
			claimLost(s, 2)
		}, did{deleted: []string{"basic-pd-2"}}, v1alpha1.ReasonReplacing, "the volume with its data is gone"},
		"of one that ended after it was added, and that PD then never starts again": {3, never, func(s *observation.Snapshot) { addedOnly(s, 3*time.Minute, v1alpha1.ReasonContainerCrashing) },
			did{deleted: []string{"basic-pd-2"}}, v1alpha1.ReasonReplacing, "PD has added its member, which has not started since"},
		"does not begin for one that was added and has the time to start": {3, never, func(s *observation.Snapshot) { addedOnly(s, time.Minute, v1alpha1.ReasonContainerCrashing) }, did{}, "", ""},
		"nor for one that was added and starts":                           {3, never, func(s *observation.Snapshot) { addedOnly(s, 3*time.Minute, v1alpha1.ReasonPodNotReady) }, did{}, "", ""},
		"nor for one that was added and that the spec may keep from starting": {3, never, func(s *observation.Snapshot) {
			addedOnly(s, 3*time.Minute, v1alpha1.ReasonContainerCrashing)
			for _, slot := range []int{0, 1} {
				s.Instances[slot].Status.Revision = "another"
			}
		}, did{}, "", ""},
		"does not begin for an initial member that starts late": {3, nil, func(s *observation.Snapshot) {
			s.PD.Members[2].ClientURL, s.PD.Members[2].Healthy = "", false
			tells(s.Instances[2], 5*time.Minute, "Ready", "False", "PodPending", "PodReady", "False", "PodPending", "Joined", "True", "MemberJoined", "Healthy", "False", "MemberUnhealthy")
			s.Instances[2].CreationTimestamp = metav1.NewTime(clock().Add(-6 * time.Minute))
			s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-2": {{CreationTimestamp: metav1.NewTime(clock().Add(-6 * time.Minute))}}}
		}, did{}, "", ""},
		"does not begin for an initial member that has just started": {3, func(g *v1alpha1.PDGroup) {
			g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionBootstrapped, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock().Add(-5 * time.Minute))}}
		}, func(s *observation.Snapshot) {
			s.PD.Members[2].Healthy = false // PD lists its URLs a moment before it answers there
			tells(s.Instances[2], 5*time.Minute, "Ready", "False", "PodNotReady", "PodReady", "False", "PodNotReady", "Joined", "True", "MemberJoined", "Healthy", "False", "MemberUnhealthy")
			s.Instances[2].CreationTimestamp = metav1.NewTime(clock().Add(-6 * time.Minute))
			s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-2": {{CreationTimestamp: metav1.NewTime(clock().Add(-6 * time.Minute))}}}
		}, did{}, "", ""},
		"does not begin on one answer": {3, nil, func(s *observation.Snapshot) {
			s.PD.Members = s.PD.Members[:2]
			tells(s.Instances[2], time.Second, "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
		}, did{}, "", ""},
		"begins when PD's member is of another volume": {3, nil, func(s *observation.Snapshot) {
			lives(s, 1, false, false)
			tells(s.Instances[1], time.Minute, "Joined", "True", "MemberJoined", "Healthy", "False", "MemberUnhealthy")
			s.Instances[1].CreationTimestamp = metav1.NewTime(clock().Add(-2 * time.Minute))
			s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-1": {{CreationTimestamp: metav1.NewTime(clock().Add(-time.Minute))}}}
		}, did{deleted: []string{"basic-pd-1"}}, v1alpha1.ReasonReplacing, "its volume is newer than its member in PD"},
		"does not begin when the volume is the member's own": {3, nil, func(s *observation.Snapshot) {
			lives(s, 1, false, false)
			tells(s.Instances[1], time.Minute, "Joined", "True", "MemberJoined", "Healthy", "False", "MemberUnhealthy")
			s.Instances[1].CreationTimestamp = metav1.NewTime(clock().Add(-2 * time.Minute))
			s.Claims = map[string][]metav1.ObjectMeta{"basic-pd-1": {{CreationTimestamp: metav1.NewTime(clock().Add(-time.Hour))}}}
		}, did{}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(bootstrapped, replicasOf(int32(c.n)))
			if c.edit != nil {
				c.edit(g)
			}
			p := mustPlan(t, g, scene(t, c.n, c.change))
			assert.Equal(t, c.does, does(p), "%v: %s", p.Notes, p.Outcome.Message)
			if c.reason != "" {
				assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			}
			assert.Contains(t, p.Outcome.Message, c.says)
		})
	}
}

// leftover has the last member be one that was recreated, by force, on a volume of
// which PD has let the member go.
func leftover(s *observation.Snapshot, ago time.Duration, reason string) {
	i := s.Instances[2]
	s.PD.Members, i.Status.Member, i.CreationTimestamp = s.PD.Members[:2], nil, metav1.NewTime(clock().Add(-ago))
	tells(i, ago, "Ready", "False", reason, "PodReady", "False", reason, "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
	s.Claims = map[string][]metav1.ObjectMeta{i.Name: {{Name: "data-" + i.Name, CreationTimestamp: metav1.NewTime(clock().Add(-time.Hour))}}}
}

// addedOnly has the last member be one that was added to PD and ended before it had started.
func addedOnly(s *observation.Snapshot, ago time.Duration, reason string) {
	i := s.Instances[2]
	s.PD.Members[2], i.Status.Member = pd.Member{ID: "3", PeerURL: "http://basic-pd-2.basic-pd-peer.ns.svc:2380"}, nil
	tells(i, ago, "Ready", "False", reason, "PodReady", "False", reason, "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
}

// unhealthyFor makes a member that PD has called unhealthy for a while.
func unhealthyFor(s *observation.Snapshot, slot int, ago time.Duration) {
	s.PD.Members[slot].Healthy = false
	tells(s.Instances[slot], ago, "Ready", "False", "PodNotReady", "PodReady", "False", "PodNotReady", "Joined", "True", "MemberJoined", "Healthy", "False", "MemberUnhealthy")
}

func replacing(n int32) func(*v1alpha1.PDGroup) {
	return func(g *v1alpha1.PDGroup) { g.Spec.Replicas = ptr.To(n) }
}

// joiner is an Instance whose pod runs and that PD does not list yet.
func joiner(s *observation.Snapshot, slot int32) *v1alpha1.Instance {
	i := s.Instances[0].DeepCopy()
	i.Name, i.Spec.Slot, i.DeletionTimestamp, i.Status.Member = fmt.Sprintf("basic-pd-%d", slot), slot, nil, nil
	i.UID, i.Status.PodUID = "uid-of-joiner", "pod-of-joiner"
	tells(i, 0, "Ready", "False", "GatesPending", "PodReady", "True", "PodReady", "Joined", "False", "MemberNotListed", "Healthy", "False", "MemberNotListed")
	return i
}

func claimLost(s *observation.Snapshot, slot int) {
	set := conditions.New(nil, s.Instances[slot].Generation, clock())
	set.MarkFalse(v1alpha1.ConditionVolumesReady, v1alpha1.ReasonClaimLost, "test")
	s.Instances[slot].Status.Conditions = append(s.Instances[slot].Status.Conditions, set.List()...)
}

// P2: until the cluster's ID is known no initial member may be forgotten.
func TestPD03InitialMembersAreNotForgotten(t *testing.T) {
	initial := func(slots ...int) []v1alpha1.PDInitialMember {
		var out []v1alpha1.PDInitialMember
		for _, slot := range slots {
			out = append(out, v1alpha1.PDInitialMember{Name: fmt.Sprintf("basic-pd-%d", slot), UID: types.UID(fmt.Sprintf("pod-basic-pd-%d", slot))})
		}
		return out
	}
	fresh := func(s *observation.Snapshot, slot int) {
		s.Instances[slot].Status = v1alpha1.InstanceStatus{}
	}
	for name, c := range map[string]struct {
		initial  []v1alpha1.PDInitialMember
		change   func(*observation.Snapshot)
		does     did
		released []string
		records  int
		kind     step.Kind
		reason   string
	}{
		"one that was created is recorded": {nil, func(*observation.Snapshot) {}, did{}, nil, 3, "", ""},
		"one that is deleted before it started is taken off the record": {initial(0, 1, 2), func(s *observation.Snapshot) { fresh(s, 1); deleted(s, 1, 0) },
			did{}, nil, 2, step.KindWait, v1alpha1.ReasonBootstrapping},
		"and released then": {initial(0, 2), func(s *observation.Snapshot) { fresh(s, 1); deleted(s, 1, 0) },
			did{}, []string{"basic-pd-1"}, 2, step.KindWait, ""},
		"and recreated in its slot": {initial(0, 2), func(s *observation.Snapshot) { s.Instances = append(s.Instances[:1], s.Instances[2]) },
			did{created: []string{"basic-pd-1"}}, nil, 2, step.KindWait, ""},
		"one that is deleted after it started stays": {initial(0, 1, 2), func(s *observation.Snapshot) { deleted(s, 1, 0) },
			did{}, nil, 3, step.KindWait, v1alpha1.ReasonUnsafe},
		"one that is gone is not started again": {initial(0, 1, 2), func(s *observation.Snapshot) { s.Instances = s.Instances[:2] },
			did{}, nil, 3, step.KindWait, v1alpha1.ReasonInitialMembersLost},
		"two that are gone need a user": {initial(0, 1, 2), func(s *observation.Snapshot) { s.Instances = s.Instances[:1] },
			did{}, nil, 3, step.KindStall, v1alpha1.ReasonInitialMembersLost},
		"all that are gone need a user": {initial(0, 1, 2), func(s *observation.Snapshot) { s.Instances = nil },
			did{}, nil, 3, step.KindStall, v1alpha1.ReasonInitialMembersLost},
		"the record is closed when the ID is known": {initial(0, 1, 2), func(s *observation.Snapshot) {
			s.PD = pd.View{ClusterID: "73", Leader: "basic-pd-0", Members: []pd.Member{{Name: "basic-pd-0", ID: "1", Healthy: true, ClientURL: "http://basic-pd-0"}}}
		}, did{}, nil, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored()
			g.Status.InitialMembers = c.initial
			s := scene(t, 3, func(s *observation.Snapshot) {
				s.PD = pd.View{Err: errors.New("connection refused"), Members: make([]pd.Member, 3)}
				c.change(s)
				s.PD.Members = s.PD.Members[:min(len(s.PD.Members), 1)]
				if s.PD.Err != nil {
					s.PD.Members = nil
				}
			})
			p := mustPlan(t, g, s)
			assert.Equal(t, c.does, does(p), "%v: %s", p.Notes, p.Outcome.Message)
			var released []string
			for _, change := range p.Instances {
				if change.Live != nil && change.Live.DeletionTimestamp != nil && !member.HasMemberFinalizer(change.Desired) {
					released = append(released, change.Live.Name)
				}
			}
			assert.Equal(t, c.released, released)
			assert.Empty(t, p.Drained, "what comes back keeps its claims")
			if c.kind != "" {
				assert.Equal(t, c.kind, p.Outcome.Kind, p.Outcome.Message)
			}
			if c.reason != "" {
				assert.Equal(t, c.reason, p.Outcome.Reason, p.Outcome.Message)
			}
			status, _, _ := reportStatus(g, s, p, step.Done(), clock())
			assert.Len(t, status.InitialMembers, c.records)
		})
	}
}

// The Lease of a member that has left is free, however long its pod takes to stop.
func TestTheLeaseOfAMemberThatHasLeftIsGivenBack(t *testing.T) {
	for name, c := range map[string]struct {
		drained string
		given   bool
	}{"whose member has left": {"True", true}, "that is released for another reason": {"False", false}} {
		t.Run(name, func(t *testing.T) {
			s := scene(t, 5, func(s *observation.Snapshot) {
				holds(s, 4)
				deleted(s, 4, time.Minute)
				s.Instances[4].Finalizers = []string{v1alpha1.FinalizerInstance}
				s.PD.Members = s.PD.Members[:4]
				tells(s.Instances[4], time.Minute, "Drained", c.drained, "test", "Ready", "False", "PodTerminating")
			})
			assert.Equal(t, c.given, does(mustPlan(t, stored(bootstrapped, replicasOf(4)), s)).given)
		})
	}
}

// PD-05, PD-06: no member joins beside one that is being removed.
func TestNoMemberJoinsWhileAnotherOneLeaves(t *testing.T) {
	s := scene(t, 5, func(s *observation.Snapshot) {
		lives(s, 1, false, false)
		meta.FindStatusCondition(s.Instances[1].Status.Conditions, v1alpha1.ConditionJoined).LastTransitionTime = metav1.NewTime(clock().Add(-time.Hour))
		deleted(s, 1, 0)
	})
	p := mustPlan(t, stored(bootstrapped, replicasOf(6)), s)
	assert.Equal(t, did{calls: []string{"DeleteMember 2"}}, does(p))
}
