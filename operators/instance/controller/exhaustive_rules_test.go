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
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/podstate"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/invariants"
)

// facts are what the rules say about a state, found out without the plan's own
// functions where those are what is judged.
type facts struct {
	deleting, draining, leaving bool // leaving: no other finalizer holds the Instance
	owner                       podstate.PodOwner
	running                     bool // a pod of ours that is neither ended nor ending
}

func factsOf(s *observation.Snapshot) facts {
	i := s.Instance
	f := facts{deleting: i.DeletionTimestamp != nil, owner: podstate.ForeignPod}
	f.draining = slices.Contains(i.Finalizers, v1alpha1.FinalizerMember) && !s.Ownerless
	f.leaving = f.deleting && !f.draining && (slices.Contains(i.Finalizers, v1alpha1.FinalizerInstance) || s.Ownerless)
	if s.Pod != nil {
		f.owner = podstate.OwnerOf(i, s.Pod)
		f.running = f.owner != podstate.ForeignPod && s.Pod.DeletionTimestamp == nil && s.Pod.Status.Phase != corev1.PodFailed && s.Pod.Status.Phase != corev1.PodSucceeded
	}
	return f
}

// unsafeIn returns which rules the plan for a state breaks.
func unsafeIn(s *observation.Snapshot, p *planning.Plan) []string {
	f := factsOf(s)
	var out []string
	rule := func(holds bool, sentence string) {
		if !holds {
			out = append(out, sentence)
		}
	}
	none := actions(p) == ""
	rule(none || s.Err == nil, "something is done although the state could not be read")
	rule(none || f.leaving || !s.Instance.Spec.Paused, "something is done although it is paused")
	rule(none || f.leaving || s.TemplateErr == nil, "something is done although the template is invalid")
	rule(!f.deleting || slices.Contains(s.Instance.Finalizers, v1alpha1.FinalizerInstance) || f.leaving || none, "something is done for an Instance that has released everything")

	disruptive := 0
	for _, yes := range []bool{p.DeletePod != nil, p.CreatePod != nil, p.RemoveFinalizer} {
		if yes {
			disruptive++
		}
	}
	rule(disruptive <= 1, "the pod is stopped, started or released in one plan")
	rule(p.DeletePod == nil || len(p.DeleteClaims) == 0 || s.Pod.Spec.NodeName == "", "a pod that may have run and its claim go in one plan")
	rule(p.CreatePod == nil || len(p.DeleteClaims)+len(p.CreateClaims)+len(p.Withdraw) == 0, "a pod is made while its claims are not all there")

	out = append(out, unsafeForClaims(s, p, f)...)
	return append(out, unsafeForPod(s, p, f)...)
}

// unsafeForClaims: the data of a member goes with consent or not at all.
func unsafeForClaims(s *observation.Snapshot, p *planning.Plan, f facts) []string {
	var out []string
	policy := s.Instance.Spec.ClaimRetention.WhenDeleted
	left := meta.IsStatusConditionTrue(s.Instance.Status.Conditions, v1alpha1.ConditionDrained) || s.Instance.Spec.Retire && !s.Ownerless
	if s.Instance.Spec.Retire && left {
		policy = s.Instance.Spec.ClaimRetention.WhenScaled
	}
	for _, d := range p.DeleteClaims {
		c := d.Claim
		empty := d.Unbound && c.Spec.VolumeName == "" && c.Status.Phase == corev1.ClaimPending && (s.Pod == nil || s.Pod.Spec.NodeName == "")
		consent := f.leaving && policy == v1alpha1.DeleteClaim && f.owner == podstate.ForeignPod
		switch {
		case !empty && !consent:
			out = append(out, "a claim is deleted without consent")
		case c.Labels[v1alpha1.LabelInstance] != s.Instance.Name:
			out = append(out, "a claim of another owner is deleted")
		case !empty && slices.ContainsFunc(s.Volumes, func(v observation.Volume) bool { return v.Claim == c && v.Recorded != "" && v.Recorded != c.UID }):
			out = append(out, "a claim is deleted that no pod of the Instance has used")
		case c.Annotations[v1alpha1.AnnotationRetired] != "":
			out = append(out, "a retired claim is deleted")
		case c.Annotations[v1alpha1.AnnotationMadeBy] == "" || c.Annotations[v1alpha1.AnnotationAdopt] != "":
			out = append(out, "a claim is deleted that no operator has made")
		}
	}
	for _, c := range p.PatchClaims {
		if metadata, ok := c.Body["metadata"].(map[string]any); ok && !left {
			if annotations, ok := metadata["annotations"].(map[string]any); ok && annotations[v1alpha1.AnnotationRetired] != nil {
				out = append(out, "a claim is retired whose member has not left")
			}
		}
		if c.Claim.Labels[v1alpha1.LabelManagedBy] == "helm" {
			out = append(out, "a claim of another owner is changed")
		}
		if metadata, ok := c.Body["metadata"].(map[string]any); !ok || metadata["uid"] != string(c.Claim.UID) {
			out = append(out, "a claim is changed whichever it is by then")
		}
	}
	for _, name := range p.Withdraw {
		at := slices.IndexFunc(s.Volumes, func(v observation.Volume) bool { return v.Template.Name == name })
		if c := s.Volumes[at].Claim; c.Spec.VolumeName != "" || c.Status.Phase != corev1.ClaimPending {
			out = append(out, "the record of a claim that was used is withdrawn")
		}
	}
	return out
}

