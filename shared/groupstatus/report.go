package groupstatus

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Work is what a reconcile came to.
type Work struct {
	// Acted is how far the plan was carried out.
	Acted step.Outcome
	// Serving is the component's own word on whether the group does its work.
	Serving bool
}

// Report fills the part of the status that all groups share.
func Report(g v1alpha1.Group, s observation.Snapshot, plan planning.Plan, work Work, set *conditions.Set) v1alpha1.GroupStatus {
	spec, before := g.GetComponentSpec(), g.GetGroupStatus()
	counts := rollout.Count(s, plan.Target.Hash)
	noteReason, note := findNote(g, s)
	reported := reportedOutcome(g, s, step.Worst(work.Acted, plan.Outcome))
	suspended, deleting := spec.Suspended && !IsSuspensionPaused(g, s), g.GetDeletionTimestamp() != nil
	set.Finish(conditions.Verdict{
		Serving:    work.Serving && !suspended,
		Summary:    describeServing(g, counts),
		Outcome:    reported,
		Unpause:    origin.OfGroup(g).Unset("paused"),
		Resume:     origin.OfGroup(g).Unset("suspended"),
		NoteReason: noteReason, Note: note,
		Paused:    spec.Paused && !deleting,
		Suspended: suspended && !deleting,
	})
	if _, stands := reportedSince(g, reported.Reason); !stands && stallsAfter(reported.Reason) > 0 {
		set.NotBefore(v1alpha1.ConditionReconciling, metav1.NewTime(s.Now))
	}
	reason, message := set.Headline()
	status := v1alpha1.GroupStatus{
		ObservedGeneration: g.GetGeneration(),
		Reason:             reason,
		Message:            message,
		Updated:            fmt.Sprintf("%d/%d", counts.Updated, max(counts.Exist, g.GetReplicas())),
		Conditions:         set.List(),
		Replicas:           counts.Exist,
		ReadyReplicas:      counts.Ready,
		UpdatedReplicas:    counts.Updated,
		Selector:           workload.SelectorText(g),
		CurrentRevision:    before.CurrentRevision,
		UpdateRevision:     plan.Target.Hash,
		Version:            before.Version,
		Volumes:            requestedVolumes(g, s),
		Certificates:       s.Certificates.Statuses(s.Now),
	}
	if status.UpdateRevision == "" {
		status.UpdateRevision = before.UpdateRevision
	}
	// One that is deleted to be restarted counts, as it comes back. One that has the revision may be
	// Ready with the pod of another, until that is stopped.
	older := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		return !member.HasLeft(i) && i.Spec.Revision != plan.Target.Hash || i.DeletionTimestamp == nil && !member.IsSettled(i)
	})
	if plan.Target.Hash != "" && counts.Exist > 0 && !older {
		status.CurrentRevision = plan.Target.Hash
		status.Version = spec.Version
	}
	return status
}

// IsSuspensionPaused reports whether a group that is to be suspended runs on, because it is paused.
func IsSuspensionPaused(g v1alpha1.Group, s observation.Snapshot) bool {
	return g.GetComponentSpec().Suspended && g.GetComponentSpec().Paused &&
		slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return i.Status.PodUID != "" })
}

// stallsAfter is for how long a reason may stand before it is a matter for a user; 0 for
// always.
func stallsAfter(reason string) time.Duration {
	switch reason {
	case v1alpha1.ReasonScaleInRefused:
		return 30 * time.Second // a store that is just being restarted comes back
	case v1alpha1.ReasonWaitingForCertificate:
		return time.Minute
	}
	return 0
}

// reportedSince is when a group began to report a reason that it still reports; the zero time if
// it has become a matter for a user. UpToDate tells for how long it has not been that, for
// whatever reasons; Reconciling begins again with a reason that stalls.
func reportedSince(g v1alpha1.Group, reason string) (since time.Time, stands bool) {
	said := g.GetGroupStatus().Conditions
	if c := meta.FindStatusCondition(said, v1alpha1.ConditionStalled); c != nil && c.Reason == reason {
		return time.Time{}, true
	}
	if c := meta.FindStatusCondition(said, v1alpha1.ConditionReconciling); c != nil && c.Reason == reason {
		return c.LastTransitionTime.Time, true
	}
	return time.Time{}, false
}

