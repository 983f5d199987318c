package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/voting"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// condition of a member in the enumeration.
type health int

const (
	works  health = iota
	sick          // its pod runs, PD calls it unhealthy
	down          // its pod does not run
	absent        // PD does not list it: it has not joined yet
	dead          // it does not run since some time after it had joined
	let           // PD has let it go
	shaky         // it works for now, and has crashed several times
)

// stay is what a user, or an earlier plan, wants of a member.
type stay int

const (
	stays   stay = iota
	retired      // by a scale-in that is under way
	gone         // by kubectl delete instance
)

// one is one member in the enumeration; equal ones are interchangeable.
type one struct {
	health  health
	stay    stay
	updated bool
}

// state is a state of a PDGroup: up to five members, who leads, who holds the
// Lease, whether the spec was edited, whether one has been added that has not
// started, and what is asked for.
type state struct {
	members       []one
	leader, lease int // index, -1 for none
	edited        bool
	starting      bool
	replicas      int
}

func (s state) String() string {
	var parts []string
	for n, m := range s.members {
		text := []string{"works", "sick", "down", "absent", "dead", "removed", "shaky"}[m.health] + []string{"", " retired", " deleted"}[m.stay]
		if m.updated {
			text += " updated"
		}
		if s.leader == n {
			text += " leader"
		}
		if s.lease == n {
			text += " lease"
		}
		parts = append(parts, text)
	}
	return fmt.Sprintf("[%s] edited %v starting %v replicas %d", strings.Join(parts, ", "), s.edited, s.starting, s.replicas)
}

// space is a part of all states: members of some kinds, of which some leave.
type space struct {
	n       int
	healths []health
	stays   []stay
	leaving int
}

// spaces are what is enumerated. Of many members fewer kinds are told apart.
func spaces() []space {
	all, ways := []health{works, sick, down, absent}, []stay{stays, retired, gone}
	few := []health{works, down, absent}
	return []space{
		{1, all, ways, 1}, {2, all, ways, 2}, {3, all, ways, 1}, {3, []health{works, down}, ways, 3},
		{4, few, []stay{stays, gone}, 1}, {5, few, []stay{stays, gone}, 1},
		{3, []health{works, dead, let}, ways, 2}, {5, []health{works, dead, let}, []stay{stays, gone}, 1},
		{3, []health{works, shaky, down}, []stay{stays, gone}, 1}, {4, []health{works, shaky}, []stay{stays, gone}, 1},
	}
}

func (s space) String() string {
	return fmt.Sprintf("%d members, %d states of health, at most %d leaving in %d ways", s.n, len(s.healths), s.leaving, len(s.stays)-1)
}

// multisets calls do with every multiset of members.
func (s space) multisets(do func([]one)) {
	var all []one
	for _, h := range s.healths {
		for _, w := range s.stays {
			all = append(all, one{h, w, false}, one{h, w, true})
		}
	}
	var rec func(from, left, leaving int, chosen []one)
	rec = func(from, left, leaving int, chosen []one) {
		if left == 0 {
			do(slices.Clone(chosen))
			return
		}
		for k := from; k < len(all); k++ {
			rest := leaving
			if all[k].stay != stays {
				rest--
			}
			if rest >= 0 {
				rec(k, left-1, rest, append(chosen, all[k]))
			}
		}
	}
	rec(0, s.n, s.leaving, nil)
}

// states calls do with every state.
func (s space) states(do func(state)) {
	s.multisets(func(members []one) {
		// Of members that are equal, the first one stands for all.
		var distinct []int
		for at, m := range members {
			if slices.Index(members, m) == at {
				distinct = append(distinct, at)
			}
		}
		updated := slices.ContainsFunc(members, func(m one) bool { return m.updated })
		for _, leader := range append([]int{-1}, distinct...) {
			if leader >= 0 && members[leader].health != works && members[leader].health != shaky {
				continue // PD would not call it the leader for long, and View has no leader then
			}
			for _, holder := range append([]int{-1}, distinct...) {
				for _, edited := range []bool{false, true} {
					if (updated || s.n > 4) && !edited {
						continue // no member has a revision that was not asked for
					}
					do(state{members, leader, holder, edited, true, s.n})
					for replicas := lowest(s.n); replicas <= s.n+1; replicas++ {
						do(state{members, leader, holder, edited, false, replicas})
					}
				}
			}
		}
	})
}

