package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/revision"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// plan is what to do next and why. It holds at most one disruptive action.
type plan struct {
	addFinalizer    bool
	createClaims    []claimCreation
	patchClaims     []claimPatch
	deleteClaims    []claimDeletion
	createPod       *corev1.Pod
	patchPod        *podPatch
	deletePod       *podDeletion
	removeFinalizer bool
	// withdraw holds volumes whose recorded claim was never bound and is to be
	// made anew: its record goes first.
	withdraw []string
	// outcome is what remains to be done or waited for once the plan has been
	// carried out.
	outcome step.Outcome
}

type claimCreation struct {
	// index in snapshot.volumes.
	index int
	claim *corev1.PersistentVolumeClaim
}

type claimPatch struct {
	claim *corev1.PersistentVolumeClaim
	body  map[string]any
	// event and why tell a person.
	event, why string
}

type claimDeletion struct {
	claim *corev1.PersistentVolumeClaim
	why   string
	// unbound says that the claim goes only if it has no volume yet.
	unbound bool
}

type podPatch struct {
	pod  *corev1.Pod
	body map[string]any
	why  string
}

type podDeletion struct {
	pod *corev1.Pod
	why string
	// next is the pod that takes the place of one that could go on running. If
	// the API server calls it invalid, nothing is stopped.
	next *corev1.Pod
}

// makePlan decides what to do next.
func makePlan(s *snapshot) *plan {
	instance := s.instance
	p := &plan{outcome: step.Done()}
	deleting := instance.DeletionTimestamp != nil
	switch {
	case s.err != nil:
		p.outcome = step.Fail(v1alpha1.ReasonRequestFailed, s.err)
		return p
	case deleting && !held(s):
		// Nothing of ours is left, or was ever made; others hold the Instance.
		p.outcome = wait("instance", v1alpha1.ReasonDeleting, "the Instance is being deleted and waits for finalizers of others")
		p.outcome.After = recheck // no watch tells when the group goes
		return p
	case deleting && !draining(s):
		planDeletion(s, p)
		return p
	}
	planRun(s, p)
	if deleting && p.outcome.Kind == step.KindDone {
		p.outcome = wait("instance", v1alpha1.ReasonDeleting, "the Instance is being deleted: the operator of %s %s makes its member safe to stop first, which condition Drained tells of, and then removes finalizer %s",
			instance.Spec.Group.Kind, instance.Spec.Group.Name, v1alpha1.FinalizerMember)
		p.outcome.After = recheck // no watch tells when the group goes
	}
	if instance.Spec.Paused {
		*p = plan{outcome: p.outcome}
	}
	return p
}

// planRun plans for an Instance that is to run or to be suspended.
func planRun(s *snapshot, p *plan) {
	instance := s.instance
	if s.templateErr != nil {
		p.outcome = stall(v1alpha1.ReasonInvalidSpec, "spec.podTemplate: %v: correct it; nothing has been touched", s.templateErr)
		return
	}
	p.addFinalizer = !slices.Contains(instance.Finalizers, v1alpha1.FinalizerInstance)
	if !instance.Spec.Suspended {
		for at := range s.volumes {
			planClaim(s, p, at)
		}
	}
	planPod(s, p)
}

// planClaim creates a claim or keeps the labels and size of an existing one.
func planClaim(s *snapshot, p *plan, at int) {
	v := s.volumes[at]
	switch block := obstacle(s, v); {
	case block.Reason == v1alpha1.ReasonClaimLost && v.claim != nil:
		// Whoever restored it need not know our labels. With them every operator
		// sees that it is there.
		if labels := missingLabels(s, v); len(labels) > 0 {
			p.patchClaims = append(p.patchClaims, claimPatch{claim: v.claim, event: "ClaimUpdated", why: "it has come in place of a lost one, without our labels",
				body: identified(map[string]any{"metadata": map[string]any{"labels": labels}}, v.claim.UID)})
		}
	case block.Kind != step.KindDone:
	case v.claim == nil:
		p.createClaims = append(p.createClaims, claimCreation{index: at, claim: renderClaim(s.instance, s.template, claimTemplate(v))})
	case replaceable(s, v) && v.recorded != "":
		p.withdraw = append(p.withdraw, v.template.Name)
	case replaceable(s, v):
		p.deleteClaims = append(p.deleteClaims, claimDeletion{claim: v.claim, unbound: true, why: "it has another StorageClass than the spec and was never bound"})
	default:
		if body := claimChanges(s, v); body != nil {
			p.patchClaims = append(p.patchClaims, claimPatch{claim: v.claim, body: body, event: "ClaimUpdated", why: "labels, size or VolumeAttributesClass differ from the spec"})
		}
	}
}

