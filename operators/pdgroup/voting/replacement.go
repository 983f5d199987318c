package voting

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

const (
	// removedTimeout is how long a member must be missing from PD's list, or
	// unhealthy on a new volume, before it counts as gone: one answer may be that
	// of a member which was removed itself.
	removedTimeout = 30 * time.Second
	// rejoinTimeout is how long a member that PD does not list by name may crash: then its
	// volume, if it is older than its Instance, counts as that of a member which PD has
	// removed, and one that was added as one that never starts.
	rejoinTimeout = 2 * time.Minute
	// replacementPause is the least time from one member that joins to the next
	// one that is given up.
	replacementPause = time.Minute
	// defaultReplaceAfter is spec.replaceAfter where it is not set.
	defaultReplaceAfter = 30 * time.Minute
)

// IsReplacedWhenDeleted implements component.Component: a member that works goes when another one
// has taken its place; what does not work is removed first, because every further
// member makes the majority larger. The pod of one that
// PD has removed may never finish stopping: after a while its slot is left alone.
func (v Voters) IsReplacedWhenDeleted(i *v1alpha1.Instance) bool {
	m, listed := membership.FindMember(v.g, v.s, i)
	return v.isLingering(i) || membership.MayTrustAnswer(v.g, v.s).IsAllowed() && listed && m.Healthy
}

// isLingering reports that an Instance whose member PD has removed was deleted a while ago
// and is still there.
func (v Voters) isLingering(i *v1alpha1.Instance) bool {
	return i.DeletionTimestamp != nil && membership.HasLeft(v.g, v.s, i) && v.s.Now.Sub(i.DeletionTimestamp.Time) >= replacementPause
}

// ReasonDead implements component.Component. A member is only given up while the others
// make a majority without it and none of them is on its way in or out.
func (v Voters) ReasonDead(i *v1alpha1.Instance) verdict.Reason {
	m, listed := membership.FindMember(v.g, v.s, i)
	if !membership.MayTrustAnswer(v.g, v.s).IsAllowed() || listed && m.Healthy || v.isUnsettled(i) {
		return verdict.Reason{}
	}
	if listed && v.s.PD.CountHealthy(m.ID) < pd.Majority(len(v.s.PD.Members)-1) {
		return verdict.Reason{}
	}
	unhealthy, after := v.timeUnhealthy(i), replaceAfter(v.g)
	switch {
	case !listed && i.Status.Member != nil && (i.Annotations[v1alpha1.AnnotationDisruption] == string(member.Remove) || v.timeWithout(i, v1alpha1.ConditionJoined) >= removedTimeout):
		return verdict.NewReason("PD has removed its member")
	case member.IsClaimLost(i):
		return verdict.NewReason("the volume with its data is gone")
	case v.isOnDiscardedVolume(i):
		return verdict.NewReason("its volume belongs to a member that PD no longer knows")
	case !listed:
		return verdict.Reason{} // it has not joined yet
	case v.s.LostNodes[i.Name] != "":
		return verdict.NewReasonf("its volume is on node %s, which is gone", v.s.LostNodes[i.Name])
	case m.Name == "" && v.crashesUnjoined(i) && v.hasWorkingRevision(i):
		// Before tikv/pd#9199 a PD that ended before it had noted that it was added is let
		// in no more, nor is any other one while it is listed.
		return verdict.NewReason("PD has added its member, which has not started since")
	case m.ClientURL != "" && v.hasReplacedVolume(i): // an initial member that has never run has none
		return verdict.NewReason("its volume is newer than its member in PD")
	case after > 0 && unhealthy >= after && v.hasWorkingRevision(i):
		return verdict.NewReasonf("PD has called its member unhealthy for spec.replaceAfter (%s)", after)
	}
	return verdict.Reason{}
}

// isOnDiscardedVolume reports that an Instance was recreated on the volume of a member that PD
// has removed, such as by force: a member with such data never starts.
func (v Voters) isOnDiscardedVolume(i *v1alpha1.Instance) bool {
	_, listed := membership.FindMember(v.g, v.s, i)
	claim := bootstrap.DataClaim(v.g, i.Name)
	return !listed && i.Status.Member == nil && v.crashesUnjoined(i) && slices.ContainsFunc(v.s.Claims[i.Name], func(c metav1.ObjectMeta) bool {
		return c.Name == claim && c.CreationTimestamp.Before(&i.CreationTimestamp)
	})
}

// crashesUnjoined reports that an Instance's container crashes and that PD has not listed its
// member by name for a while. A pod that is ready may be said to crash as well, for a while.
func (v Voters) crashesUnjoined(i *v1alpha1.Instance) bool {
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return pod != nil && pod.Status == metav1.ConditionFalse && pod.Reason == v1alpha1.ReasonContainerCrashing && v.timeWithout(i, v1alpha1.ConditionJoined) >= rejoinTimeout
}