// lowest is the lowest number of replicas that n members are scaled to.
func lowest(n int) int {
	if n > 3 {
		return n - 1
	}
	return max(n-2, 0)
}

// tiny is a template that is quickly compared; the edit changes it.
func tiny(edited bool) corev1.PodTemplateSpec {
	image := "pd:one"
	if edited {
		image = "pd:two"
	}
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "pd", Image: image}}}}
}

// stateSpace makes snapshots of states.
type stateSpace struct {
	g        *v1alpha1.PDGroup
	revision map[bool]string // by edited
	raw      map[bool][]byte
	record   map[bool]observation.Snapshot
	said     map[health][]metav1.Condition
}

func newStateSpace(t *testing.T) *stateSpace {
	t.Helper()
	b := &stateSpace{g: stored(bootstrapped), revision: map[bool]string{}, raw: map[bool][]byte{}, record: map[bool]observation.Snapshot{}, said: map[health][]metav1.Condition{}}
	for _, edited := range []bool{false, true} {
		p, err := planWith(b.g, observation.Snapshot{PD: pd.View{Err: errNoMembers}}, b.rendering(b.g, observation.Snapshot{}, edited))
		require.NoError(t, err)
		b.revision[edited] = p.Target.Hash
		b.raw[edited], err = json.Marshal(tiny(edited))
		require.NoError(t, err)
		s := observation.Snapshot{ConfigMaps: map[string]bool{}}
		s.Revisions = append(s.Revisions, *p.Revision)
		if p.ConfigMap != nil {
			s.ConfigMaps[p.ConfigMap.Name] = true
		}
		b.record[edited] = s
	}
	for h, words := range map[health][4]metav1.ConditionStatus{
		works: {"True", "True", "True", "True"}, sick: {"False", "True", "True", "False"},
		down: {"False", "False", "True", "False"}, absent: {"False", "True", "False", "False"},
	} {
		set := conditions.New(nil, 1, clock().Add(-time.Minute))
		for n, kind := range []string{"Ready", "PodReady", "Joined", "Healthy"} {
			set.SetCondition(kind, words[n], "Ready", "test")
		}
		b.said[h] = set.List()
	}
	b.said[let] = b.said[absent]
	b.said[shaky] = slices.Clone(b.said[works])
	for n := range b.said[shaky] {
		if b.said[shaky][n].Type == v1alpha1.ConditionPodReady {
			b.said[shaky][n].Reason = v1alpha1.ReasonContainerCrashing
		}
	}
	b.said[dead] = slices.Clone(b.said[down])
	for n := range b.said[dead] {
		if b.said[dead][n].Type == v1alpha1.ConditionJoined {
			b.said[dead][n].LastTransitionTime = metav1.NewTime(clock().Add(-time.Hour))
		}
	}
	return b
}

func (b *stateSpace) rendering(g *v1alpha1.PDGroup, s observation.Snapshot, edited bool) component.Rendering {
	open := gate.Result{Open: true}
	return withVoters(g, s, component.Rendering{Template: tiny(edited), Inputs: edited, Gate: open, RollGate: open})
}

func (b *stateSpace) snapshot(st state) (*v1alpha1.PDGroup, observation.Snapshot) {
	g := *b.g
	g.Spec.Replicas = ptr.To(int32(st.replicas))
	s := observation.Snapshot{Now: clock(), PDGroup: &g, PD: pd.View{ClusterID: "73"}}
	s.ConfigMaps, s.Revisions = b.record[st.edited].ConfigMaps, b.record[st.edited].Revisions
	for slot, m := range st.members {
		name := fmt.Sprintf("basic-pd-%d", slot)
		i := &v1alpha1.Instance{ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: "ns", UID: types.UID(name), Generation: 1, ResourceVersion: "1", Finalizers: []string{v1alpha1.FinalizerMember, v1alpha1.FinalizerInstance},
			OwnerReferences: []metav1.OwnerReference{{UID: g.UID, Controller: ptr.To(true)}},
		}}
		i.Spec = v1alpha1.InstanceSpec{Group: v1alpha1.InstanceGroup{Kind: "PDGroup", Name: g.Name}, Slot: int32(slot), Revision: b.revision[m.updated], Retire: m.stay == retired}
		i.Spec.PodTemplate.Raw = b.raw[m.updated]
		i.Status = v1alpha1.InstanceStatus{PodUID: types.UID("pod-" + name), Revision: i.Spec.Revision, Conditions: b.said[m.health]}
		if m.stay == gone {
			i.DeletionTimestamp = ptr.To(metav1.NewTime(clock().Add(-time.Second)))
		}
		if m.health == let {
			i.Status.Member = &v1alpha1.MemberStatus{ID: fmt.Sprint(slot + 1), Name: name}
		}
		if m.health != absent && m.health != let {
			s.PD.Members = append(s.PD.Members, pd.Member{Name: name, ID: fmt.Sprint(slot + 1), Healthy: m.health == works || m.health == shaky, ClientURL: "http://" + name})
		}
		if slot == st.leader {
			s.PD.Leader = name
		}
		s.Instances = append(s.Instances, i)
		if slot == st.lease {
			s.Lease = lease.NewState(lease.NewHolder(i), clock().Add(-time.Second), 0)
		}
	}
	if st.starting {
		s.PD.Members = append(s.PD.Members, pd.Member{ID: "99", PeerURL: "http://elsewhere:2380"})
	}
	return &g, s
}