// claimTemplate is what a claim is made from. A VolumeAttributesClass that does not
// exist is left out: the claim would never get a volume, and gets the class later.
func claimTemplate(v volume) v1alpha1.VolumeClaimTemplate {
	out := v.template
	if v.classless {
		out.VolumeAttributesClassName = nil
	}
	return out
}

// claimChanges returns the patch that brings a claim's labels, size and
// VolumeAttributesClass to the spec, nil if there is nothing to change. A volume
// never shrinks, but a claim may ask for less again as long as its volume has not
// grown.
func claimChanges(s *snapshot, v volume) map[string]any {
	body := map[string]any{}
	if labels := missingLabels(s, v); len(labels) > 0 {
		body["metadata"] = map[string]any{"labels": labels}
	}
	spec := map[string]any{}
	if v.claim.Status.Phase == corev1.ClaimBound && storage.Resizable(v.claim, v.template.Storage) {
		spec["resources"] = map[string]any{"requests": map[string]any{string(corev1.ResourceStorage): v.template.Storage.String()}}
	}
	if class, change := storage.Reclassified(v.claim, v.template.VolumeAttributesClassName); change && !v.classless && !v.dropped {
		spec[attributesField] = class
	}
	if len(spec) > 0 {
		body["spec"] = spec
	}
	if len(body) == 0 {
		return nil
	}
	return identified(body, v.claim.UID)
}

// missingLabels are those of a claim that it does not have yet, nil for one that it is
// to lose.
func missingLabels(s *snapshot, v volume) map[string]any {
	labels := map[string]any{}
	for key, value := range claimLabels(s.instance, s.template, v.template.Name) {
		if v.claim.Labels[key] != value {
			labels[key] = value
		}
	}
	if v.claim.Labels[v1alpha1.LabelRetired] != "" && v.claim.Annotations[v1alpha1.AnnotationRetired] == "" {
		labels[v1alpha1.LabelRetired] = nil // a person has taken it back
	}
	return labels
}

// attributesField is the field of a claim's spec that names a
// VolumeAttributesClass.
const attributesField = "volumeAttributesClassName"

// planPod creates, changes in place, replaces or stops the pod.
func planPod(s *snapshot, p *plan) {
	instance, pod := s.instance, s.pod
	if pod == nil {
		planNewPod(s, p)
		return
	}
	if ownerOf(instance, pod) == foreignPod {
		p.outcome = stall(v1alpha1.ReasonPodOfAnotherOwner, "pod %s exists and belongs to somebody else and is not touched: delete or rename it: kubectl describe pod %s -n %s", pod.Name, pod.Name, pod.Namespace)
		return
	}
	switch {
	case pod.DeletionTimestamp != nil:
		p.outcome = terminating(s, pod)
	case instance.Spec.Suspended:
		if p.outcome = maySuspend(s); p.outcome.Kind == step.KindDone {
			p.deletePod = &podDeletion{pod: pod, why: "the Instance is suspended"}
			p.outcome = terminating(s, pod)
		}
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		if p.outcome = mayRenew(s); p.outcome.Kind == step.KindDone {
			p.deletePod = &podDeletion{pod: pod, why: "it has ended: " + ending(pod)}
			p.outcome = ended(pod)
		}
	default:
		planChange(s, p)
	}
}

