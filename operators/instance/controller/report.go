package controller

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/operators/instance/podtemplate"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// part is what the instance operator owns in the status of an Instance.
type part struct {
	ObservedGeneration int64                   `json:"observedGeneration,omitempty"`
	OperatorVersion    string                  `json:"operatorVersion,omitempty"`
	Conditions         []metav1.Condition      `json:"conditions,omitempty"`
	Reason             string                  `json:"reason,omitempty"`
	Message            string                  `json:"message,omitempty"`
	PodUID             types.UID               `json:"podUID,omitempty"`
	PodIP              string                  `json:"podIP,omitempty"`
	NodeName           string                  `json:"nodeName,omitempty"`
	Revision           string                  `json:"revision,omitempty"`
	MadeFrom           string                  `json:"madeFrom,omitempty"`
	Volumes            []v1alpha1.VolumeStatus `json:"volumes,omitempty"`
	// PodIsNew says that the Instance had no pod, and that it is not Ready: nothing acts on it.
	PodIsNew bool `json:"-"`
	// IsGoing says that the Instance is being deleted: operators act on its pod and who must act.
	IsGoing bool `json:"-"`
	// IsFirst says that the Instance had no status yet, and has a pod that is not Ready.
	IsFirst bool `json:"-"`
}

// SetOperatorVersion says which version of the operator writes the status.
func (p *part) SetOperatorVersion(version string) { p.OperatorVersion = version }

// IsPassing reports whether the status is that of a pod that was just made, or soon ends.
func (p *part) IsPassing() bool { return p.PodIsNew || p.IsGoing }

// DropWords empties what only people read while a pod starts: the reasons that its start passes
// through, its node, its address, its claims until they are bound, and a new pod itself, with
// the spec that was seen of it.
func (p *part) DropWords() {
	p.Reason, p.Message, p.PodIP, p.NodeName = "", "", "", ""
	if p.IsPassing() {
		p.ObservedGeneration, p.OperatorVersion = 0, ""
	}
	if p.PodIsNew {
		p.PodUID, p.Revision, p.MadeFrom = "", "", ""
	}
	p.Conditions = slices.DeleteFunc(slices.Clone(p.Conditions), func(c metav1.Condition) bool {
		return p.IsFirst || p.IsGoing && (c.Type == v1alpha1.ConditionReconciling || c.Type == v1alpha1.ConditionUpToDate)
	})
	for i := range p.Conditions {
		p.dropWords(&p.Conditions[i])
	}
	p.Volumes = slices.Clone(p.Volumes)
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Phase != string(corev1.ClaimLost) {
			v.Phase, v.PersistentVolume, v.Capacity, v.NodeSelectors = "", "", nil, nil
		}
	}
}

func (p *part) dropWords(c *metav1.Condition) {
	c.Message = ""
	if p.IsPassing() { // for how long it has been so does not matter either
		c.ObservedGeneration, c.LastTransitionTime = 0, metav1.Time{}
	}
	if p.PodIsNew && c.Reason == v1alpha1.ReasonPodReady {
		c.Status, c.Reason = metav1.ConditionFalse, ""
	}
	switch c.Reason {
	case v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodPending, v1alpha1.ReasonPodNotReady, v1alpha1.ReasonGatesPending, v1alpha1.ReasonProgressing:
		c.Reason = ""
	case v1alpha1.ReasonClaimPending, v1alpha1.ReasonVolumesReady:
		c.Reason = ""
		if c.Type == v1alpha1.ConditionVolumesReady {
			c.Status, c.LastTransitionTime = "", metav1.Time{}
		}
	}
	if p.IsGoing {
		c.Reason = ""
	}
}

// finding is what a reconcile has found out.
type finding struct {
	before, after part
	transitions   []metav1.Condition
	outcome       step.Outcome
	// again is when a ready pod has to be looked at once more, zero for never.
	again time.Duration
}

