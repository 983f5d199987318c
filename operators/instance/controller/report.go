package controller

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
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
}

// SetOperatorVersion says which version of the operator writes the status.
func (p *part) SetOperatorVersion(version string) { p.OperatorVersion = version }

// DropWords empties what only people read while a pod starts: the reasons that its start passes
// through, its node, its address, and its claims until they are bound.
func (p *part) DropWords() {
	p.Reason, p.Message, p.PodIP, p.NodeName = "", "", "", ""
	p.Conditions = slices.Clone(p.Conditions)
	for i := range p.Conditions {
		dropWords(&p.Conditions[i])
	}
	p.Volumes = slices.Clone(p.Volumes)
	for i := range p.Volumes {
		if v := &p.Volumes[i]; v.Phase != string(corev1.ClaimLost) {
			v.Phase, v.PersistentVolume, v.Capacity = "", "", nil
		}
	}
}

func dropWords(c *metav1.Condition) {
	c.Message = ""
	switch c.Reason {
	case v1alpha1.ReasonPodMissing, v1alpha1.ReasonPodPending, v1alpha1.ReasonPodNotReady, v1alpha1.ReasonGatesPending, v1alpha1.ReasonProgressing:
		c.Reason = ""
	case v1alpha1.ReasonClaimPending, v1alpha1.ReasonVolumesReady:
		c.Reason = ""
		if c.Type == v1alpha1.ConditionVolumesReady {
			c.Status, c.LastTransitionTime = "", metav1.Time{}
		}
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

// report computes conditions and status.
func report(s *snapshot, p *plan, acted step.Outcome, now time.Time) finding {
	instance := s.instance
	before := partOf(instance)
	set := conditions.New(before.Conditions, instance.Generation, now)
	if s.err != nil {
		return unread(s, p, before, set)
	}
	volumes, pod := volumesOutcome(s, acted), podOutcome(s, p, acted)
	put(set, v1alpha1.ConditionVolumesReady, volumes, v1alpha1.ReasonVolumesReady, volumesSummary(s))
	reason, summary, again := readiness(s, now)
	put(set, v1alpha1.ConditionPodReady, pod, reason, summary)
	if set.Is(v1alpha1.ConditionPodReady) {
		// A container that was started anew while nobody looked has made the pod
		// Ready again, and has forgotten what its member was told.
		set.NotBefore(v1alpha1.ConditionPodReady, podCondition(s.pod, corev1.PodReady).LastTransitionTime)
	}

	deleting := instance.DeletionTimestamp != nil
	suspended := instance.Spec.Suspended && !deleting
	outcome := worst(s, p, outcomes{acted, volumes, pod}, suspended)
	noteReason, note := leaderless(instance)
	set.Finish(conditions.Verdict{
		NoteReason: noteReason, Note: note,
		Unpause: from(s).Unset("paused"), Resume: resume(s),
		Serving:   set.Is(v1alpha1.ConditionPodReady) && set.Is(v1alpha1.ConditionVolumesReady) && gates(s).Kind == step.KindDone,
		Summary:   podSummary(s),
		Outcome:   mend(set, outcome, now),
		Paused:    instance.Spec.Paused && (!deleting || draining(s)),
		Suspended: suspended,
	})
	after := part{ObservedGeneration: instance.Generation, Conditions: set.List(), Volumes: volumeStatus(s, p)}
	after.Reason, after.Message = set.Headline()
	if pod := s.pod; pod != nil && ownerOf(instance, pod) != foreignPod {
		after.PodUID, after.PodIP, after.NodeName = pod.UID, pod.Status.PodIP, pod.Spec.NodeName
		after.Revision, after.MadeFrom = pod.Labels[v1alpha1.LabelRevision], pod.Annotations[v1alpha1.AnnotationMadeFrom]
		if p.patchPod != nil && acted.Kind == step.KindDone {
			after.Revision, after.MadeFrom = instance.Spec.Revision, madeFrom(instance, pod)
		}
	}
	if left := mendable(set, outcome, now); left > 0 && (outcome.After == 0 || left < outcome.After) {
		outcome.After = left
	}
	return finding{before: before, after: after, transitions: set.Transitions(), outcome: outcome, again: again}
}

// leaderless notes that the member leads nothing because a person asked, as its
// group's operator has answered; empty if it may lead.
func leaderless(i *v1alpha1.Instance) (reason, note string) {
	if _, asked := i.Annotations[v1alpha1.AnnotationEvictLeaders]; !asked || i.Annotations[v1alpha1.AnnotationLeadersEvicted] == "" {
		return "", ""
	}
	return v1alpha1.ReasonLeadersEvicted, "it leads nothing (annotation " + v1alpha1.AnnotationEvictLeaders + "); everything matches the spec"
}

// outcomes are how far the plan was carried out, and what stands of volumes and pod.
type outcomes struct{ acted, volumes, pod step.Outcome }

// worst picks what a person should hear first: among equals what the operator
// does, then the cause rather than what follows from it.
func worst(s *snapshot, p *plan, now outcomes, suspended bool) step.Outcome {
	all := []step.Outcome{now.acted}
	if p.outcome.Reason != v1alpha1.ReasonCreating {
		all = append(all, p.outcome)
	}
	switch {
	case suspended:
	case scheduledFirst(s):
		all = append(all, now.pod, now.volumes)
	default:
		all = append(all, now.volumes, now.pod)
	}
	all = append(all, p.outcome)
	if !suspended {
		all = append(all, gates(s))
		for _, v := range s.volumes {
			all = append(all, changing(s, v))
		}
	}
	return step.Worst(all...)
}

// unread reports that something could not be read: what was known before
// stands, but is not called current.
func unread(s *snapshot, p *plan, before part, set *conditions.Set) finding {
	for _, c := range []struct{ kind, reason string }{
		{v1alpha1.ConditionPodReady, v1alpha1.ReasonPodPending},
		{v1alpha1.ConditionVolumesReady, v1alpha1.ReasonClaimPending},
	} {
		set.Unknown(c.kind, c.reason, "not known: "+p.outcome.Message)
	}
	set.Finish(conditions.Verdict{
		Serving: meta.IsStatusConditionTrue(before.Conditions, v1alpha1.ConditionReady),
		Summary: "it was ready when it could last be looked at", Outcome: p.outcome, Paused: s.instance.Spec.Paused,
	})
	after := before
	after.ObservedGeneration, after.Conditions = s.instance.Generation, set.List()
	after.Reason, after.Message = set.Headline()
	return finding{before: before, after: after, transitions: set.Transitions(), outcome: p.outcome}
}

// put sets a condition of our own from an outcome: True when it is Done.
func put(set *conditions.Set, kind string, o step.Outcome, reason, summary string) {
	if o.Kind == step.KindDone {
		set.True(kind, reason, summary)
		return
	}
	if o.Reason == v1alpha1.ReasonCreating {
		o.Reason = v1alpha1.ReasonClaimPending
	}
	set.False(kind, o.Reason, o.Message)
}

// own lists the condition types that the instance operator sets.
func own() []string {
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
	table, types := v1alpha1.ConditionTable(), own()
	for _, info := range table {
		if c := meta.FindStatusCondition(status.Conditions, info.Type); c != nil && slices.Contains(types, info.Type) {
			out.Conditions = append(out.Conditions, *c)
		}
	}
	rank := func(v v1alpha1.VolumeStatus) int {
		return slices.IndexFunc(instance.Spec.VolumeClaimTemplates, func(t v1alpha1.VolumeClaimTemplate) bool { return t.Name == v.Name })
	}
	slices.SortStableFunc(out.Volumes, func(a, b v1alpha1.VolumeStatus) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

// volumeStatus reports every volume and records the claim that a pod may be
// started with.
func volumeStatus(s *snapshot, p *plan) []v1alpha1.VolumeStatus {
	var out []v1alpha1.VolumeStatus
	for _, v := range s.volumes {
		status := v1alpha1.VolumeStatus{Name: v.template.Name, ClaimName: v.name, ClaimUID: v.recorded, Phase: "Missing"}
		if claim := v.claim; claim != nil && ours(s.instance, claim, v.recorded) {
			status.Phase = string(cmp.Or(claim.Status.Phase, corev1.ClaimPending))
			if capacity, ok := claim.Status.Capacity[corev1.ResourceStorage]; ok {
				status.Capacity = &capacity
			}
			if requested, ok := claim.Spec.Resources.Requests[corev1.ResourceStorage]; ok {
				status.Requested = &requested
			}
			if claim.Spec.StorageClassName != nil {
				status.StorageClassName = *claim.Spec.StorageClassName
			}
			status.VolumeAttributesClassName = storage.Attributes(claim)
			status.Change = storage.ProgressOf(claim).Change
			status.PersistentVolume, status.NodeBound, status.Nodes = v.bound, v.place.bound, v.place.nodes
			switch {
			case slices.Contains(p.withdraw, v.template.Name):
				status.ClaimUID = ""
			case recordable(s, v):
				status.ClaimUID = claim.UID
			}
		}
		switch {
		case refusal(v.refused):
			status.Change = v.refused
		case v.dropped:
			status.Change = v1alpha1.ReasonAttributesUnsupported
		case v.classless:
			status.Change = v1alpha1.ReasonAttributesClassAbsent
		}
		out = append(out, status)
	}
	return out
}

// refusal reports whether a reason is one for which the API server does not take
// a claim.
func refusal(reason string) bool {
	return slices.Contains([]string{v1alpha1.ReasonClaimRejected, v1alpha1.ReasonQuotaExceeded, v1alpha1.ReasonLimitRangeExceeded}, reason)
}

// changing says how far a volume that serves is from what its claim asks for.
func changing(s *snapshot, v volume) step.Outcome {
	if v.claim == nil || !ours(s.instance, v.claim, v.recorded) {
		return step.Done()
	}
	progress, namespace := storage.ProgressOf(v.claim), s.instance.Namespace
	wanted, has := v.claim.Spec.Resources.Requests.Storage(), v.claim.Status.Capacity.Storage()
	switch {
	case v.dropped:
		return stall(v1alpha1.ReasonAttributesUnsupported, "the API server does not know VolumeAttributesClasses in claims (Kubernetes 1.34 does): take volumeAttributesClassName out of %s, or upgrade Kubernetes and set it again", from(s).In("volumes"))
	case v.classless:
		o := wait("volumeattributesclass", v1alpha1.ReasonAttributesClassAbsent, "VolumeAttributesClass %s of claim %s does not exist: create it, or name another in %s; there are: kubectl get volumeattributesclass",
			*v.template.VolumeAttributesClassName, v.name, from(s).In("volumes"))
		o.After = recheck // nothing watches them
		return o
	case progress.Change == string(corev1.PersistentVolumeClaimVolumeModifyVolumeError):
		return wait("claim", v1alpha1.ReasonVolumeChangeFailed, "claim %s cannot get VolumeAttributesClass %s (%s): kubectl -n %s describe pvc %s; or set volumeAttributesClassName back in %s",
			v.name, *v.claim.Spec.VolumeAttributesClassName, progress.Change, namespace, v.name, from(s).In("volumes"))
	case progress.Change == string(corev1.PersistentVolumeClaimVolumeModifyingVolume):
		return wait("claim", v1alpha1.ReasonVolumeChanging, "claim %s is to get VolumeAttributesClass %s: its storage driver has to apply it: kubectl -n %s describe pvc %s",
			v.name, *v.claim.Spec.VolumeAttributesClassName, namespace, v.name)
	case progress.Failed:
		return wait("claim", v1alpha1.ReasonVolumeChangeFailed, "claim %s cannot grow to %s (%s), which Kubernetes goes on trying: kubectl -n %s describe pvc %s; or set storage back, to more than %s, in %s",
			v.name, wanted, progress.Change, namespace, v.name, has, from(s).In("volumes"))
	case progress.Change == string(corev1.PersistentVolumeClaimFileSystemResizePending):
		return wait("claim", v1alpha1.ReasonVolumeChanging, "claim %s has grown to %s, and the kubelet has yet to grow its file system; if the driver does that only when a pod starts: kubectl -n %s annotate instance %s %s=$(date +%%s) --overwrite",
			v.name, wanted, namespace, s.instance.Name, v1alpha1.AnnotationRestart)
	case progress.Change != "":
		return wait("claim", v1alpha1.ReasonVolumeChanging, "claim %s asks for %s and has %s: its storage driver has to grow it: kubectl -n %s describe pvc %s", v.name, wanted, has, namespace, v.name)
	}
	return step.Done()
}

// recordable says whether the claim that exists is the one to start a pod with.
func recordable(s *snapshot, v volume) bool {
	if s.instance.DeletionTimestamp != nil && !draining(s) {
		return false
	}
	if s.instance.Spec.Paused || (v.recorded == "" && replaceable(s, v)) {
		return false
	}
	return obstacle(s, v).Kind == step.KindDone
}

// volumesOutcome says what is wrong with the volumes, the worst first.
func volumesOutcome(s *snapshot, acted step.Outcome) step.Outcome {
	var all []step.Outcome
	for _, v := range s.volumes {
		all = append(all, obstacle(s, v))
		switch {
		case v.claim == nil && refusal(acted.Reason):
			all = append(all, acted)
		case v.claim == nil && s.templateErr != nil:
			all = append(all, wait("instance", v1alpha1.ReasonInvalidSpec, "claim %s is not created: spec.podTemplate is invalid", v.name))
		case v.claim == nil:
			all = append(all, wait("claim", v1alpha1.ReasonClaimPending, "claim %s does not exist yet", v.name))
		case v.claim.Status.Phase != corev1.ClaimBound:
			all = append(all, unbound(s, v))
		}
	}
	return step.Worst(all...)
}

// unbound says why a claim has no volume yet.
func unbound(s *snapshot, v volume) step.Outcome {
	namespace := s.instance.Namespace
	if s.classes == nil {
		return wait("claim", v1alpha1.ReasonClaimPending, "claim %s has no volume yet: kubectl describe pvc %s -n %s", v.name, v.name, namespace)
	}
	if v.claim.Spec.StorageClassName == nil {
		if !slices.ContainsFunc(classesOf(s), isDefault) {
			return wait("storageclass", v1alpha1.ReasonStorageClassAbsent, "claim %s names no StorageClass and none is the default: name one in %s, or annotate one with %s=true", v.name, from(s).In("volumes"), defaultClassAnnotation)
		}
		return wait("claim", v1alpha1.ReasonClaimPending, "claim %s waits for the default StorageClass to be given to it: kubectl describe pvc %s -n %s", v.name, v.name, namespace)
	}
	name := *v.claim.Spec.StorageClassName
	if name == "" {
		return wait("claim", v1alpha1.ReasonClaimPending, "claim %s waits for a PersistentVolume without StorageClass: create one that fits: kubectl describe pvc %s -n %s", v.name, v.name, namespace)
	}
	class := s.classes[name]
	if class == nil {
		return wait("storageclass", v1alpha1.ReasonStorageClassAbsent, "StorageClass %s of claim %s does not exist: create it, or name another in %s; there are: kubectl get storageclass", name, v.name, from(s).In("volumes"))
	}
	if waitsForPod(class) && (s.pod == nil || s.pod.Spec.NodeName == "") {
		return wait("claim", v1alpha1.ReasonClaimPending, "claim %s gets its volume from StorageClass %s when its pod is scheduled", v.name, name)
	}
	return wait("claim", v1alpha1.ReasonClaimPending, "claim %s waits for provisioner %s of StorageClass %s: does it run? kubectl describe pvc %s -n %s", v.name, class.Provisioner, name, v.name, namespace)
}

func classesOf(s *snapshot) []*storagev1.StorageClass {
	out := make([]*storagev1.StorageClass, 0, len(s.classes))
	for _, c := range s.classes {
		out = append(out, c)
	}
	return out
}

func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations[defaultClassAnnotation] == "true"
}

func waitsForPod(class *storagev1.StorageClass) bool {
	return class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer
}

// scheduledFirst says whether the claims wait for the pod, rather than the pod
// for the claims.
func scheduledFirst(s *snapshot) bool {
	for _, v := range s.volumes {
		if v.claim == nil {
			return false
		}
		if v.claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		if s.classes == nil {
			// Nobody knows who waits for whom: the scheduler's word says more.
			continue
		}
		if v.claim.Spec.StorageClassName == nil {
			return false
		}
		if class := s.classes[*v.claim.Spec.StorageClassName]; class == nil || !waitsForPod(class) {
			return false
		}
	}
	return s.pod != nil
}

func volumesSummary(s *snapshot) string {
	if len(s.volumes) == 0 {
		return "it has no volumes"
	}
	var claims []string
	for _, v := range s.volumes {
		claims = append(claims, v.name)
	}
	return "bound: " + strings.Join(claims, ", ")
}

func podSummary(s *snapshot) string {
	if s.pod == nil {
		return fmt.Sprintf("pod %s does not exist", s.instance.Name)
	}
	return fmt.Sprintf("pod %s is ready on node %s", s.pod.Name, s.pod.Spec.NodeName)
}

// podOutcome says what is wrong with the pod.
func podOutcome(s *snapshot, p *plan, acted step.Outcome) step.Outcome {
	pod, name := s.pod, s.instance.Name
	switch {
	case pod == nil && s.instance.Spec.Suspended:
		return wait("instance", v1alpha1.ReasonSuspended, "pod %s is stopped: the Instance is suspended", name)
	case pod == nil && s.templateErr != nil:
		return wait("instance", v1alpha1.ReasonInvalidSpec, "pod %s is not created: spec.podTemplate is invalid", name)
	case pod == nil && acted.Reason == v1alpha1.ReasonPodRejected:
		return acted
	case pod == nil && s.instance.Spec.Paused:
		return wait("instance", v1alpha1.ReasonPodMissing, "pod %s is not created: the Instance is paused", name)
	case pod == nil && p.outcome.Kind != step.KindDone:
		return wait("pod", v1alpha1.ReasonPodMissing, "pod %s does not exist: %s", name, p.outcome.Message)
	case pod == nil:
		return wait("pod", v1alpha1.ReasonPodMissing, "pod %s does not exist", name)
	case ownerOf(s.instance, pod) == foreignPod:
		return wait("pod", v1alpha1.ReasonPodOfAnotherOwner, "pod %s belongs to somebody else", name)
	case pod.DeletionTimestamp != nil:
		return terminating(s, pod)
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return ended(pod)
	case podIs(pod, corev1.PodReady):
		return step.Done()
	}
	if scheduled := podCondition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		if findsNoNode(pod) {
			return unschedulable(s, stable(scheduled.Message))
		}
		return wait("pod", v1alpha1.ReasonPodPending, "pod %s is kept from being scheduled (%s): kubectl describe pod %s -n %s", name, scheduled.Reason, name, pod.Namespace)
	}
	if pod.Spec.NodeName == "" {
		return wait("pod", v1alpha1.ReasonPodPending, "pod %s waits for the scheduler", name)
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if o := containerOutcome(s, pod, c); o.Kind != step.KindDone {
			return o
		}
	}
	return notReady(s, pod)
}

// containerOutcome says what keeps a container from running; Done if it runs or
// is about to. The messages hold neither counters nor back-off times, and stay
// the same while a container goes round in a crash loop.
func containerOutcome(s *snapshot, pod *corev1.Pod, c corev1.ContainerStatus) step.Outcome {
	describe := fmt.Sprintf("kubectl describe pod %s -n %s", pod.Name, pod.Namespace)
	if waiting := c.State.Waiting; waiting != nil {
		switch waiting.Reason {
		case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError":
			return wait("pod", v1alpha1.ReasonImagePullFailed, "image %s of container %s in pod %s cannot be pulled: what the registry says: %s; a wrong name or version, or imagePullSecrets: correct %s", c.Image, c.Name, pod.Name, describe, imageField(s, c.Name))
		case "InvalidImageName":
			return wait("pod", v1alpha1.ReasonImagePullFailed, "image %s of container %s in pod %s is not a valid image name: correct it, or the version: %s", c.Image, c.Name, pod.Name, imageField(s, c.Name))
		case "ErrImageNeverPull":
			return wait("pod", v1alpha1.ReasonImagePullFailed, "image %s of container %s in pod %s is not on node %s and imagePullPolicy is Never: load it there", c.Image, c.Name, pod.Name, pod.Spec.NodeName)
		case "CreateContainerConfigError":
			if strings.Contains(waiting.Message, "not found") || strings.Contains(waiting.Message, "couldn't find") {
				return wait("pod", v1alpha1.ReasonMissingReference, "container %s in pod %s cannot start: %s: create it; the kubelet tries again by itself", c.Name, pod.Name, waiting.Message)
			}
			return wait("pod", v1alpha1.ReasonContainerConfig, "container %s in pod %s cannot start: %s: %s", c.Name, pod.Name, waiting.Message, describe)
		case "CreateContainerError", "RunContainerError", "StartError", "PostStartHookError":
			return wait("pod", v1alpha1.ReasonContainerConfig, "container %s in pod %s cannot start (%s): %s", c.Name, pod.Name, waiting.Reason, describe)
		}
	}
	ended := c.State.Terminated
	if ended == nil {
		ended = c.LastTerminationState.Terminated
	}
	initDone := c.State.Terminated != nil && c.State.Terminated.ExitCode == 0 && isInit(pod, c.Name)
	switch {
	case c.Ready || initDone:
		return step.Done()
	case ended != nil && slices.Contains([]string{"Unknown", "ContainerStatusUnknown"}, ended.Reason):
		// Nobody saw how it ended: containerd says so after its node was restarted,
		// the kubelet where it finds no container any more.
		return wait("pod", v1alpha1.ReasonContainerCrashing, "container %s in pod %s was lost by node %s, which was restarted or whose container runtime was (exit code %d, %s), and is not ready since: kubectl describe node %s",
			c.Name, pod.Name, pod.Spec.NodeName, ended.ExitCode, ended.Reason, pod.Spec.NodeName)
	case ended != nil:
		return wait("pod", v1alpha1.ReasonContainerCrashing, "container %s in pod %s stopped with exit code %d (%s) and is not ready since: kubectl logs %s -c %s -n %s --previous",
			c.Name, pod.Name, ended.ExitCode, cmp.Or(ended.Reason, "Error"), pod.Name, c.Name, pod.Namespace)
	case c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff":
		return wait("pod", v1alpha1.ReasonContainerCrashing, "container %s in pod %s stops again and again: kubectl logs %s -c %s -n %s --previous", c.Name, pod.Name, pod.Name, c.Name, pod.Namespace)
	}
	return step.Done()
}

// imageField returns the field that the image of a container is set in, and the command
// that edits it: of a sidecar that has none, that of overlays.
func imageField(s *snapshot, container string) string {
	switch container {
	case s.pod.Labels[v1alpha1.LabelComponent]:
		return from(s).In("image")
	case "slowlog":
		return from(s).In("slowLog.image")
	case "serverlog", "errorlog":
		return from(s).In("logTailer.image")
	}
	return from(s).In("overlay")
}

// isInit reports whether a container is to end before the others start. A sidecar among
// the init containers runs beside them: the kubelet counts it for the pod's readiness.
func isInit(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container && ptr.Deref(c.RestartPolicy, "") != corev1.ContainerRestartPolicyAlways
	})
}