// planNewPod makes the pod if there is to be one and its claims allow.
func planNewPod(s *snapshot, p *plan) {
	if s.instance.Spec.Suspended {
		return
	}
	if s.instance.DeletionTimestamp != nil && slices.Contains(s.instance.Finalizers, metav1.FinalizerDeleteDependents) {
		return // deleted with --cascade=foreground: the garbage collector would delete it at once
	}
	if p.outcome = mayStart(s); p.outcome.Kind != step.KindDone {
		return
	}
	pod, err := renderPod(s.instance, s.template)
	if err != nil {
		p.outcome = stall(v1alpha1.ReasonInvalidSpec, "spec.podTemplate: %v", err)
		return
	}
	p.createPod = pod
}

// planChange compares the running pod with the spec. A template that changes
// under the same revision is the same thing said in another way: the pod stays,
// and remembers the new template.
func planChange(s *snapshot, p *plan) {
	instance, pod := s.instance, s.pod
	change := difference(instance, pod, s.template)
	if pod.UID == instance.Spec.StopPod && !change.Restart {
		change = revision.Change{Text: fmt.Sprintf("%s %s, which has asked for it", instance.Spec.Group.Kind, instance.Spec.Group.Name), Restart: true}
	}
	next, err := renderPod(instance, s.template)
	if err != nil {
		p.outcome = stall(v1alpha1.ReasonInvalidSpec, "spec.podTemplate: %v", err)
		return
	}
	if change.Restart {
		if block := mayRestart(s); block.Kind != step.KindDone {
			block.Message = fmt.Sprintf("restart for %s is put off: %s", change.Text, block.Message)
			p.outcome = block
			return
		}
		p.deletePod = &podDeletion{pod: pod, why: "restart for " + change.Text, next: next}
		p.outcome = wait("pod", v1alpha1.ReasonRestartPending, "pod %s is restarted for %s", pod.Name, change.Text)
		return
	}
	if body := podChanges(instance, pod, next, s.template); body != nil {
		p.patchPod = &podPatch{pod: pod, body: body, why: "labels and annotations follow the spec"}
	}
}

// difference says whether a pod needs a restart to be what the Instance asks for,
// and why. It compares the pod with the template by the one that the pod
// remembers, unless the group's operator says that the running member has all that
// differs.
func difference(instance *v1alpha1.Instance, pod *corev1.Pod, template *corev1.PodTemplateSpec) revision.Change {
	runs := pod.Labels[v1alpha1.LabelRevision]
	if runs == instance.Spec.Revision || runs != "" && runs == instance.Spec.InPlaceFrom {
		return revision.Change{}
	}
	old := remembered(pod)
	if old == nil {
		return revision.Change{Text: "revision: the pod has lost the template that it was made from", Restart: true}
	}
	return revision.Difference(old, template)
}

// remembered returns the template that a pod carries, nil if it carries none
// that can be read.
func remembered(pod *corev1.Pod) *corev1.PodTemplateSpec {
	old := &corev1.PodTemplateSpec{}
	if err := json.Unmarshal([]byte(pod.Annotations[v1alpha1.AnnotationTemplate]), old); err != nil {
		return nil
	}
	return old
}