// reportedOutcome is how an outcome is reported: about the object that a user edits, and as a stall if
// only a user can help. The reconcile itself ends as it would.
func reportedOutcome(g v1alpha1.Group, s observation.Snapshot, o step.Outcome) step.Outcome {
	if o.Reason == v1alpha1.ReasonInvalidSpec {
		o.Message = origin.OfGroup(g).Translate(o.Message)
	}
	if o.Kind != step.KindWait && o.Kind != step.KindAfter {
		return o
	}
	since, stands := reportedSince(g, o.Reason)
	limit := stallsAfter(o.Reason)
	overdue := limit > 0 && stands && s.Now.Sub(since) >= limit
	stalled := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		c := gate.FindCurrentCondition(i.Status.Conditions, i.Generation, v1alpha1.ConditionStalled)
		// The group itself replaces a member whose claim is lost, where it may.
		return c != nil && c.Reason == o.Reason && c.Reason != v1alpha1.ReasonClaimLost && strings.HasPrefix(o.Message, "Instance "+i.Name+": ")
	})
	if overdue || stalled {
		o.Kind = step.KindStall
	}
	return o
}

// describeServing says how a group serves. It may do so before its Instances report Ready, and
// while more of them are ready than are wanted.
func describeServing(g v1alpha1.Group, c rollout.Counts) string {
	switch wanted := g.GetReplicas(); {
	case wanted == 0:
		return "spec.replicas is 0"
	case c.Ready == 0:
		return fmt.Sprintf("serving; %d Instances have not reported Ready yet", wanted)
	case c.Ready > wanted:
		return fmt.Sprintf("%d Instances are ready, %d more than spec.replicas", c.Ready, c.Ready-wanted)
	default:
		return fmt.Sprintf("%d of %d Instances are ready", c.Ready, wanted)
	}
}

// findNote reports what is out of the ordinary with a group that is what its spec asks for; empty
// if nothing is.
func findNote(g v1alpha1.Group, s observation.Snapshot) (reason, note string) {
	if expiring := s.Certificates.DescribeExpiry(g, s.PDGroup, s.Now); expiring != "" {
		return v1alpha1.ReasonCertificateExpiring, expiring
	}
	if s.CatchesUp(g) {
		return v1alpha1.ReasonRecovering, "a store that was away catches up, and a drain evicts no other one until then; everything matches the spec"
	}
	return noteLeaderless(s)
}

// noteLeaderless notes the members that lead nothing because a user asked; empty if
// none does.
func noteLeaderless(s observation.Snapshot) (reason, note string) {
	var names []string
	for _, i := range s.Instances {
		if request, asked := member.EvictionRequest(i); asked && i.Annotations[v1alpha1.AnnotationLeadersEvicted] == request {
			names = append(names, i.Name)
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	slices.Sort(names)
	return v1alpha1.ReasonLeadersEvicted, fmt.Sprintf("no leaders on %s (annotation %s); everything matches the spec", strings.Join(names, ", "), v1alpha1.AnnotationEvictLeaders)
}

// requestedVolumes returns the most that a claim of the group asks for, of each
// volume of the spec: what the spec may be set back to. A claim that is not known
// yet may ask for what its Instance says.
func requestedVolumes(g v1alpha1.Group, s observation.Snapshot) []v1alpha1.RequestedVolume {
	var out []v1alpha1.RequestedVolume
	for _, v := range g.GetComponentSpec().Volumes {
		most := resource.Quantity{}
		for _, i := range s.Instances {
			size := &resource.Quantity{}
			if has := member.VolumeStatus(i, v.Name); has != nil && has.Requested != nil {
				size = has.Requested
			} else if asked := member.ClaimTemplate(i.Spec.VolumeClaimTemplates, v.Name); asked != nil {
				size = &asked.Storage
			}
			if size.Cmp(most) > 0 {
				most = size.DeepCopy()
			}
		}
		out = append(out, v1alpha1.RequestedVolume{Name: v.Name, Requested: most})
	}
	return out
}