// notReady tells a pod that starts from one that runs and is not ready.
func notReady(s *snapshot, pod *corev1.Pod) step.Outcome {
	var waiting []string
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if c.Ready || isInit(pod, c.Name) {
			continue
		}
		// Who has ended and is to run again keeps a pod from being ready as well.
		if c.State.Running != nil || pod.Status.Phase == corev1.PodRunning {
			waiting = append(waiting, c.Name)
		}
	}
	switch {
	case len(waiting) > 0:
		slices.Sort(waiting)
		return wait("pod", v1alpha1.ReasonPodNotReady, "container %s in pod %s on node %s is not ready yet: kubectl logs %s -c %s -n %s",
			strings.Join(waiting, ", "), pod.Name, pod.Spec.NodeName, pod.Name, waiting[0], pod.Namespace)
	case gated(pod):
		return wait("pod", v1alpha1.ReasonPodNotReady, "pod %s on node %s waits for a readiness gate of its own: kubectl describe pod %s -n %s", pod.Name, pod.Spec.NodeName, pod.Name, pod.Namespace)
	case pod.Status.Phase == corev1.PodRunning:
		// Its containers are ready: only who watches over nodes calls it not Ready.
		return wait("pod", v1alpha1.ReasonNodeUnreachable, "pod %s on node %s is not ready: does the node answer? kubectl get node %s",
			pod.Name, pod.Spec.NodeName, pod.Spec.NodeName)
	}
	return starting(s, pod)
}

