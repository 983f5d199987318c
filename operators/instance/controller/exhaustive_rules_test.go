package controller

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// facts are what the rules say about a state, found out without the plan's own
// functions where those are what is judged.
type facts struct {
	deleting, draining, leaving bool // leaving: nobody else holds the Instance
	owner                       podOwner
	running                     bool // a pod of ours that is neither ended nor ending
}

func factsOf(s *snapshot) facts {
	i := s.instance
	f := facts{deleting: i.DeletionTimestamp != nil, owner: foreignPod}
	f.draining = slices.Contains(i.Finalizers, v1alpha1.FinalizerMember) && !s.ownerless
	f.leaving = f.deleting && !f.draining && (slices.Contains(i.Finalizers, v1alpha1.FinalizerInstance) || s.ownerless)
	if s.pod != nil {
		f.owner = ownerOf(i, s.pod)
		f.running = f.owner != foreignPod && s.pod.DeletionTimestamp == nil && s.pod.Status.Phase != corev1.PodFailed && s.pod.Status.Phase != corev1.PodSucceeded
	}
	return f
}

// unsafeIn returns which rules the plan for a state breaks.
func unsafeIn(s *snapshot, p *plan) []string {
	f := factsOf(s)
	var out []string
	rule := func(holds bool, sentence string) {
		if !holds {
			out = append(out, sentence)
		}
	}
	none := actions(p) == ""
	rule(none || s.err == nil, "something is done although the state could not be read")
	rule(none || f.leaving || !s.instance.Spec.Paused, "something is done although it is paused")
	rule(none || f.leaving || s.templateErr == nil, "something is done although the template is invalid")
	rule(!f.deleting || slices.Contains(s.instance.Finalizers, v1alpha1.FinalizerInstance) || f.leaving || none, "something is done for an Instance that has let go of everything")

	disruptive := 0
	for _, yes := range []bool{p.deletePod != nil, p.createPod != nil, p.removeFinalizer} {
		if yes {
			disruptive++
		}
	}
	rule(disruptive <= 1, "the pod is stopped, started or let go of in one plan")
	rule(p.deletePod == nil || len(p.deleteClaims) == 0 || s.pod.Spec.NodeName == "", "a pod that may have run and its claim go in one plan")
	rule(p.createPod == nil || len(p.deleteClaims)+len(p.createClaims)+len(p.withdraw) == 0, "a pod is made while its claims are not all there")

	out = append(out, unsafeForClaims(s, p, f)...)
	return append(out, unsafeForPod(s, p, f)...)
}

// unsafeForClaims: the data of a member goes with consent or not at all.
func unsafeForClaims(s *snapshot, p *plan, f facts) []string {
	var out []string
	policy := s.instance.Spec.ClaimRetention.WhenDeleted
	left := meta.IsStatusConditionTrue(s.instance.Status.Conditions, v1alpha1.ConditionDrained) || s.instance.Spec.Retire && !s.ownerless
	if s.instance.Spec.Retire && left {
		policy = s.instance.Spec.ClaimRetention.WhenScaled
	}
	for _, d := range p.deleteClaims {
		c := d.claim
		empty := d.unbound && c.Spec.VolumeName == "" && c.Status.Phase == corev1.ClaimPending && (s.pod == nil || s.pod.Spec.NodeName == "")
		consent := f.leaving && policy == v1alpha1.DeleteClaim && f.owner == foreignPod
		switch {
		case !empty && !consent:
			out = append(out, "a claim is deleted without consent")
		case c.Labels[v1alpha1.LabelInstance] != s.instance.Name:
			out = append(out, "a claim of somebody else is deleted")
		case !empty && slices.ContainsFunc(s.volumes, func(v volume) bool { return v.claim == c && v.recorded != "" && v.recorded != c.UID }):
			out = append(out, "a claim is deleted that no pod of the Instance has used")
		case c.Annotations[v1alpha1.AnnotationRetired] != "":
			out = append(out, "a retired claim is deleted")
		case c.Annotations[v1alpha1.AnnotationMadeBy] == "" || c.Annotations[v1alpha1.AnnotationAdopt] != "":
			out = append(out, "a claim is deleted that no operator has made")
		}
	}
	for _, c := range p.patchClaims {
		if metadata, ok := c.body["metadata"].(map[string]any); ok && !left {
			if annotations, ok := metadata["annotations"].(map[string]any); ok && annotations[v1alpha1.AnnotationRetired] != nil {
				out = append(out, "a claim is retired whose member has not left")
			}
		}
		if c.claim.Labels[v1alpha1.LabelManagedBy] == "helm" {
			out = append(out, "a claim of somebody else is changed")
		}
		if metadata, ok := c.body["metadata"].(map[string]any); !ok || metadata["uid"] != string(c.claim.UID) {
			out = append(out, "a claim is changed whichever it is by then")
		}
	}
	for _, name := range p.withdraw {
		at := slices.IndexFunc(s.volumes, func(v volume) bool { return v.template.Name == name })
		if c := s.volumes[at].claim; c.Spec.VolumeName != "" || c.Status.Phase != corev1.ClaimPending {
			out = append(out, "the record of a claim that was used is withdrawn")
		}
	}
	return out
}

