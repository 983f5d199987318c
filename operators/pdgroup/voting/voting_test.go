package voting

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
)

func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

func name(slot int) string { return fmt.Sprintf("basic-pd-%d", slot) }

// condition sets a condition of an Instance, since a while.
func condition(i *v1alpha1.Instance, kind string, is bool, reason string, ago time.Duration) {
	status := metav1.ConditionFalse
	if is {
		status = metav1.ConditionTrue
	}
	i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(clock().Add(-ago))})
}

// running is the Instance of a member that has run for an hour.
func running(slot int) *v1alpha1.Instance {
	i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{Name: name(slot), Labels: map[string]string{
		v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: (&v1alpha1.PDGroup{}).Component(),
	}}}
	i.Spec.Slot, i.Status.Revision = int32(slot), "r1" //nolint:gosec // a few
	i.Status.Member = &v1alpha1.MemberStatus{ID: fmt.Sprint(slot + 1)}
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionPodReady, v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy} {
		condition(i, kind, true, "test", time.Hour)
	}
	return i
}

// group has a cluster, and wants three members.
func group() *v1alpha1.PDGroup {
	g := &v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Namespace: "db", UID: "group"}}
	g.Spec.Replicas, g.Status.ClusterID = ptr.To[int32](3), "73"
	return g
}

// seen are n members, of which the first leads, and those that PD calls unhealthy.
func seen(n int, unhealthy ...int) observation.Snapshot {
	s := observation.Snapshot{Now: clock(), PD: pd.View{ClusterID: "73", Leader: name(0)}}
	for slot := range n {
		s.Instances = append(s.Instances, running(slot))
		s.PD.Members = append(s.PD.Members, pd.Member{Name: name(slot), ID: fmt.Sprint(slot + 1), Healthy: true})
	}
	for _, slot := range unhealthy {
		s.PD.Members[slot].Healthy = false
	}
	return s
}

// joining adds an Instance that PD does not list yet.
func joining(s observation.Snapshot) observation.Snapshot {
	i := running(len(s.Instances))
	i.Status.Member, i.Status.Conditions = nil, nil
	s.Instances = append(s.Instances, i)
	return s
}

// P1, PD-08: of those that vote afterwards a majority is healthy without the member.
func TestPD08AMajorityIsHealthyWithoutTheMember(t *testing.T) {
	unreachable := observation.Snapshot{Now: clock(), Instances: seen(3).Instances, PD: pd.View{Err: errors.New("connection refused")}}
	stranger, cutOff, overdue := seen(3), seen(3), seen(3)
	overdue.Instances[2].Status.Conditions = nil
	condition(overdue.Instances[2], v1alpha1.ConditionPodReady, false, v1alpha1.ReasonPodTerminating, 4*time.Minute)
	cutOff.Instances[2].Status.Conditions = nil
	condition(cutOff.Instances[2], v1alpha1.ConditionPodReady, false, v1alpha1.ReasonNodeUnreachable, time.Minute)
	stranger.PD.ClusterID = "74"
	for what, c := range map[string]struct {
		seen observation.Snapshot
		verb member.Verb
		slot int
		why  string
	}{
		"one of three restarts":                          {seen(3), member.Restart, 2, ""},
		"one of two does not":                            {seen(2), member.Restart, 1, "2 members need both for a majority, and spec.replicas is 3: another one has to join first: kubectl -n db get instances -l groups.tidb.dev/group=basic-pd"},
		"the only one does, for none could lead":         {seen(1), member.Restart, 0, ""},
		"the only one does not beside one that joins":    {joining(seen(1)), member.Restart, 0, "another member is joining"},
		"a healthy one does not beside one that is not":  {seen(3, 1), member.Restart, 2, "1 of 3 members would be healthy without it, and 2 are a majority"},
		"the one that is not does":                       {seen(3, 1), member.Restart, 1, ""},
		"a healthy one of five does beside one":          {seen(5, 1), member.Restart, 2, ""},
		"and not beside two":                             {seen(5, 1, 3), member.Restart, 2, "2 of 5 members would be healthy without it, and 3 are a majority"},
		"one of three waits for one that joins":          {joining(seen(3)), member.Restart, 2, "without it, 2 of 4 members would be healthy, counting the one that is joining"},
		"one of five does not":                           {joining(seen(5)), member.Restart, 2, ""},
		"one of three leaves":                            {seen(3), member.Remove, 2, ""},
		"one of two leaves":                              {seen(2), member.Remove, 1, ""},
		"the last one never":                             {seen(1), member.Remove, 0, "it is PD's only member"},
		"the unhealthy one leaves first":                 {seen(4, 1), member.Remove, 1, ""},
		"no member restarts while PD does not answer":    {unreachable, member.Restart, 2, "connection refused"},
		"nor by what another cluster's PD says":          {stranger, member.Restart, 2, "another cluster's PD answers"},
		"nor one that would not stop and keep the Lease": {cutOff, member.Restart, 2, "its node does not answer"},
		"nor one whose kubelet has ended":                {overdue, member.Restart, 2, "its pod is being stopped already"},
		"which may leave":                                {cutOff, member.Remove, 2, ""},
		"nor without a quorum":                           {seen(3, 1, 2), member.Restart, 1, "PD has no quorum"},
	} {
		t.Run(what, func(t *testing.T) {
			may := New(group(), c.seen).Allows(component.Disruption{Instance: c.seen.Instances[c.slot], Verb: c.verb})
			assert.Equal(t, c.why == "", may.IsAllowed(), may.Reason())
			assert.Contains(t, may.Reason(), c.why)
		})
	}
}