// reportStatus computes conditions and status.
func reportStatus(s *observation.Snapshot, p *planning.Plan, acted step.Outcome, now time.Time) finding {
	instance := s.Instance
	before := partOf(instance)
	set := conditions.New(before.Conditions, instance.Generation, now)
	if s.Err != nil {
		return reportReadError(s, p, before, set)
	}
	volumes, pod := volumeclaim.Outcome(s, acted), podstate.Outcome(s, p, acted)
	setCondition(set, v1alpha1.ConditionVolumesReady, volumes, v1alpha1.ReasonVolumesReady, volumeclaim.Summary(s))
	reason, summary, again := podstate.Readiness(s, now)
	setCondition(set, v1alpha1.ConditionPodReady, pod, reason, summary)
	if set.Is(v1alpha1.ConditionPodReady) {
		// A container that was restarted unobserved has made the pod
		// Ready again, and has forgotten the orders that its member got.
		set.NotBefore(v1alpha1.ConditionPodReady, podstate.Condition(s.Pod, corev1.PodReady).LastTransitionTime)
	}

	deleting := instance.DeletionTimestamp != nil
	suspended := instance.Spec.Suspended && !deleting
	outcome := worstOutcome(s, p, outcomes{acted, volumes, pod}, suspended)
	noteReason, note := describeLeaderEviction(instance)
	set.Finish(conditions.Verdict{
		NoteReason: noteReason, Note: note,
		Unpause: observation.OriginOf(s).Unset("paused"), Resume: describeResume(s),
		Serving:   set.Is(v1alpha1.ConditionPodReady) && set.Is(v1alpha1.ConditionVolumesReady) && podstate.CheckGates(s).Kind == step.KindDone,
		Summary:   podstate.Summary(s),
		Outcome:   podstate.StallAfterGrace(set, outcome, now),
		Paused:    instance.Spec.Paused && (!deleting || observation.IsDraining(s)),
		Suspended: suspended,
	})
	after := part{ObservedGeneration: instance.Generation, Conditions: set.List(), Volumes: volumeclaim.Status(s, p)}
	after.Reason, after.Message = set.Headline()
	if pod := s.Pod; pod != nil && podstate.OwnerOf(instance, pod) != podstate.ForeignPod {
		after.PodUID, after.PodIP, after.NodeName = pod.UID, pod.Status.PodIP, pod.Spec.NodeName
		after.Revision, after.MadeFrom = pod.Labels[v1alpha1.LabelRevision], pod.Annotations[v1alpha1.AnnotationMadeFrom]
		if p.PatchPod != nil && acted.Kind == step.KindDone {
			after.Revision, after.MadeFrom = instance.Spec.Revision, podtemplate.MadeFrom(instance, pod)
		}
	}
	after.PodIsNew = before.PodUID == "" && !set.Is(v1alpha1.ConditionReady) && !deleting && !suspended
	after.IsFirst = after.PodIsNew && after.PodUID != "" && len(before.Conditions) == 0
	// That a suspended one has stopped others rely on, for its present spec.
	after.IsGoing = deleting && !instance.Spec.Suspended
	before.PodIsNew, before.IsFirst, before.IsGoing = after.PodIsNew, after.IsFirst, after.IsGoing
	if left := podstate.GraceLeft(set, outcome, now); left > 0 && (outcome.After == 0 || left < outcome.After) {
		outcome.After = left
	}
	return finding{before: before, after: after, transitions: set.Transitions(), outcome: outcome, again: again}
}

// describeLeaderEviction notes that the member leads nothing because a user asked, as its
// group's operator has answered; empty if it may lead.
func describeLeaderEviction(i *v1alpha1.Instance) (reason, note string) {
	if _, asked := i.Annotations[v1alpha1.AnnotationEvictLeaders]; !asked || i.Annotations[v1alpha1.AnnotationLeadersEvicted] == "" {
		return "", ""
	}
	return v1alpha1.ReasonLeadersEvicted, "it has no leaders (annotation " + v1alpha1.AnnotationEvictLeaders + "); everything matches the spec"
}

// outcomes are how far the plan was carried out, and what stands of volumes and pod.
type outcomes struct{ acted, volumes, pod step.Outcome }

