package controller

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

const (
	// replacementPatience is how long a deleted member stays for its replacement
	// to join. Then it goes without, if a majority stays: the new one may need its
	// place.
	replacementPatience = 5 * time.Minute
	// electionPatience is how long PD may be without a leader before the members
	// that do nothing for it count as stranded; an election takes some seconds.
	electionPatience = 30 * time.Second
	// removedPatience is how long a member must be missing from PD's list, or
	// unhealthy on a new volume, before it counts as gone: one answer may be that
	// of a member which was removed itself.
	removedPatience = 30 * time.Second
	// rejoinPatience is how long a member whose volume is older than its Instance may
	// crash without PD listing it, before the volume counts as that of a member which
	// PD has let go.
	rejoinPatience = 2 * time.Minute
	// replacementPause is the least time from one member that joins to the next
	// one that is given up.
	replacementPause = time.Minute
	// defaultReplaceAfter is spec.replaceAfter where it is not set.
	defaultReplaceAfter = 30 * time.Minute
)

// voters is the group.Component of PD: its members vote, and nothing that is
// done to one of them may leave fewer than a majority of them healthy.
type voters struct {
	g *v1alpha1.PDGroup
	s observation.Snapshot
}

var (
	_ component.Component     = voters{}
	_ component.LeaderEvictor = voters{}
)

// again returns voters by what PD says now.
func (v voters) again(now pd.View) component.Component {
	v.s.PD = now
	return v
}

// NotServing implements group.Component: a member adds nothing if PD does not call it
// healthy, it is not Ready, and its pod does not run or PD does not count on it. A
// pod that nobody sees may run: while PD does not say otherwise it stays. When the
// kubelets lose the API server, the Service of a PD that works publishes nobody.
func (v voters) NotServing(i *v1alpha1.Instance) bool {
	if m, listed := membership.Of(v.g, v.s, i); listed && m.Healthy && bootstrap.Usable(v.g, v.s) || member.WasReady(i) {
		return false
	}
	if unseen(i) && !membership.Known(v.g, v.s).Allowed() {
		return false
	}
	runs := meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady)
	if runs && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionJoined) {
		// A slow moment must not cost a member that PD counts on.
		return v.stranded(i)
	}
	return true
}

// unseen reports that nobody knows whether an Instance's pod runs: its node does
// not answer, or the pod could not be read.
func unseen(i *v1alpha1.Instance) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return member.IsUnreachable(i) || pod != nil && pod.Status == metav1.ConditionUnknown
}

// stranded reports that a member runs and was never healthy since it started,
// and that PD has had no leader for a while: a mistake that all members started
// with must be mendable by all of them starting anew.
func (v voters) stranded(i *v1alpha1.Instance) bool {
	quorum := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionQuorumHealthy)
	return errors.Is(v.s.PD.Err, pd.ErrNoLeader) && meta.IsStatusConditionFalse(i.Status.Conditions, v1alpha1.ConditionHealthy) &&
		quorum != nil && quorum.Status != metav1.ConditionTrue && v.s.Now.Sub(quorum.LastTransitionTime.Time) >= electionPatience
}

// Rank implements group.Component: who is unhealthy first and, of those that come
// back, the leader last. Of those that leave the newest is the first, whoever
// leads: names stay what people expect.
func (v voters) Rank(d component.Disruption) int {
	m, listed := membership.Of(v.g, v.s, d.Instance)
	switch {
	case !listed, !m.Healthy:
		return 0
	case d.Verb == member.Restart && m.Name == v.s.PD.Leader:
		return 2
	}
	return 1
}

// NeedsLease implements group.Component: whatever is done to a member that adds to
// the quorum needs the Lease, and what has begun with it ends with it.
func (v voters) NeedsLease(d component.Disruption) bool {
	return v.s.Lease.HeldBy(d.Instance) || !v.NotServing(d.Instance)
}