// Who has asked for more members already is not told to scale.
func TestPD08OneOfTwoMembersWaitsForAThird(t *testing.T) {
	g, s := group(), seen(2)
	g.Spec.Replicas = ptr.To[int32](2)
	restart := component.Disruption{Instance: s.Instances[1], Verb: member.Restart}
	assert.Equal(t, "2 members need both for a majority: scale to 3 meanwhile: kubectl -n db scale pdgroup basic-pd --replicas=3", New(g, s).Allows(restart).Reason())
	g.Spec.Replicas = ptr.To[int32](5)
	s = joining(s)
	assert.NotContains(t, New(g, s).Allows(restart).Reason(), "scale", "that would take members away")
}

// PD-11: what counts for a successor, the most important first. Who has all but one of these goes
// before who has that one and none of those behind it.
func TestPD11TheBestSuccessorOfTheLeaderIsChosen(t *testing.T) {
	lacks := []struct {
		what string
		lose func(*v1alpha1.Instance)
	}{
		{"its pod is ready", func(i *v1alpha1.Instance) { i.Status.Conditions[1].Reason = v1alpha1.ReasonContainerCrashing }},
		{"it stays", func(i *v1alpha1.Instance) { i.Spec.Retire = true }},
		{"no user moves its leader away", func(i *v1alpha1.Instance) { i.Annotations = map[string]string{v1alpha1.AnnotationEvictLeaders: ""} }},
		{"it is Ready", func(i *v1alpha1.Instance) { i.Status.Conditions[0].Status = metav1.ConditionFalse }},
		{"it has the wanted revision", func(i *v1alpha1.Instance) { i.Status.Revision = "r0" }},
		{"it has been healthy for longest", func(i *v1alpha1.Instance) { i.Status.Conditions[3].LastTransitionTime = metav1.NewTime(clock()) }},
	}
	next := func(s observation.Snapshot) string {
		return New(group(), s).Successor(component.Disruption{Instance: s.Instances[0], Verb: member.Restart, Revision: "r1"}, FitsAny)
	}
	for at, lack := range lacks {
		s := seen(3)
		lack.lose(s.Instances[1])
		for _, less := range lacks[at+1:] {
			less.lose(s.Instances[2])
		}
		assert.Equal(t, name(2), next(s), lack.what)
	}
	assert.Equal(t, name(1), next(seen(3)), "the name decides between equals")
	assert.Equal(t, name(2), next(seen(3, 1)), "an unhealthy one never leads")
	assert.Empty(t, next(seen(3, 1, 2)))
	assert.Empty(t, next(seen(1)), "nor does the one that stops")
	unnamed := seen(2)
	unnamed.PD.Members[1].Name = ""
	assert.Empty(t, next(unnamed), "nor one that has never started")
}

// PD-20, PD-06: those that add nothing are first. A leader restarts last, and leaves when its turn
// comes: names stay what people expect.
func TestPD20TheOrderInWhichMembersRestartAndLeave(t *testing.T) {
	unlisted := seen(3)
	unlisted.PD.Members = unlisted.PD.Members[:2]
	for what, c := range map[string]struct {
		seen observation.Snapshot
		verb member.Verb
		slot int
		rank int
	}{
		"one that PD does not list": {unlisted, member.Restart, 2, 0},
		"an unhealthy one":          {seen(3, 1), member.Restart, 1, 0},
		"an unhealthy leader":       {seen(3, 0), member.Restart, 0, 0},
		"a follower":                {seen(3), member.Restart, 1, 1},
		"the leader":                {seen(3), member.Restart, 0, 2},
		"a leader that leaves":      {seen(3), member.Remove, 0, 1},
	} {
		assert.Equal(t, c.rank, New(group(), c.seen).Rank(component.Disruption{Instance: c.seen.Instances[c.slot], Verb: c.verb}), what)
	}
}