// joining counts the Instances that may join at any moment.
func joining(g *v1alpha1.PDGroup, s observation.Snapshot) int {
	n := 0
	for _, i := range s.Instances {
		if _, listed := membership.FindMember(g, s, i); !listed && i.DeletionTimestamp == nil && i.Status.Member == nil {
			n++
		}
	}
	return n
}

// check returns what a plan must not do in a state.
func check(g *v1alpha1.PDGroup, s observation.Snapshot, p groupPlan) []string {
	var bad []string
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	v := voting.New(g, s)
	listed := func(i *v1alpha1.Instance) pd.Member { m, _ := membership.FindMember(g, s, i); return m }
	quorum := s.PD.HasQuorum()
	stopped, joined, removed, healthy := 0, 0, 0, s.PD.CountHealthy()
	for _, c := range p.Instances {
		switch {
		case c.Live == nil:
			joined++
			if n := len(s.PD.Members); quorum && n > 1 && s.PD.CountHealthy() < pd.Majority(n+1) {
				say("%s joins although %d of %d are healthy", c.Desired.Name, s.PD.CountHealthy(), n)
			}
			firm := 0
			for _, i := range s.Instances {
				if listed(i).Healthy && member.PodStateOf(i) == member.PodReady {
					firm++
				}
			}
			if n := len(s.PD.Members); n > 1 && firm < pd.Majority(n+1) && pd.Majority(n+1) > pd.Majority(n) {
				say("%s joins although only %d of %d do not crash", c.Desired.Name, firm, n)
			}
			if !quorum {
				say("%s joins without a quorum", c.Desired.Name)
			}
			continue
		case c.Desired.Spec.Revision == c.Live.Spec.Revision && c.Desired.Spec.StopPod == c.Live.Spec.StopPod:
			continue
		}
		m := listed(c.Live)
		if v.IsNotServing(c.Live) {
			if m.Healthy {
				say("%s is taken for one that does not serve although it is healthy", c.Live.Name)
			}
			continue
		}
		stopped++
		if m.Healthy {
			healthy--
		}
		if joins := joining(g, s); joins > 0 && m.Healthy && s.PD.CountHealthy(m.ID) < pd.Majority(len(s.PD.Members)+joins) {
			say("%s is stopped while another one may join", c.Live.Name)
		}
		if len(s.PD.Members) > 1 && m.ID != "" && (s.PD.CountHealthy(m.ID) < pd.Majority(len(s.PD.Members)) || !quorum) {
			say("%s is stopped and %d of %d are healthy without it", c.Live.Name, s.PD.CountHealthy(m.ID), len(s.PD.Members))
		}
		if s.PD.Leader == c.Live.Name && len(s.PD.Members) > 1 {
			say("the leader %s is stopped", c.Live.Name)
		}
		if !s.Lease.IsHeldBy(c.Live) {
			say("%s is stopped without the Lease", c.Live.Name)
		}
	}
	for _, c := range p.Calls {
		if c.Verb == component.TransferLeader {
			to, _ := s.PD.Member(c.Target)
			if !to.Healthy {
				say("the leader moves to %s, which is not healthy", c.Target)
			}
			continue
		}
		removed++
		at := slices.IndexFunc(s.PD.Members, func(m pd.Member) bool { return m.ID == c.Target })
		switch m := s.PD.Members[max(at, 0)]; {
		case at < 0:
			say("%s is removed, which PD does not list", c.Target)
		case !quorum:
			say("%s is removed without a quorum", c.Target)
		case m.Name == s.PD.Leader:
			say("the leader %s is removed", c.Target)
		case m.Healthy && !s.Lease.IsHeldBy(s.Instances[slices.IndexFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Name == m.Name })]):
			say("%s is removed without the Lease", c.Target)
		case s.PD.CountHealthy(m.ID) < pd.Majority(len(s.PD.Members)-1) || len(s.PD.Members) == 1:
			say("%s is removed and %d of %d are healthy without it", c.Target, s.PD.CountHealthy(m.ID), len(s.PD.Members)-1)
		}
		if starting, is := s.PD.StartingMember(); is && starting.ID != c.Target {
			say("%s is removed while another one starts", c.Target)
		}
	}
	if p.Orphan.ID != "" {
		removed++
		if s.PD.CountHealthy(p.Orphan.ID) < pd.Majority(len(s.PD.Members)-1) || p.Orphan.Healthy {
			say("orphan %s is removed", p.Orphan.ID)
		}
	}
	if stopped > 1 {
		say("%d members are stopped at once", stopped)
	}
	if joined+removed > 1 {
		say("%d members join and %d leave at once", joined, removed)
	}
	for _, n := range []int{len(s.PD.Members), len(s.PD.Members) + joined - removed} {
		if stopped > 0 && healthy < pd.Majority(n) && n > 1 {
			say("%d of %d members would be healthy when all of it is done", healthy, n)
		}
	}
	for _, i := range p.Deletes {
		if m := listed(i); m.Healthy {
			say("Instance %s is deleted although its member is healthy", i.Name)
		}
	}
	for name, yes := range p.Drained {
		if m, is := s.PD.Member(name); yes && is {
			say("%s is called drained, and PD lists it (%v)", name, m)
		}
	}
	if len(p.Deletes) > 1 {
		say("%d Instances are deleted at once", len(p.Deletes))
	}
	switch o := p.Outcome; o.Kind {
	case step.KindWait, step.KindAfter:
		if o.Reason == "" || o.After <= 0 || o.Message == "" || o.Kind == step.KindWait && o.Source == "" {
			say("a bare wait: %+v", o)
		}
	case step.KindDone:
		// What has just been changed is waited for by the executor of the plan.
		changed := slices.ContainsFunc(p.Instances, func(c planning.InstanceChange) bool {
			return c.Live == nil || c.Desired.Spec.Revision != c.Live.Spec.Revision || c.Desired.Spec.Retire != c.Live.Spec.Retire
		})
		if !changed && (len(s.Instances) != int(g.GetReplicas()) || len(p.Notes) > 0) || p.Lease.Take != nil || !s.Lease.IsFree() && !p.Lease.Release {
			say("it is called done")
		}
	case step.KindStall, step.KindFail:
		say("nothing of this needs a user: %+v", o)
	}
	return bad
}