// Allows implements group.Component by counting votes: of those that vote after
// the step a majority must be healthy without the member, those that may join at
// any moment counted in, and no other change of the members may be under way. A
// single member is restarted without further ado: nobody could lead meanwhile.
func (v voters) Allows(d component.Disruption) verdict.Verdict {
	if d.Verb == member.Remove && !bootstrap.Bootstrapped(v.g, v.s) {
		return verdict.Refuse("it bootstraps PD's cluster with the others, and is replaced when the cluster is there")
	}
	if known := membership.Known(v.g, v.s); !known.Allowed() {
		return known
	}
	m, listed := membership.Of(v.g, v.s, d.Instance)
	if !listed {
		return verdict.Allow()
	}
	voting := len(v.s.PD.Members)
	switch {
	case d.Verb == member.Restart && voting == 1 && membership.Joining(v.g, v.s) > 0:
		return verdict.Refuse("another member is joining")
	case d.Verb == member.Restart && voting == 1:
		return verdict.Allow()
	case d.Verb == member.Remove:
		voting--
		if may := v.turn(d, m); !may.Allowed() {
			return may
		}
	}
	wobbly, name := v.unsteady(d.Instance)
	healthy, joining := v.s.PD.Healthy(append(wobbly, m.ID)...), membership.Joining(v.g, v.s)
	switch need := pd.Majority(voting + joining); {
	case voting == 0:
		return verdict.Refuse("it is PD's only member")
	case healthy >= need:
		return verdict.Allow()
	case len(wobbly) > 0 && v.s.PD.Healthy(m.ID) >= need:
		return verdict.Refusef("PD calls member %s healthy, and its pod is not ready, is being stopped, or stops again and again: kubectl -n %s describe instance %s", name, v.g.Namespace, name)
	case joining > 0 && healthy >= pd.Majority(voting):
		return verdict.Refusef("%d of %d members would be healthy without it when the one that is joining counts", healthy, voting+joining)
	case voting == 2 && d.Verb == member.Remove && d.Instance.DeletionTimestamp != nil:
		return verdict.Refusef("%d of the 2 members that would stay are healthy, and both are a majority: mend the other one, or if it is lost, delete it as well: kubectl -n %s get instances -l %s=%s", healthy, v.g.Namespace, v1alpha1.LabelGroup, v.g.Name)
	case voting == 2:
		return verdict.Refuse("2 members need both of them for a majority: have 3 for as long as it takes: " + origin.Of(v.g).Scale(3))
	default:
		return verdict.Refusef("%d of %d members would be healthy without it, and %d are a majority", healthy, voting, need)
	}
}

// AllowsNow implements group.Component.
func (voters) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

// unsteady returns the members that PD calls healthy and that are not counted on when
// an Instance's member stops, and the name of one: their pods stand worse than its own.
// Of those that stand alike either may be restarted, what is pending may be what mends
// them.
func (v voters) unsteady(than *v1alpha1.Instance) (ids []string, name string) {
	for _, i := range v.s.Instances {
		m, listed := membership.Of(v.g, v.s, i)
		if i.Name != than.Name && listed && m.Healthy && (member.IsStopping(i) || member.PodStateOf(i) > member.PodStateOf(than)) {
			ids, name = append(ids, m.ID), i.Name
		}
	}
	return ids, name
}

// turn says whether it is a member's turn to leave. Members leave one after the other, those
// that are unhealthy first, and one that works goes when its replacement works.
func (v voters) turn(d component.Disruption, m pd.Member) verdict.Verdict {
	if other, starting := v.s.PD.Starting(); starting && other.ID != m.ID {
		return verdict.Refuse("member " + other.PeerURL + " is joining PD")
	}
	working := 0
	for _, i := range v.s.Instances {
		other, listed := membership.Of(v.g, v.s, i)
		leaving := i.DeletionTimestamp != nil || i.Spec.Retire
		switch {
		case i.Name == d.Instance.Name || !listed:
		case leaving && !other.Healthy && (m.Healthy || i.Spec.Slot < d.Instance.Spec.Slot):
			return verdict.Refuse("member " + i.Name + " leaves first")
		case !leaving && other.Healthy:
			working++
		}
	}
	deleted := d.Instance.DeletionTimestamp
	if deleted == nil || !m.Healthy || working >= int(v.g.GetReplicas()) || v.s.Now.Sub(deleted.Time) >= replacementPatience {
		return verdict.Allow()
	}
	return verdict.Refusef("its replacement has not joined yet (%d of %d other members work)", working, v.g.GetReplicas())
}