// podChanges returns the patch that brings labels, annotations and owner of a
// pod to what they would be on a new one, nil if there is nothing to change.
// Only what an earlier template brought is taken away.
func podChanges(instance *v1alpha1.Instance, pod, next *corev1.Pod, template *corev1.PodTemplateSpec) map[string]any {
	old := remembered(pod)
	if old == nil {
		old = template
	}
	metadata := map[string]any{}
	if labels := changes(pod.Labels, next.Labels, old.Labels); len(labels) > 0 {
		metadata["labels"] = labels
	}
	annotations := changes(pod.Annotations, next.Annotations, old.Annotations)
	if from, had := madeFrom(instance, pod), pod.Annotations[v1alpha1.AnnotationMadeFrom]; from == "" && had != "" {
		annotations[v1alpha1.AnnotationMadeFrom] = nil
	} else if from != had {
		annotations[v1alpha1.AnnotationMadeFrom] = from
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	if ownerOf(instance, pod) == orphanPod {
		metadata["ownerReferences"] = append(slices.Clone(pod.OwnerReferences), ownerReference(instance))
	}
	if len(metadata) == 0 {
		return nil
	}
	return identified(map[string]any{"metadata": metadata}, pod.UID)
}

// madeFrom returns the revision that a pod was made from, if it is another than the
// one that the Instance asks for and the pod is brought to without a restart.
func madeFrom(instance *v1alpha1.Instance, pod *corev1.Pod) string {
	made := pod.Annotations[v1alpha1.AnnotationMadeFrom]
	if runs := pod.Labels[v1alpha1.LabelRevision]; made == "" && runs == instance.Spec.InPlaceFrom {
		made = runs
	}
	if made == instance.Spec.Revision {
		return ""
	}
	return made
}

// changes returns a merge patch from have to wanted, in which keys that were
// wanted before and are not any more become null.
func changes(have, wanted, before map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range wanted {
		if current, ok := have[key]; !ok || current != value {
			out[key] = value
		}
	}
	for key := range before {
		_, still := wanted[key]
		if _, there := have[key]; there && !still {
			out[key] = nil
		}
	}
	return out
}

// identified adds the UID to a patch, so that it never meets another object of
// the same name.
func identified(body map[string]any, uid types.UID) map[string]any {
	metadata, ok := body["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		body["metadata"] = metadata
	}
	metadata["uid"] = string(uid)
	return body
}

// planDeletion stops the pod, then applies the claim retention, then lets the
// Instance go. Nothing of the spec but the retention counts here, so that it
// ends in every state.
func planDeletion(s *snapshot, p *plan) {
	instance, pod := s.instance, s.pod
	if slices.Contains(instance.Finalizers, metav1.FinalizerOrphanDependents) {
		// Deleted with --cascade=orphan: the pod is to stay. The garbage
		// collector takes our reference from it first.
		p.outcome = wait("instance", v1alpha1.ReasonDeleting, "the Instance is being deleted without its pod: Kubernetes' garbage collector must release pod %s first", instance.Name)
		return
	}
	owner := foreignPod
	if pod != nil {
		owner = ownerOf(instance, pod)
	}
	if owner == ownPod {
		p.outcome = terminating(s, pod)
		if pod.DeletionTimestamp == nil {
			p.deletePod = &podDeletion{pod: pod, why: "the Instance is being deleted"}
		}
		return
	}
	p.removeFinalizer = true
	if owner == orphanPod {
		return // the pod runs on, so its claims stay as they are
	}
	for _, claim := range claimsOf(s) {
		planRetention(s, claim, p)
	}
}

// claimsOf returns the claims that are the Instance's by label and not retired.
func claimsOf(s *snapshot) []*corev1.PersistentVolumeClaim {
	all := slices.Clone(s.strays)
	for _, v := range s.volumes {
		all = append(all, v.claim)
	}
	return slices.DeleteFunc(all, func(c *corev1.PersistentVolumeClaim) bool {
		return c == nil || c.Labels[v1alpha1.LabelInstance] != s.instance.Name || c.DeletionTimestamp != nil || c.Annotations[v1alpha1.AnnotationRetired] != ""
	})
}

// planRetention deletes, retires or leaves a claim of a deleted Instance. One that
// somebody has put in the place of a lost one is not the Instance's to delete: no
// pod of it has ever used it, and neither is one that no operator has made. A member that was leaving when its group was
// deleted has not left: nobody has taken it out of its cluster, and its data is that
// of a deleted group.
func planRetention(s *snapshot, claim *corev1.PersistentVolumeClaim, p *plan) {
	instance := s.instance
	drained := meta.IsStatusConditionTrue(instance.Status.Conditions, v1alpha1.ConditionDrained)
	left := drained || instance.Spec.Retire && !s.ownerless
	policy, name := instance.Spec.ClaimRetention.WhenDeleted, "whenDeleted"
	if instance.Spec.Retire && left {
		policy, name = instance.Spec.ClaimRetention.WhenScaled, "whenScaled"
	}
	switch {
	case policy == v1alpha1.DeleteClaim && made(s, claim) && !restored(s, claim):
		p.deleteClaims = append(p.deleteClaims, claimDeletion{claim: claim, why: "spec.claimRetention." + name + " is Delete"})
	case left:
		// A time of another retirement is nobody's consent to this one.
		annotations := map[string]any{v1alpha1.AnnotationRetired: fmt.Sprintf("the member of Instance %s was removed", instance.Name), v1alpha1.AnnotationExpires: nil, v1alpha1.AnnotationExpiresClaim: nil}
		if keep := instance.Spec.ClaimRetention.RetainFor; keep != nil && made(s, claim) && !restored(s, claim) {
			annotations[v1alpha1.AnnotationExpires] = s.now.Add(keep.Duration).UTC().Format(time.RFC3339)
			annotations[v1alpha1.AnnotationExpiresClaim] = string(claim.UID) + " " + keep.Duration.String()
		}
		body := map[string]any{"metadata": map[string]any{"annotations": annotations, "labels": map[string]any{v1alpha1.LabelRetired: "true"}}}
		p.patchClaims = append(p.patchClaims, claimPatch{claim: claim, body: identified(body, claim.UID), event: "ClaimRetired", why: "its member has left the cluster"})
	}
}

// restored reports whether a claim is another one than the one that was recorded.
func restored(s *snapshot, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(s.volumes, func(v volume) bool { return v.claim == claim && v.recorded != "" && v.recorded != claim.UID })
}

// ended says that a pod has ended and comes back, and what a person can do if it
// does so again.
func ended(pod *corev1.Pod) step.Outcome {
	if pod.Status.Reason == evicted {
		return wait("pod", v1alpha1.ReasonPodFailed, "pod %s has ended (%s) and is made anew: node %s is short of something, such as room on its disk: make room there: kubectl describe node %s",
			pod.Name, ending(pod), pod.Spec.NodeName, pod.Spec.NodeName)
	}
	return wait("pod", v1alpha1.ReasonPodFailed, "pod %s has ended (%s) and is made anew", pod.Name, ending(pod))
}

// ending says how a pod ended.
func ending(pod *corev1.Pod) string {
	switch {
	case pod.Status.Reason != "" && pod.Status.Message != "":
		return pod.Status.Reason + ": " + strings.TrimRight(pod.Status.Message, ". ")
	case pod.Status.Reason != "":
		return pod.Status.Reason
	}
	return string(pod.Status.Phase)
}

// nodeGrace is for how long a node may fail to answer before it may be gone for good:
// after so long Kubernetes deletes its pods (defaultUnreachableTolerationSeconds).
const nodeGrace = 5 * time.Minute

// nodeState is what is known of a node that a message is about.
type nodeState struct {
	// known says that it was looked at; absent that it does not exist.
	known, absent bool
	// cordoned says that nothing new is to start on it.
	cordoned bool
	// silent says that it does not answer, since when.
	silent bool
	since  time.Time
}

// stateOf reads a node.
func stateOf(node *corev1.Node) nodeState {
	out := nodeState{known: true, cordoned: node.Spec.Unschedulable, silent: true}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			out.silent, out.since = c.Status != corev1.ConditionTrue, c.LastTransitionTime.Time
		}
	}
	return out
}