// isUnsettled reports that a change of the members is under way, or that one has
// just been: after each replacement the next one waits. One that PD has removed and
// whose pod does not stop is waited for no longer than that. Nor is a deleted one that
// works: it stays until another one has joined, which may wait for just this one to be
// given up.
func (v Voters) isUnsettled(i *v1alpha1.Instance) bool {
	m, _ := membership.FindMember(v.g, v.s, i)
	if other, starting := v.s.PD.StartingMember(); starting && other.ID != m.ID {
		return true
	}
	bootstrapped := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionBootstrapped)
	for _, other := range v.s.Instances {
		joined := bootstrapped != nil && other.CreationTimestamp.After(bootstrapped.LastTransitionTime.Time)
		om, _ := membership.FindMember(v.g, v.s, other)
		if other.Name != i.Name && (other.DeletionTimestamp != nil && !v.isLingering(other) && !om.Healthy || joined && v.s.Now.Sub(other.CreationTimestamp.Time) < replacementPause) {
			return true
		}
	}
	return false
}

// hasWorkingRevision reports that a healthy member runs what an Instance is to run: it is not
// the spec that keeps it from working, and a new member would work.
func (v Voters) hasWorkingRevision(i *v1alpha1.Instance) bool {
	return slices.ContainsFunc(v.s.Instances, func(other *v1alpha1.Instance) bool {
		m, _ := membership.FindMember(v.g, v.s, other)
		return m.Healthy && other.Status.Revision == i.Spec.Revision
	})
}

// hasReplacedVolume reports that PD knows the member of an Instance from before, that it
// was never healthy since the Instance was made, and that its volumes are no
// older than the Instance: what PD knows was on others. Of an Instance that was there before PD had a
// cluster PD knows nothing from before.
func (v Voters) hasReplacedVolume(i *v1alpha1.Instance) bool {
	joined := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionJoined)
	healthy := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionHealthy)
	bootstrapped := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionBootstrapped)
	if bootstrapped != nil && bootstrapped.Status == metav1.ConditionTrue && !i.CreationTimestamp.After(bootstrapped.LastTransitionTime.Time) {
		return false
	}
	if joined == nil || healthy == nil || !joined.LastTransitionTime.Equal(&healthy.LastTransitionTime) ||
		v.timeUnhealthy(i) < removedTimeout {
		return false
	}
	claims := v.s.Claims[i.Name]
	return len(claims) > 0 && !slices.ContainsFunc(claims, func(c metav1.ObjectMeta) bool { return c.CreationTimestamp.Before(&i.CreationTimestamp) })
}

// timeUnhealthy returns for how long PD has called an Instance's member unhealthy, zero if it does not.
// While it has no quorum, as in a suspended group, it says so of none, and when it is back
// the last members start some seconds after the first.
func (v Voters) timeUnhealthy(i *v1alpha1.Instance) time.Duration {
	unhealthy := v.timeWithout(i, v1alpha1.ConditionHealthy)
	quorum := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionQuorumHealthy)
	switch {
	case quorum == nil:
		return unhealthy
	case quorum.Status != metav1.ConditionTrue:
		return 0
	}
	return min(unhealthy, v.s.Now.Sub(quorum.LastTransitionTime.Time))
}

// timeWithout returns for how long a condition of an Instance has been False, zero if
// it is not.
func (v Voters) timeWithout(i *v1alpha1.Instance, kind string) time.Duration {
	c := meta.FindStatusCondition(i.Status.Conditions, kind)
	if c == nil || c.Status != metav1.ConditionFalse {
		return 0
	}
	return v.s.Now.Sub(c.LastTransitionTime.Time)
}

// RecheckDelay returns when a judgement that depends on the time may change; 0 is never.
func (v Voters) RecheckDelay() time.Duration {
	next := time.Duration(0)
	at := func(timeout, passed time.Duration) {
		if left := timeout - passed; passed > 0 && left > 0 && (next == 0 || left < next) {
			next = left
		}
	}
	for _, i := range v.s.Instances {
		at(replaceAfter(v.g), v.timeUnhealthy(i))
		at(removedTimeout, v.timeUnhealthy(i))
		at(rejoinTimeout, v.timeWithout(i, v1alpha1.ConditionJoined))
		at(membership.JoinAfter, v.s.Now.Sub(membership.HealthySince(i)))
		if i.DeletionTimestamp != nil {
			at(ReplacementTimeout, v.s.Now.Sub(i.DeletionTimestamp.Time))
			at(replacementPause, v.s.Now.Sub(i.DeletionTimestamp.Time))
		}
	}
	if quorum := meta.FindStatusCondition(v.g.Status.Conditions, v1alpha1.ConditionQuorumHealthy); quorum != nil && quorum.Status != metav1.ConditionTrue {
		at(electionTimeout, v.s.Now.Sub(quorum.LastTransitionTime.Time))
	}
	return next
}

// replaceAfter returns for how long a member may be unhealthy; 0 is forever.
func replaceAfter(g *v1alpha1.PDGroup) time.Duration {
	if g.Spec.ReplaceAfter == nil {
		return defaultReplaceAfter
	}
	return g.Spec.ReplaceAfter.Duration
}