// UndoPreparation implements group.Component: nothing of a preparation stays in PD.
func (voters) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

// PlanEviction implements group.Leading: a member that a person wants to lead nothing hands
// PD's leader on whenever it has it, and nothing of that is left in PD to be taken back.
func (v voters) PlanEviction(i *v1alpha1.Instance) component.Eviction {
	if _, asked := member.EvictionRequest(i); !asked || i.DeletionTimestamp != nil {
		return component.Eviction{}
	}
	wait := func(format string, args ...any) step.Outcome {
		return waiting(v1alpha1.ReasonEvictingLeaders, "Instance %s is not to lead PD (annotation %s), and %s", i.Name, v1alpha1.AnnotationEvictLeaders, fmt.Sprintf(format, args...)).Wait
	}
	m, listed := membership.Of(v.g, v.s, i)
	switch known := membership.Known(v.g, v.s); {
	case !known.Allowed():
		return component.Eviction{Wait: wait("nobody knows whether it does: %s", known.Reason())}
	case !listed:
		return component.Eviction{Wait: wait("PD does not list its member yet")}
	case m.Name != v.s.PD.Leader:
		return component.Eviction{Done: true}
	}
	to := v.successor(component.Disruption{Instance: i, Revision: v.g.Status.UpdateRevision}, v.mayLead)
	if to == "" {
		return component.Eviction{Blocked: true, Wait: wait("does: no other member that is healthy and stays may lead; let another one, or this one: kubectl -n %s annotate instance %s %s-",
			i.Namespace, i.Name, v1alpha1.AnnotationEvictLeaders)}
	}
	p := ordering(component.Call{Verb: component.TransferLeader, Target: to, Instance: i.Name}, v1alpha1.ReasonEvictingLeaders,
		"PD's leader moves from %s to %s: annotation %s on Instance %s", m.Name, to, v1alpha1.AnnotationEvictLeaders, i.Name)
	return component.Eviction{Calls: p.Calls, Wait: p.Wait}
}

// mayLead reports whether PD's leader may be handed to the member of an Instance
// although nobody is stopped for it: it stays, nothing is being done to it, and nobody
// wants it to lead nothing.
func (v voters) mayLead(i *v1alpha1.Instance) bool {
	if i == nil || i.DeletionTimestamp != nil || i.Spec.Retire || i.Annotations[v1alpha1.AnnotationDisruption] != "" || v.s.Lease.HeldBy(i) {
		return false
	}
	_, evicted := member.EvictionRequest(i)
	return !evicted && member.PodStateOf(i) == member.PodReady && member.IsReady(i)
}

// LeaderCount implements group.Component.
func (voters) LeaderCount(*v1alpha1.Instance) int { return 0 }

// MaxConcurrentRemovals implements group.Component.
func (voters) MaxConcurrentRemovals() int { return 1 }

// RestartsWhenDeleted implements group.Component: another member takes its place.
func (voters) RestartsWhenDeleted(*v1alpha1.Instance) bool { return false }

// ReplacedWhenDeleted implements group.Component: a member that works goes when another one
// has taken its place; what does not work is removed first, because every further
// member makes the majority larger. The pod of one that
// PD has let go may take for ever to stop: after a while its slot is left alone.
func (v voters) ReplacedWhenDeleted(i *v1alpha1.Instance) bool {
	m, listed := membership.Of(v.g, v.s, i)
	return v.lingers(i) || membership.Known(v.g, v.s).Allowed() && listed && m.Healthy
}