// askedNode returns the node that a message will be about, empty if there is none: that
// of a pod that ought to have stopped by now, or the one that a pod which finds no place
// has its volume on.
func askedNode(s *snapshot) string {
	switch pod := s.pod; {
	case pod == nil:
		return ""
	case overdue(pod, s.now):
		return pod.Spec.NodeName
	case pod.DeletionTimestamp == nil && findsNoNode(pod):
		if at := tied(s); at >= 0 && len(s.volumes[at].place.nodes) == 1 {
			return s.volumes[at].place.nodes[0]
		}
	}
	return ""
}

// from is the object that a person edits to change the Instance.
func from(s *snapshot) origin.Origin { return origin.OfInstance(s.instance, s.alone) }

// overdue reports whether a pod is there although its grace period has passed.
func overdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && pod.Spec.NodeName != "" && !now.Before(pod.DeletionTimestamp.Time)
}

// terminating waits for a pod to stop. Only of a node that does not answer, and of a pod
// whose grace period has passed, is it worth a thought whether the node is gone: the pod
// of a node that is deleted by mistake is stopped at once.
func terminating(s *snapshot, pod *corev1.Pod) step.Outcome {
	if pod.Spec.NodeName == "" {
		return wait("pod", v1alpha1.ReasonPodTerminating, "pod %s is being stopped", pod.Name)
	}
	o := wait("pod", v1alpha1.ReasonPodTerminating, "pod %s is being stopped on node %s", pod.Name, pod.Spec.NodeName)
	if !overdue(pod, s.now) {
		if pod.DeletionTimestamp != nil {
			o.After = min(o.After-time.Second, pod.DeletionTimestamp.Sub(s.now)) + time.Second
		}
		return o
	}
	switch {
	case s.node.absent:
		o.Message += ", which is gone: Kubernetes removes the pod soon"
	case s.node.silent:
		o.Message += fmt.Sprintf(", which does not answer, past its grace period: bring the node back, or if it is gone for good: kubectl delete node %s", pod.Spec.NodeName)
	case !s.node.known:
		o.Message += fmt.Sprintf(", past its grace period: does the node answer? kubectl get node %s", pod.Spec.NodeName)
	default:
		o.Message += fmt.Sprintf(", past its grace period: kubectl -n %s describe pod %s", pod.Namespace, pod.Name)
	}
	o.After = recheck // nodes are not watched
	return o
}