// unsafeForPod: a pod starts on the member's own data and stops for a reason.
func unsafeForPod(s *observation.Snapshot, p *planning.Plan, f facts) []string {
	var out []string
	rule := func(holds bool, sentence string) {
		if !holds {
			out = append(out, sentence)
		}
	}
	spec := s.Instance.Spec
	if p.CreatePod != nil {
		rule(s.Pod == nil, "a pod is made although there is one")
		rule(!spec.Suspended, "a pod is made although it is suspended")
		rule(!f.deleting || f.draining, "a pod is made for an Instance that goes away")
		rule(p.AddFinalizer || slices.Contains(s.Instance.Finalizers, v1alpha1.FinalizerInstance), "a pod is made without the finalizer")
		for _, v := range s.Volumes {
			rule(v.Claim != nil && v.Claim.UID == v.Recorded, "a pod is made on another claim than the recorded one")
			rule(v.Claim != nil && isUsable(v.Claim), "a pod is made on a claim that is not usable")
		}
	}
	if d := p.DeletePod; d != nil {
		rule(d.Pod == s.Pod && f.owner != podstate.ForeignPod, "a pod of another owner is stopped")
		rule(s.Pod.DeletionTimestamp == nil, "a pod is stopped twice")
		rule(!f.leaving || f.owner == podstate.OwnPod, "an orphan is stopped with the Instance")
		stale := (s.Pod.Labels[v1alpha1.LabelRevision] != spec.Revision || s.Pod.UID == spec.StopPod) && d.Next != nil
		rule(!f.running || f.leaving || spec.Suspended || stale, "a pod that runs is stopped for nothing")
		if f.running && !f.leaving {
			for _, v := range s.Volumes {
				rule(v.Claim == nil || v.Claim.DeletionTimestamp == nil, "a pod is stopped while its claim is being deleted")
				rule(spec.Suspended || v.Claim == nil || isUsable(v.Claim), "a pod is stopped that could not be started again")
				rule(spec.Suspended || spec.ClaimLoss == v1alpha1.RecreateLostClaim || v.Recorded == "" || (v.Claim != nil && v.Claim.UID == v.Recorded),
					"a pod is stopped whose data is lost")
			}
		}
	}
	if p.PatchPod != nil {
		metadata, ok := p.PatchPod.Body["metadata"].(map[string]any)
		rule(f.owner != podstate.ForeignPod, "a pod of another owner is changed")
		rule(ok && metadata["uid"] == string(s.Pod.UID), "a pod is changed whichever it is by then")
	}
	if p.RemoveFinalizer {
		rule(f.leaving, "the finalizer goes although the Instance stays or its member is being drained")
		rule(f.owner != podstate.OwnPod, "the finalizer goes before the pod is gone")
		rule(!slices.Contains(s.Instance.Finalizers, metav1.FinalizerOrphanDependents), "the finalizer goes before the orphans are released")
	}
	return out
}

// isUsable says whether a pod may start on a claim.
func isUsable(c *corev1.PersistentVolumeClaim) bool {
	return c.DeletionTimestamp == nil && c.Labels[v1alpha1.LabelManagedBy] != "helm" && c.Annotations[v1alpha1.AnnotationRetired] == "" && c.Status.Phase != corev1.ClaimLost
}

// unsaid: whatever is not as the spec says has a reason, a word for a user and
// a time to look again.
func unsaid(s *observation.Snapshot, p *planning.Plan, o step.Outcome, known []string) []string {
	f := factsOf(s)
	if o.Kind == step.KindDone {
		arrived := !f.deleting && (s.Pod == nil) == s.Instance.Spec.Suspended && (s.Pod == nil || f.running)
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
func (c statuses) wrong(s *observation.Snapshot, p *planning.Plan, found finding) []string {
	var out []string
	is := func(kind string) bool { return meta.IsStatusConditionTrue(found.after.Conditions, kind) }
	if is(v1alpha1.ConditionReady) && s.Err == nil && (!is(v1alpha1.ConditionPodReady) || !is(v1alpha1.ConditionVolumesReady)) {
		out = append(out, "Ready without its parts")
	}
	if is(v1alpha1.ConditionUpToDate) != (found.outcome.Kind == step.KindDone) {
		out = append(out, "UpToDate and the outcome differ")
	}
	out = append(out, unsaid(s, p, found.outcome, c.known)...)
	for _, v := range found.after.Volumes {
		was := observation.RecordedClaim(s.Instance, v.Name)
		if was != "" && v.ClaimUID != was && s.Instance.Spec.ClaimLoss == v1alpha1.HoldOnClaimLoss && !slices.Contains(p.Withdraw, v.Name) {
			out = append(out, "the record of a lost claim is forgotten")
		}
	}
	key := fmt.Sprint(found.after.Conditions)
	if c.seen[key] {
		return out
	}
	c.seen[key] = true
	i := &v1alpha1.Instance{TypeMeta: s.Instance.TypeMeta, ObjectMeta: s.Instance.ObjectMeta}
	i.Status.Conditions = found.after.Conditions
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(i)
	if err != nil {
		return append(out, err.Error())
	}
	return append(out, invariants.Check(&unstructured.Unstructured{Object: content})...)
}