// lingers reports that an Instance whose member PD has let go was deleted a while ago
// and is still there.
func (v voters) lingers(i *v1alpha1.Instance) bool {
	return i.DeletionTimestamp != nil && membership.Left(v.g, v.s, i) && v.s.Now.Sub(i.DeletionTimestamp.Time) >= replacementPause
}

// AllowsRemoval implements group.Component: the last member never leaves, and the
// cluster with it.
func (v voters) AllowsRemoval([]*v1alpha1.Instance) verdict.Verdict {
	if v.g.GetReplicas() > 0 {
		return verdict.Allow()
	}
	var users []string
	for _, other := range v.s.Groups {
		if other.GroupKind() != v1alpha1.KindPDGroup && other.GetDeletionTimestamp() == nil {
			users = append(users, other.GroupKind()+" "+other.GetName())
		}
	}
	edit := origin.Of(v.g)
	field, back := edit.Field("replicas"), edit.Scale(max(len(v.g.Status.Members), 1))
	if len(users) > 0 {
		return verdict.Refusef("%s is 0, and %s would be left without a PD: delete them first, or set it back: %s", field, strings.Join(users, ", "), back)
	}
	return verdict.Refusef("%s is 0, and the cluster would be lost with its last member: delete the PDGroup if that is meant, set %s to stop it, or set it back: %s", field, edit.Either("suspended"), back)
}

// ReasonDead implements group.Component. A member is only given up while the others
// make a majority without it and none of them is on its way in or out.
func (v voters) ReasonDead(i *v1alpha1.Instance) string {
	m, listed := membership.Of(v.g, v.s, i)
	if !membership.Known(v.g, v.s).Allowed() || listed && m.Healthy || v.unsettled(i) {
		return ""
	}
	if listed && v.s.PD.Healthy(m.ID) < pd.Majority(len(v.s.PD.Members)-1) {
		return ""
	}
	unhealthy := v.lacking(i, v1alpha1.ConditionHealthy)
	after := replaceAfter(v.g)
	switch {
	case !listed && i.Status.Member != nil && (i.Annotations[v1alpha1.AnnotationDisruption] == string(member.Remove) || v.lacking(i, v1alpha1.ConditionJoined) >= removedPatience):
		return "PD has let its member go"
	case member.IsClaimLost(i):
		return "the volume with its data is gone"
	case v.discarded(i):
		return "its volume is that of a member which PD does not know any more"
	case !listed:
		return "" // it has yet to join
	case v.s.LostNodes[i.Name] != "":
		return fmt.Sprintf("its volume is on node %s, which is gone", v.s.LostNodes[i.Name])
	case m.ClientURL != "" && v.forgot(i): // an initial member that has never run has none
		return "its volume is newer than its member in PD"
	case after > 0 && unhealthy >= after && v.alike(i):
		return fmt.Sprintf("PD has called its member unhealthy for spec.replaceAfter (%s)", after)
	}
	return ""
}

// discarded reports that an Instance was made anew on the volume of a member that PD
// has let go, such as by force: a member with such data never starts.
func (v voters) discarded(i *v1alpha1.Instance) bool {
	_, listed := membership.Of(v.g, v.s, i)
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	claim := bootstrap.DataClaim(v.g, i.Name)
	// A pod that is ready may be said to crash as well, for a while.
	return !listed && i.Status.Member == nil && pod != nil && pod.Status == metav1.ConditionFalse && pod.Reason == v1alpha1.ReasonContainerCrashing &&
		v.lacking(i, v1alpha1.ConditionJoined) >= rejoinPatience &&
		slices.ContainsFunc(v.s.Claims[i.Name], func(c metav1.ObjectMeta) bool {
			return c.Name == claim && c.CreationTimestamp.Before(&i.CreationTimestamp)
		})
}

