package voting

import (
	"errors"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

var (
	_ component.Component     = Voters{}
	_ component.LeaderEvictor = Voters{}
)

// WithView returns voters by what PD says now.
func (v Voters) WithView(now pd.View) component.Component {
	v.s.PD = now
	return v
}

// IsNotServing implements component.Component: a member adds nothing if PD does not call it
// healthy, it is not Ready, and its pod does not run or PD does not count on it. A
// pod that cannot be seen may run: while PD does not say otherwise it stays. When the
// kubelets lose the API server, the Service of a PD that works publishes no address.
func (v Voters) IsNotServing(i *v1alpha1.Instance) bool {
	if m, listed := membership.FindMember(v.g, v.s, i); listed && m.Healthy && bootstrap.IsPDUsable(v.g, v.s) || member.WasReady(i) {
		return false
	}
	if IsPodUnknown(i) && !membership.MayTrustAnswer(v.g, v.s).IsAllowed() {
		return false
	}
	runs := meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionPodReady)
	if runs && meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionJoined) {
		// A slow moment must not cost a member that PD counts on.
		return v.isStranded(i)
	}
	return true
}

// isStranded reports that a member runs and was never healthy since it started,
// and that PD has had no leader for a while: a mistake that all members started
// with must be fixable by all of them starting again.
func (v Voters) isStranded(i *v1alpha1.Instance) bool {
	quorum := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionQuorumHealthy)
	return errors.Is(v.s.PD.Err, pd.ErrNoLeader) && meta.IsStatusConditionFalse(i.Status.Conditions, v1alpha1.ConditionHealthy) &&
		quorum != nil && quorum.Status != metav1.ConditionTrue && v.s.Now.Sub(quorum.LastTransitionTime.Time) >= electionTimeout
}

// Rank implements component.Component: unhealthy members first and, of those that come
// back, the leader last. Of those that leave the newest is the first, whichever
// leads: names stay what people expect.
func (v Voters) Rank(d component.Disruption) int {
	m, listed := membership.FindMember(v.g, v.s, d.Instance)
	switch {
	case !listed, !m.Healthy:
		return 0
	case d.Verb == member.Restart && m.Name == v.s.PD.Leader:
		return 2
	}
	return 1
}

// NeedsLease implements component.Component: whatever is done to a member that adds to
// the quorum needs the Lease, and what has begun with it ends with it.
func (v Voters) NeedsLease(d component.Disruption) bool {
	return v.s.Lease.IsHeldBy(d.Instance) || !v.IsNotServing(d.Instance)
}

// Allows implements component.Component by counting votes: of those that vote after
// the step a majority must be healthy without the member, those that may join at
// any moment counted in, and no other change of the members may be under way. A
// single member is restarted without further ado: no other could lead meanwhile.
func (v Voters) Allows(d component.Disruption) verdict.Verdict {
	if d.Verb == member.Remove && !bootstrap.IsBootstrapped(v.g, v.s) {
		return verdict.Refuse("it bootstraps PD's cluster with the others, and is replaced when the cluster is there")
	}
	if known := membership.MayTrustAnswer(v.g, v.s); !known.IsAllowed() {
		return known
	}
	m, listed := membership.FindMember(v.g, v.s, d.Instance)
	if !listed {
		return verdict.Allow()
	}
	if may := member.CanStop(d.Instance, v.g, v.s.Now); d.Verb == member.Restart && !may.IsAllowed() {
		return may
	}
	voting := len(v.s.PD.Members)
	switch {
	case d.Verb == member.Restart && voting == 1 && membership.CountJoining(v.g, v.s) > 0:
		return verdict.Refuse("another member is joining")
	case d.Verb == member.Restart && voting == 1:
		return verdict.Allow()
	case d.Verb == member.Remove:
		voting--
		if may := v.mayLeaveNow(d, m); !may.IsAllowed() {
			return may
		}
	}
	wobbly, name := v.listUnsteady(d.Instance)
	healthy, joining := v.s.PD.CountHealthy(append(wobbly, m.ID)...), membership.CountJoining(v.g, v.s)
	switch need := pd.Majority(voting + joining); {
	case voting == 0:
		return verdict.Refuse("it is PD's only member")
	case healthy >= need:
		return verdict.Allow()
	case len(wobbly) > 0 && v.s.PD.CountHealthy(m.ID) >= need:
		return verdict.Refusef("PD calls member %s healthy, and its pod is not ready, is being stopped, or stops again and again: kubectl -n %s describe instance %s", name, v.g.Namespace, name)
	case joining > 0 && healthy >= pd.Majority(voting):
		return verdict.Refusef("without it, %d of %d members would be healthy, counting the one that is joining", healthy, voting+joining)
	case voting == 2 && d.Verb == member.Remove && d.Instance.DeletionTimestamp != nil:
		return verdict.Refusef("%d of the 2 members that would stay are healthy, and a majority needs both: repair the other one, or if it is lost, delete it as well: kubectl -n %s get instances -l %s=%s", healthy, v.g.Namespace, v1alpha1.LabelGroup, v.g.Name)
	case voting == 2 && v.g.GetReplicas() > 2:
		return verdict.Refusef("2 members need both for a majority, and %s is %d: another one has to join first: kubectl -n %s get instances -l %s=%s",
			origin.OfGroup(v.g).Field("replicas"), v.g.GetReplicas(), v.g.Namespace, v1alpha1.LabelGroup, v.g.Name)
	case voting == 2:
		return verdict.Refuse("2 members need both for a majority: scale to 3 meanwhile: " + origin.OfGroup(v.g).Scale(3))
	default:
		return verdict.Refusef("%d of %d members would be healthy without it, and %d are a majority", healthy, voting, need)
	}
}