// PD-05, PD-06, PD-07, PD-08, PD-10, PD-11, PD-13, P1: whatever state up to five
// members are in, no plan puts PD below a majority, changes the members twice at
// once, stops the leader while another could lead, or waits without a reason.
func TestPD08NoPlanPutsPDBelowAMajority(t *testing.T) {
	b := newStateSpace(t)
	total, acting, failures := 0, 0, 0
	begin := time.Now()
	for _, space := range spaces() {
		count := 0
		space.states(func(st state) {
			if failures > 15 {
				return
			}
			g, s := b.snapshot(st)
			p, err := planWith(g, s, b.rendering(g, s, st.edited))
			require.NoError(t, err)
			count++
			if len(p.Notes) > 0 || len(p.Calls) > 0 || len(p.Deletes) > 0 {
				acting++
			}
			if bad := check(g, s, p); len(bad) > 0 {
				failures++
				t.Errorf("%s:\n  %s\n  notes %v, calls %v, outcome %+v", st, strings.Join(bad, "\n  "), p.Notes, p.Calls, p.Outcome)
			}
		})
		total += count
		fmt.Printf("voters: %s: %d states checked\n", space, count)
	}
	fmt.Printf("voters: %d states checked in %s, in %d of them something is done\n", total, time.Since(begin).Round(time.Millisecond), acting)
}