// gated reports whether a readiness gate of a pod keeps it from being Ready.
func gated(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return !podIs(pod, g.ConditionType) })
}

// findsNoNode reports whether the scheduler has found no node for a pod.
func findsNoNode(pod *corev1.Pod) bool {
	scheduled := podCondition(pod, corev1.PodScheduled)
	return scheduled != nil && scheduled.Status == corev1.ConditionFalse && scheduled.Reason == corev1.PodReasonUnschedulable
}

// stable takes out of the scheduler's message what changes by itself: how many
// nodes there are, and what preemption would do.
func stable(message string) string {
	if _, rest, ok := strings.Cut(message, "available: "); ok {
		message = rest
	}
	// What follows the first sentence is about preemption.
	message, _, _ = strings.Cut(message, ". ")
	var reasons []string
	for reason := range strings.SplitSeq(strings.TrimRight(message, ". "), ", ") {
		reasons = append(reasons, strings.TrimLeft(reason, "0123456789 "))
	}
	slices.Sort(reasons)
	return strings.Join(slices.Compact(reasons), ", ")
}

// gates says which readiness gate is not open yet. What the group's operator
// last said stands, also if the spec has changed since: it asks the database,
// not the spec.
func gates(s *snapshot) step.Outcome {
	instance := s.instance
	group := instance.Spec.Group.Kind + " " + instance.Spec.Group.Name
	for _, gate := range instance.Spec.ReadinessGates {
		c := meta.FindStatusCondition(instance.Status.Conditions, gate)
		switch {
		case c == nil:
			return unanswered(s, group, gate)
		case c.Status != metav1.ConditionTrue:
			return wait("instance", v1alpha1.ReasonGatesPending, "%s is %s for %s: %s", gate, c.Status, group, c.Message)
		}
	}
	return step.Done()
}