// AllowsNow implements component.Component.
func (Voters) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

// listUnsteady returns the members that PD calls healthy and that are not counted on when
// an Instance's member stops, and the name of one: their pods stand worse than its own.
// Of those that stand alike either may be restarted, what is pending may be what fixes
// them.
func (v Voters) listUnsteady(than *v1alpha1.Instance) (ids []string, name string) {
	for _, i := range v.s.Instances {
		m, listed := membership.FindMember(v.g, v.s, i)
		if i.Name != than.Name && listed && m.Healthy && (member.IsStopping(i) || member.PodStateOf(i) > member.PodStateOf(than)) {
			ids, name = append(ids, m.ID), i.Name
		}
	}
	return ids, name
}

// mayLeaveNow says whether it is a member's turn to leave. Members leave one after the other, those
// that are unhealthy first, and one that works goes when its replacement works.
func (v Voters) mayLeaveNow(d component.Disruption, m pd.Member) verdict.Verdict {
	if other, starting := v.s.PD.StartingMember(); starting && other.ID != m.ID {
		return verdict.Refuse("member " + other.PeerURL + " is joining PD")
	}
	working := 0
	for _, i := range v.s.Instances {
		other, listed := membership.FindMember(v.g, v.s, i)
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
	if deleted == nil || !m.Healthy || working >= int(v.g.GetReplicas()) || v.s.Now.Sub(deleted.Time) >= ReplacementTimeout {
		return verdict.Allow()
	}
	return verdict.Refusef("its replacement has not joined yet (%d of %d other members work)", working, v.g.GetReplicas())
}

// UndoPreparation implements component.Component: nothing of a preparation stays in PD.
func (Voters) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

// LeaderCount implements component.Component.
func (Voters) LeaderCount(*v1alpha1.Instance) int { return 0 }

// MaxConcurrentRemovals implements component.Component.
func (Voters) MaxConcurrentRemovals() int { return 1 }

// RestartsWhenDeleted implements component.Component: another member takes its place.
func (Voters) RestartsWhenDeleted(*v1alpha1.Instance) bool { return false }

// AllowsRemoval implements component.Component: the last member never leaves, and the
// cluster with it.
func (v Voters) AllowsRemoval([]*v1alpha1.Instance) verdict.Verdict {
	if v.g.GetReplicas() > 0 {
		return verdict.Allow()
	}
	var users []string
	for _, other := range v.s.Groups {
		if other.GroupKind() != v1alpha1.KindPDGroup && other.GetDeletionTimestamp() == nil {
			users = append(users, other.GroupKind()+" "+other.GetName())
		}
	}
	edit := origin.OfGroup(v.g)
	field, back := edit.Field("replicas"), edit.Scale(max(len(v.g.Status.Members), 1))
	if len(users) > 0 {
		return verdict.Refusef("%s is 0, and %s would be left without a PD: delete them first, or set it back: %s", field, strings.Join(users, ", "), back)
	}
	return verdict.Refusef("%s is 0, and the cluster would be lost with its last member: delete the PDGroup if that is meant, set %s to stop it, or set it back: %s", field, edit.SharedField("suspended"), back)
}