// unsafeForPod: a pod starts on the member's own data and stops for a reason.
func unsafeForPod(s *snapshot, p *plan, f facts) []string {
	var out []string
	rule := func(holds bool, sentence string) {
		if !holds {
			out = append(out, sentence)
		}
	}
	spec := s.instance.Spec
	if p.createPod != nil {
		rule(s.pod == nil, "a pod is made although there is one")
		rule(!spec.Suspended, "a pod is made although it is suspended")
		rule(!f.deleting || f.draining, "a pod is made for an Instance that goes away")
		rule(p.addFinalizer || slices.Contains(s.instance.Finalizers, v1alpha1.FinalizerInstance), "a pod is made without the finalizer")
		for _, v := range s.volumes {
			rule(v.claim != nil && v.claim.UID == v.recorded, "a pod is made on another claim than the recorded one")
			rule(v.claim != nil && usable(v.claim), "a pod is made on a claim that is not usable")
		}
	}
	if d := p.deletePod; d != nil {
		rule(d.pod == s.pod && f.owner != foreignPod, "a pod of somebody else is stopped")
		rule(s.pod.DeletionTimestamp == nil, "a pod is stopped twice")
		rule(!f.leaving || f.owner == ownPod, "an orphan is stopped with the Instance")
		stale := (s.pod.Labels[v1alpha1.LabelRevision] != spec.Revision || s.pod.UID == spec.StopPod) && d.next != nil
		rule(!f.running || f.leaving || spec.Suspended || stale, "a pod that runs is stopped for nothing")
		if f.running && !f.leaving {
			for _, v := range s.volumes {
				rule(v.claim == nil || v.claim.DeletionTimestamp == nil, "a pod is stopped while its claim is being deleted")
				rule(spec.Suspended || v.claim == nil || usable(v.claim), "a pod is stopped that could not be started again")
				rule(spec.Suspended || spec.ClaimLoss == v1alpha1.RecreateLostClaim || v.recorded == "" || (v.claim != nil && v.claim.UID == v.recorded),
					"a pod is stopped whose data is lost")
			}
		}
	}
	if p.patchPod != nil {
		metadata, ok := p.patchPod.body["metadata"].(map[string]any)
		rule(f.owner != foreignPod, "a pod of somebody else is changed")
		rule(ok && metadata["uid"] == string(s.pod.UID), "a pod is changed whichever it is by then")
	}
	if p.removeFinalizer {
		rule(f.leaving, "the finalizer goes although the Instance stays or its member is being drained")
		rule(f.owner != ownPod, "the finalizer goes before the pod is gone")
		rule(!slices.Contains(s.instance.Finalizers, metav1.FinalizerOrphanDependents), "the finalizer goes before the orphans are released")
	}
	return out
}

// usable says whether a pod may start on a claim.
func usable(c *corev1.PersistentVolumeClaim) bool {
	return c.DeletionTimestamp == nil && c.Labels[v1alpha1.LabelManagedBy] != "helm" && c.Annotations[v1alpha1.AnnotationRetired] == "" && c.Status.Phase != corev1.ClaimLost
}

// unsaid: whatever is not as the spec says has a reason, a word for a person and
// a time to look again.
func unsaid(s *snapshot, p *plan, o step.Outcome, known []string) []string {
	f := factsOf(s)
	if o.Kind == step.KindDone {
		arrived := !f.deleting && (s.pod == nil) == s.instance.Spec.Suspended && (s.pod == nil || f.running)
		if actions(p) == "" && !arrived {
			return []string{"nothing is done and nothing is said"}
		}
		return nil
	}
	return unnamed(o, known)
}

// unnamed returns what is missing in an outcome that is not Done. known are the
// reasons that Ready may have.
func unnamed(o step.Outcome, known []string) []string {
	var out []string
	if !slices.Contains(known, o.Reason) {
		out = append(out, fmt.Sprintf("reason %q is none of Ready's", o.Reason))
	}
	if o.Message == "" || strings.ContainsAny(o.Message, "\r\n") {
		out = append(out, "the message is not one line")
	}
	switch {
	case o.Kind == step.KindFail && o.Err == nil:
		out = append(out, "a failure without an error")
	case o.Kind != step.KindFail && o.After <= 0:
		out = append(out, "no wait without deadline")
	case o.Kind == step.KindWait && o.Source == "":
		out = append(out, "a wait does not name what will end it")
	}
	return out
}

// statuses checks what is reported, each list of conditions only once.
type statuses struct {
	seen map[string]bool
	// known are the reasons that Ready may have.
	known []string
}

func newStatuses() statuses {
	info, _ := v1alpha1.LookupCondition(v1alpha1.ConditionReady)
	return statuses{map[string]bool{}, info.Reasons}
}

// wrong returns what is wrong with the status that is reported of a state.
func (c statuses) wrong(s *snapshot, p *plan, found finding) []string {
	var out []string
	is := func(kind string) bool { return meta.IsStatusConditionTrue(found.after.Conditions, kind) }
	if is(v1alpha1.ConditionReady) && s.err == nil && (!is(v1alpha1.ConditionPodReady) || !is(v1alpha1.ConditionVolumesReady)) {
		out = append(out, "Ready without its parts")
	}
	if is(v1alpha1.ConditionUpToDate) != (found.outcome.Kind == step.KindDone) {
		out = append(out, "UpToDate and the outcome differ")
	}
	out = append(out, unsaid(s, p, found.outcome, c.known)...)
	for _, v := range found.after.Volumes {
		was := recordedClaim(s.instance, v.Name)
		if was != "" && v.ClaimUID != was && s.instance.Spec.ClaimLoss == v1alpha1.HoldOnClaimLoss && !slices.Contains(p.withdraw, v.Name) {
			out = append(out, "the record of a lost claim is forgotten")
		}
	}
	key := fmt.Sprint(found.after.Conditions)
	if c.seen[key] {
		return out
	}
	c.seen[key] = true
	i := &v1alpha1.Instance{TypeMeta: s.instance.TypeMeta, ObjectMeta: s.instance.ObjectMeta}
	i.Status.Conditions = found.after.Conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(i)
	if err != nil {
		return append(out, err.Error())
	}
	return append(out, invariants.Check(&unstructured.Unstructured{Object: content})...)
}