// starting waits for a pod to run. What it mounts of a person's is named when that takes
// long, for the kubelet does not say in a pod's status which of it is missing.
func starting(s *snapshot, pod *corev1.Pod) step.Outcome {
	o := wait("pod", v1alpha1.ReasonPodPending, "pod %s is being started on node %s", pod.Name, pod.Spec.NodeName)
	needs := mounted(s, pod)
	if len(needs) == 0 {
		return o
	}
	if left := gate.Patience - s.now.Sub(pod.CreationTimestamp.Time); left > 0 && left <= gate.Patience {
		o.After = left
		return o
	}
	o.Message += fmt.Sprintf(", which needs %s: if one is missing, create it: kubectl -n %s describe pod %s", strings.Join(needs, ", "), pod.Namespace, pod.Name)
	return o
}

// mounted names what must exist for a pod's volumes to be mounted and is not the
// operators' own.
func mounted(s *snapshot, pod *corev1.Pod) []string {
	var out []string
	required := func(optional *bool) bool { return optional == nil || !*optional }
	for _, v := range pod.Spec.Volumes {
		switch {
		case v.Secret != nil && required(v.Secret.Optional):
			out = append(out, "Secret "+v.Secret.SecretName)
		case v.ConfigMap != nil && required(v.ConfigMap.Optional) && !strings.HasPrefix(v.ConfigMap.Name, s.instance.Spec.Group.Name+"-config-"):
			out = append(out, "ConfigMap "+v.ConfigMap.Name)
		}
	}
	return out
}

// tied finds a volume that can be used on some nodes only; -1 if there is none.
func tied(s *snapshot) int {
	return slices.IndexFunc(s.volumes, func(v volume) bool { return len(v.place.nodes) > 0 })
}