// Nothing tells that a time is over: the next one that counts is when to look again.
func TestTheNextDeadlineIsWhenToCheckAgain(t *testing.T) {
	unhealthy := func(ago time.Duration) observation.Snapshot {
		s := seen(3, 1)
		i := s.Instances[1]
		i.Status.Conditions = nil
		condition(i, v1alpha1.ConditionHealthy, false, v1alpha1.ReasonMemberUnhealthy, ago)
		return s
	}
	deleted := func(ago time.Duration) observation.Snapshot {
		s := seen(3)
		s.Instances[2].DeletionTimestamp = ptr.To(metav1.NewTime(clock().Add(-ago)))
		return s
	}
	leaderless := func(g *v1alpha1.PDGroup) {
		g.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionQuorumHealthy, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock().Add(-10 * time.Second))}}
	}
	never := func(g *v1alpha1.PDGroup) { g.Spec.ReplaceAfter = &metav1.Duration{} }
	as := func(*v1alpha1.PDGroup) {}
	for what, c := range map[string]struct {
		edit func(*v1alpha1.PDGroup)
		seen observation.Snapshot
		due  time.Duration
	}{
		"never, while all is well":                       {as, seen(3), 0},
		"when an unhealthy one has a new volume, or not": {as, unhealthy(10 * time.Second), 20 * time.Second},
		"when an unhealthy one counts as dead":           {as, unhealthy(20 * time.Minute), 10 * time.Minute},
		"never, if that must not be":                     {never, unhealthy(20 * time.Minute), 0},
		"when the next one may be given up":              {as, deleted(40 * time.Second), 20 * time.Second},
		"when a replacement has had its time":            {as, deleted(3 * time.Minute), 2 * time.Minute},
		"when no leader is no election any more":         {leaderless, seen(3), 20 * time.Second},
	} {
		t.Run(what, func(t *testing.T) {
			g := group()
			c.edit(g)
			assert.Equal(t, c.due, New(g, c.seen).RecheckDelay())
		})
	}
}

// loading has a member say that it has not loaded the regions, since its pod was ready a while ago.
func loading(s observation.Snapshot, slot int, ago time.Duration) observation.Snapshot {
	i := s.Instances[slot]
	i.Status.PodUID, i.Status.PodIP = "pod", "10.0.0.1"
	i.Status.Conditions[1].LastTransitionTime = metav1.NewTime(clock().Add(-ago))
	since, _ := member.ReadySince(i)
	s.StatusPorts = map[string]member.StatusPortAnswer{i.Name: {Pod: "pod", Since: since, State: statusport.Loading}}
	s.PD.Bootstrapped = true
	return s
}

// PD-10: a member that has not loaded the regions could lead, and no client would find one. Others wait for
// it, and it does not lead if another can.
func TestPD10TheLeaseWaitsForAMemberThatLoadsTheRegions(t *testing.T) {
	recovers := func(s observation.Snapshot) component.Preparation {
		return New(group(), s).Recover(s.Instances[1], lease.State{})
	}
	assert.True(t, recovers(seen(3)).Ready, "one that does not tell is not waited for")
	p := recovers(loading(seen(3), 1, time.Minute))
	assert.False(t, p.Ready)
	assert.Equal(t, v1alpha1.ReasonRecovering, p.Wait.Reason)
	assert.Equal(t, statusports.AskAgain, p.Wait.After)
	assert.Contains(t, p.Wait.Message, "member basic-pd-1 is loading the regions")
	for what, s := range map[string]observation.Snapshot{
		"another one loads":            loading(seen(3), 2, time.Minute),
		"it says so for too long":      loading(seen(3), 1, loadTimeout),
		"no store has registered":      loading(seen(3), 1, time.Minute),
		"it was asked before its pod":  loading(seen(3), 1, time.Minute),
		"it could not be asked":        loading(seen(3), 1, time.Minute),
		"it has loaded the regions":    loading(seen(3), 1, time.Minute),
		"its version does not tell it": loading(seen(3), 1, time.Minute),
	} {
		said := s.StatusPorts[name(1)]
		switch what {
		case "no store has registered":
			s.PD.Bootstrapped = false
		case "it was asked before its pod":
			said.Pod = "before"
		case "it could not be asked":
			said.State, said.Err = "", errors.New("connection refused")
		case "it has loaded the regions":
			said.State = statusport.Loaded
		case "its version does not tell it":
			said.State = ""
		}
		s.StatusPorts[name(1)] = said
		assert.True(t, recovers(s).Ready, what)
	}
	next := func(s observation.Snapshot) string {
		return New(group(), s).Successor(component.Disruption{Instance: s.Instances[0], Verb: member.Restart, Revision: "r1"}, FitsAny)
	}
	assert.Equal(t, name(2), next(loading(seen(3), 1, time.Minute)))
	assert.Equal(t, name(1), next(loading(seen(3, 2), 1, time.Minute)), "it does if no other can")
}