// unsettled reports that a change of the members is under way, or that one has
// just been: after each replacement the next one waits. One that PD has let go and
// whose pod does not stop is waited for no longer than that. Nor is a deleted one that
// works: it stays until another one has joined, which may wait for just this one to be
// given up.
func (v voters) unsettled(i *v1alpha1.Instance) bool {
	m, _ := membership.Of(v.g, v.s, i)
	if other, starting := v.s.PD.Starting(); starting && other.ID != m.ID {
		return true
	}
	bootstrapped := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionBootstrapped)
	for _, other := range v.s.Instances {
		joined := bootstrapped != nil && other.CreationTimestamp.After(bootstrapped.LastTransitionTime.Time)
		om, _ := membership.Of(v.g, v.s, other)
		if other.Name != i.Name && (other.DeletionTimestamp != nil && !v.lingers(other) && !om.Healthy || joined && v.s.Now.Sub(other.CreationTimestamp.Time) < replacementPause) {
			return true
		}
	}
	return false
}

// alike reports that a healthy member runs what an Instance is to run: it is not
// the spec that keeps it from working, and a new member would work.
func (v voters) alike(i *v1alpha1.Instance) bool {
	return slices.ContainsFunc(v.s.Instances, func(other *v1alpha1.Instance) bool {
		m, _ := membership.Of(v.g, v.s, other)
		return m.Healthy && other.Status.Revision == i.Spec.Revision
	})
}

// forgot reports that PD knows the member of an Instance from before, that it
// was never healthy since the Instance was made, and that its volumes are no
// older than the Instance: what PD knows was on others.
func (v voters) forgot(i *v1alpha1.Instance) bool {
	joined := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionJoined)
	healthy := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionHealthy)
	if joined == nil || healthy == nil || !joined.LastTransitionTime.Equal(&healthy.LastTransitionTime) ||
		v.lacking(i, v1alpha1.ConditionHealthy) < removedPatience {
		return false
	}
	claims := v.s.Claims[i.Name]
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(c metav1.ObjectMeta) bool { return c.CreationTimestamp.Before(&i.CreationTimestamp) })
}

// lacking returns for how long a condition of an Instance has been False, zero if
// it is not.
func (v voters) lacking(i *v1alpha1.Instance, kind string) time.Duration {
	c := meta.FindStatusCondition(i.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionFalse {
		return 0
	}
	return v.s.Now.Sub(c.LastTransitionTime.Time)
}

// due returns when a judgement that depends on the time may change; 0 is never.
func (v voters) due() time.Duration {
	next := time.Duration(0)
	at := func(patience, passed time.Duration) {
		if left := patience - passed; passed > 0 && left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	for _, i := range v.s.Instances {
		at(replaceAfter(v.g), v.lacking(i, v1alpha1.ConditionHealthy))
		at(removedPatience, v.lacking(i, v1alpha1.ConditionHealthy))
		at(rejoinPatience, v.lacking(i, v1alpha1.ConditionJoined))
		at(membership.JoinAfter, v.s.Now.Sub(membership.HealthySince(i)))
		if i.DeletionTimestamp != nil {
			at(replacementPatience, v.s.Now.Sub(i.DeletionTimestamp.Time))
			at(replacementPause, v.s.Now.Sub(i.DeletionTimestamp.Time))
		}
	}
	if quorum := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionQuorumHealthy); quorum != nil && quorum.Status != metav1.ConditionTrue {
		at(electionPatience, v.s.Now.Sub(quorum.LastTransitionTime.Time))
	}
	return next
}

// replaceAfter returns for how long a member may be unhealthy; 0 is for ever.
func replaceAfter(g *v1alpha1.PDGroup) time.Duration {
	if g.Spec.ReplaceAfter == nil {
		return defaultReplaceAfter
	}
	return g.Spec.ReplaceAfter.Duration
}