// unschedulable says what a person can do for a pod that the scheduler finds no
// node for. The scheduler's own words do not name the taints that it means, nor the
// node of a volume.
func unschedulable(s *snapshot, why string) step.Outcome {
	pod := s.pod
	remedy := fmt.Sprintf("see kubectl -n %s describe pod %s; add nodes, or ask for less, or for other nodes, beside %s", pod.Namespace, pod.Name, from(s).In("resources"))
	at, after := tied(s), deadline
	switch {
	case at >= 0 && len(s.volumes[at].place.nodes) == 1:
		remedy, after = fmt.Sprintf("its claim %s has its volume on node %s: %s", s.volumes[at].name, s.volumes[at].place.nodes[0], homeless(s, s.volumes[at].place.nodes[0])), recheck
	case at >= 0:
		remedy = fmt.Sprintf("its claim %s can be used on nodes %s only: make room there; if they are gone for good, have the member replaced: kubectl -n %s delete instance %s",
			s.volumes[at].name, strings.Join(s.volumes[at].place.nodes, ", "), pod.Namespace, pod.Name)
	case strings.Contains(why, "untolerated taint"):
		remedy = "mend what a node is tainted for, such as a full disk: kubectl get nodes -o custom-columns='NODE:.metadata.name,TAINTS:.spec.taints[*].key'; or add nodes, or set " + from(s).In("tolerations")
	}
	o := wait("pod", v1alpha1.ReasonPodUnschedulable, "pod %s fits on no node: %s: %s", pod.Name, why, remedy)
	o.After = after
	return o
}

// homeless says what to do about the one node that a pod's volume is on.
func homeless(s *snapshot, node string) string {
	replace := fmt.Sprintf("have the member replaced: kubectl -n %s delete instance %s", s.pod.Namespace, s.pod.Name)
	switch state := s.node; {
	case state.absent:
		return "there is none of that name: bring it back, or if it is gone for good, " + replace
	case state.silent && s.now.Sub(state.since) >= nodeGrace:
		return fmt.Sprintf("it does not answer: bring it back, or if it is gone for good: kubectl delete node %s; then %s", node, replace)
	case state.silent:
		return "it does not answer: kubectl describe node " + node
	case state.cordoned:
		return "it takes no pods: kubectl uncordon " + node
	}
	return "make room there, or let it take pods: kubectl describe node " + node
}

// resume tells how the pod of a suspended Instance comes back.
func resume(s *snapshot) string {
	if s.instance.Spec.Retire {
		return "its member has left, and the Instance is about to go"
	}
	return from(s).Unset("suspended")
}

// mendDelay is for how long what only a person can mend may look as if it went by
// itself: an image that a registry has just not delivered, a crash that is the only one.
const mendDelay = 30 * time.Second

// mendable returns how long it takes until a wait counts as one for a person; zero if
// it does, negative if it never will.
func mendable(set *conditions.Set, o step.Outcome, now time.Time) time.Duration {
	part := v1alpha1.ConditionPodReady
	switch o.Reason {
	case v1alpha1.ReasonImagePullFailed, v1alpha1.ReasonContainerCrashing, v1alpha1.ReasonContainerConfig, v1alpha1.ReasonMissingReference, v1alpha1.ReasonPodRejected:
	case v1alpha1.ReasonStorageClassAbsent, v1alpha1.ReasonClaimRejected, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded:
		part = v1alpha1.ConditionVolumesReady
	default:
		return -1
	}
	c := set.Get(part)
	if c.Status != metav1.ConditionFalse || c.Reason != o.Reason || o.Kind != step.KindWait && o.Kind != step.KindFail {
		return -1
	}
	return max(mendDelay-now.Sub(c.LastTransitionTime.Time), 0)
}

// mend makes a wait that has lasted a stall, which is what a pipeline goes by.
func mend(set *conditions.Set, o step.Outcome, now time.Time) step.Outcome {
	if mendable(set, o, now) == 0 {
		o.Kind = step.KindStall
	}
	return o
}

// unanswered waits for the operator of a group to say something of a member.
func unanswered(s *snapshot, group, condition string) step.Outcome {
	o := wait("instance", v1alpha1.ReasonGatesPending, "the operator of %s has not set condition %s yet", group, condition)
	since := s.now
	if s.pod != nil {
		if ready := podCondition(s.pod, corev1.PodReady); ready != nil && ready.Status == corev1.ConditionTrue {
			since = ready.LastTransitionTime.Time
		}
	}
	if left := gate.Patience - s.now.Sub(since); left > 0 {
		o.After = left
		return o
	}
	o.Message += ": is it running?"
	return o
}