func podCondition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	at := slices.IndexFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
	if at < 0 {
		return nil
	}
	return &pod.Status.Conditions[at]
}

func podIs(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	c := podCondition(pod, kind)
	return c != nil && c.Status == corev1.ConditionTrue
}

// proven is for how long a container has to run that has stopped more than once
// before it is believed to go on. A kubelet waits that long at most before it starts
// one again.
const proven = 5 * time.Minute

// looping finds a container of a ready pod that has stopped again and again, and
// for how long yet that may count against it; empty if there is none. One that ran
// for long before it stopped is no such container.
func looping(pod *corev1.Pod, now time.Time) (container string, left time.Duration) {
	if pod == nil {
		return "", 0
	}
	for _, c := range pod.Status.ContainerStatuses {
		last := c.LastTerminationState.Terminated
		if c.RestartCount < 2 || last == nil || c.State.Running == nil || last.FinishedAt.Sub(last.StartedAt.Time) >= proven {
			continue
		}
		if rest := proven - now.Sub(c.State.Running.StartedAt.Time); rest > left {
			container, left = c.Name, rest
		}
	}
	return container, left
}

// readiness returns the reason and message of a pod that is ready, and when to look
// again whether they are still true; zero for never.
func readiness(s *snapshot, now time.Time) (reason, message string, again time.Duration) {
	container, left := looping(s.pod, now)
	if left <= 0 {
		return v1alpha1.ReasonPodReady, podSummary(s), 0
	}
	return v1alpha1.ReasonContainerCrashing, fmt.Sprintf("%s; its container %s has stopped again and again and is not believed to go on before it has run for %s: kubectl logs %s -c %s -n %s --previous",
		podSummary(s), container, proven, s.pod.Name, container, s.pod.Namespace), left
}

// lookAgain is when an Instance has to be looked at although nothing happens: its
// pod is ready, and not yet believed to stay so.
func (f finding) lookAgain() time.Duration {
	if !meta.IsStatusConditionTrue(f.after.Conditions, v1alpha1.ConditionPodReady) {
		return 0
	}
	return f.again
}