// worstOutcome picks what a user should hear first: among equals what the operator
// does, then the cause rather than what follows from it.
func worstOutcome(s *observation.Snapshot, p *planning.Plan, now outcomes, suspended bool) step.Outcome {
	all := []step.Outcome{now.acted}
	if p.Outcome.Reason != v1alpha1.ReasonCreating {
		all = append(all, p.Outcome)
	}
	switch {
	case suspended:
	case volumeclaim.IsPodScheduledFirst(s):
		all = append(all, now.pod, now.volumes)
	default:
		all = append(all, now.volumes, now.pod)
	}
	all = append(all, p.Outcome)
	if !suspended {
		all = append(all, podstate.CheckGates(s))
		for _, v := range s.Volumes {
			all = append(all, volumeclaim.ChangeOutcome(s, v))
		}
	}
	return step.Worst(all...)
}

// reportReadError reports that something could not be read: what was known before
// stands, but is not called current.
func reportReadError(s *observation.Snapshot, p *planning.Plan, before part, set *conditions.Set) finding {
	for _, c := range []struct{ kind, reason string }{
		{v1alpha1.ConditionPodReady, v1alpha1.ReasonPodPending},
		{v1alpha1.ConditionVolumesReady, v1alpha1.ReasonClaimPending},
	} {
		set.MarkUnknown(c.kind, c.reason, "not known: "+p.Outcome.Message)
	}
	set.Finish(conditions.Verdict{
		Serving: meta.IsStatusConditionTrue(before.Conditions, v1alpha1.ConditionReady),
		Summary: "it was ready when it could last be looked at", Outcome: p.Outcome, Paused: s.Instance.Spec.Paused,
	})
	after := before
	after.ObservedGeneration, after.Conditions = s.Instance.Generation, set.List()
	after.Reason, after.Message = set.Headline()
	return finding{before: before, after: after, transitions: set.Transitions(), outcome: p.Outcome}
}

// setCondition sets a condition of our own from an outcome: True when it is Done.
func setCondition(set *conditions.Set, kind string, o step.Outcome, reason, summary string) {
	if o.Kind == step.KindDone {
		set.MarkTrue(kind, reason, summary)
		return
	}
	if o.Reason == v1alpha1.ReasonCreating {
		o.Reason = v1alpha1.ReasonClaimPending
	}
	set.MarkFalse(kind, o.Reason, o.Message)
}

// ownConditionTypes lists the condition types that the instance operator sets.
func ownConditionTypes() []string {
	return []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionUpToDate, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled,
		v1alpha1.ConditionPaused, v1alpha1.ConditionPodReady, v1alpha1.ConditionVolumesReady,
	}
}

// partOf returns our part of the status that an Instance carries, in the order
// in which report lists it.
func partOf(instance *v1alpha1.Instance) part {
	status := instance.Status
	out := part{
		ObservedGeneration: status.ObservedGeneration, OperatorVersion: status.OperatorVersion, Reason: status.Reason, Message: status.Message, PodUID: status.PodUID, PodIP: status.PodIP, NodeName: status.NodeName,
		Revision: status.Revision, MadeFrom: status.MadeFrom, Volumes: slices.Clone(status.Volumes),
	}
	types := ownConditionTypes()
	for _, kind := range v1alpha1.ConditionTypes() {
		if c := meta.FindStatusCondition(status.Conditions, kind); c != nil && slices.Contains(types, kind) {
			out.Conditions = append(out.Conditions, *c)
		}
	}
	rank := func(v v1alpha1.VolumeStatus) int {
		return slices.IndexFunc(instance.Spec.VolumeClaimTemplates, func(t v1alpha1.VolumeClaimTemplate) bool { return t.Name == v.Name })
	}
	slices.SortStableFunc(out.Volumes, func(a, b v1alpha1.VolumeStatus) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// lookAgain is when an Instance has to be looked at although nothing happens: its
// pod is ready, and not yet believed to stay so.
func (f finding) lookAgain() time.Duration {
	if !meta.IsStatusConditionTrue(f.after.Conditions, v1alpha1.ConditionPodReady) {
		return 0
	}
	return f.again
}

// describeResume reports how the pod of a suspended Instance comes back.
func describeResume(s *observation.Snapshot) string {
	if s.Instance.Spec.Retire {
		return "its member has left, and the Instance is about to go"
	}
	return observation.OriginOf(s).Unset("suspended")
}
