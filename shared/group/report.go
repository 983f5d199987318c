package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Counts of a group's Instances.
type Counts struct {
	// Exist, Ready and Updated count Instances; Updated ones are at the wanted
	// revision.
	Exist, Ready, Updated int32
}

// Count counts the Instances of a snapshot.
func Count(s Snapshot, revision string) Counts {
	var c Counts
	for _, i := range s.Instances {
		if i.DeletionTimestamp != nil {
			continue
		}
		c.Exist++
		if InstanceServes(i) {
			c.Ready++
		}
		if i.Spec.Revision == revision && revision != "" {
			c.Updated++
		}
	}
	return c
}

// InstanceServes reports whether an Instance was Ready when its operator last
// looked, be it at an older generation: a change of its spec does not stop a pod
// by itself, and what follows from the change is reported when it happens.
func InstanceServes(i *v1alpha1.Instance) bool {
	return meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionReady)
}

// InstanceReady reports whether an Instance is Ready at its current generation.
func InstanceReady(i *v1alpha1.Instance) bool {
	c := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionReady)
	return c != nil && c.Status == metav1.ConditionTrue
}

// VolumeLost reports whether a claim of an Instance is there and its volume is not,
// and has been given up by Kubernetes.
func VolumeLost(i *v1alpha1.Instance) bool {
	return ClaimLost(i) && slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.Phase == string(corev1.ClaimLost) })
}

// Unreachable reports whether an Instance's pod is on a node that does not answer:
// it adds nothing now, and nothing of it can be changed until the node is back.
func Unreachable(i *v1alpha1.Instance) bool {
	c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonNodeUnreachable
}

// ClaimLost reports whether the instance operator holds an Instance back because a
// claim with its data is gone.
func ClaimLost(i *v1alpha1.Instance) bool {
	c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionVolumesReady)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonClaimLost
}

// Report fills the part of the status that all groups share. serving is the
// component's own word on whether the group does its work.
func Report(g v1alpha1.Group, s Snapshot, plan Plan, outcome step.Outcome, set *conditions.Set, serving bool) v1alpha1.GroupStatus {
	spec, before := g.GetComponentSpec(), g.GetGroupStatus()
	counts := Count(s, plan.Target.Hash)
	noteReason, note := leaderless(s)
	set.Finish(conditions.Verdict{
		Serving:    serving && (!spec.Suspended || spec.Paused),
		Summary:    summary(g, counts),
		Outcome:    told(g, s, step.Worst(outcome, plan.Outcome)),
		Unpause:    origin.Of(g).Unset("paused"),
		Resume:     origin.Of(g).Unset("suspended"),
		NoteReason: noteReason, Note: note,
		Paused:    spec.Paused,
		Suspended: spec.Suspended && !spec.Paused,
	})
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
	}
	if status.UpdateRevision == "" {
		status.UpdateRevision = before.UpdateRevision
	}
	// One that is deleted to be restarted counts, as it comes back.
	older := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return !left(i) && i.Spec.Revision != plan.Target.Hash })
	if plan.Target.Hash != "" && counts.Exist > 0 && !older && counts.Ready == counts.Exist {
		status.CurrentRevision = plan.Target.Hash
		status.Version = spec.Version
	}
	return status
}

// refusalDelay is for how long a scale-in may be refused before it counts as one for a
// person: a store that is just being restarted comes back.
const refusalDelay = 30 * time.Second

// told is how an outcome is told: about the object that a person edits, and as a stall if
// only a person can help. The reconcile itself ends as it would.
func told(g v1alpha1.Group, s Snapshot, o step.Outcome) step.Outcome {
	if o.Reason == v1alpha1.ReasonInvalidSpec {
		o.Message = origin.Of(g).Translate(o.Message)
	}
	if o.Kind != step.KindWait && o.Kind != step.KindAfter {
		return o
	}
	before := meta.FindStatusCondition(g.GetGroupStatus().Conditions, v1alpha1.ConditionUpToDate)
	refused := o.Reason == v1alpha1.ReasonScaleInRefused && before != nil && before.Reason == o.Reason && s.Now.Sub(before.LastTransitionTime.Time) >= refusalDelay
	stalled := slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool {
		c := gate.Current(i.Status.Conditions, i.Generation, v1alpha1.ConditionStalled)
		// A lost claim is made up for by the group itself, where it may be.
		return c != nil && c.Reason == o.Reason && c.Reason != v1alpha1.ReasonClaimLost && strings.HasPrefix(o.Message, "Instance "+i.Name+": ")
	})
	if refused || stalled {
		o.Kind = step.KindStall
	}
	return o
}

// summary tells how a group serves. It may do so before its Instances have said that
// they are ready, and while more of them are than are wanted.
func summary(g v1alpha1.Group, c Counts) string {
	switch wanted := g.GetReplicas(); {
	case wanted == 0:
		return "spec.replicas is 0"
	case c.Ready == 0:
		return fmt.Sprintf("it serves, and its %d Instances have yet to say that they are ready", wanted)
	case c.Ready > wanted:
		return fmt.Sprintf("%d Instances are ready, %d more than spec.replicas", c.Ready, c.Ready-wanted)
	default:
		return fmt.Sprintf("%d of %d Instances are ready", c.Ready, wanted)
	}
}

// leaderless notes the members that lead nothing because a person asked; empty if
// none does.
func leaderless(s Snapshot) (reason, note string) {
	var names []string
	for _, i := range s.Instances {
		if request, asked := LeadsNothing(i); asked && i.Annotations[v1alpha1.AnnotationLeadersEvicted] == request {
			names = append(names, i.Name)
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	slices.Sort(names)
	return v1alpha1.ReasonLeadersEvicted, fmt.Sprintf("no leaders on %s (annotation %s); everything matches the spec", strings.Join(names, ", "), v1alpha1.AnnotationEvictLeaders)
}
