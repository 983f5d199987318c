package controller

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

const (
	// deadline of a wait that a watch is to end before.
	deadline = time.Minute
	// recheck is how soon a state that nothing reports the end of, such as a
	// stranger's pod, is looked at again.
	recheck = 15 * time.Second
	// refusalRecheck is how soon the API server is asked again for what a quota,
	// a LimitRange or a StorageClass has not let it do.
	refusalRecheck = 5 * time.Second
	// returnRecheck is how soon a claim that is lost is looked for again: one that
	// a person restores carries none of the labels by which we would see it come.
	returnRecheck = 3 * time.Second
	// turnedAwayPause is how long after its creation a pod that its node turned away
	// is made anew: a kubelet that is short of something says so to the scheduler
	// every 10 s (nodeStatusUpdateFrequency), and gets every new pod until then.
	turnedAwayPause = 10 * time.Second
)

// evicted is the reason in the status of a pod that a kubelet has ended, or has not
// let start, because its node is short of disk, memory or process ids.
const evicted = "Evicted"

// obstacle says why no pod may start on a volume; Done if one may.
func obstacle(s *snapshot, v volume) step.Outcome {
	namespace := s.instance.Namespace
	lost := s.instance.Spec.ClaimLoss != v1alpha1.RecreateLostClaim && v.recorded != "" && (v.claim == nil || v.claim.UID != v.recorded)
	switch {
	case v.claim != nil && !ours(s.instance, v.claim, v.recorded):
		return rejectClaim(s.instance, v.claim)
	case v.claim != nil && v.claim.DeletionTimestamp != nil:
		return wait("claim", v1alpha1.ReasonClaimTerminating, "claim %s is being deleted and goes away when its pod does: replace the member with its data: kubectl delete instance %s -n %s", v.name, s.instance.Name, namespace)
	case lost:
		o := stall(v1alpha1.ReasonClaimLost, "claim %s with the data of the member is gone: the operator of %s %s must replace the member; by hand: kubectl delete instance %s -n %s",
			v.name, s.instance.Spec.Group.Kind, s.instance.Spec.Group.Name, s.instance.Name, namespace)
		o.After = returnRecheck
		return o
	case v.claim != nil && v.claim.Annotations[v1alpha1.AnnotationRetired] != "":
		return stall(v1alpha1.ReasonClaimRetired, "claim %s holds the data of a member that has left the cluster (%s): to have a member in another slot: kubectl delete instance %s -n %s; or, if nobody needs the data: kubectl delete pvc %s -n %s",
			v.name, v.claim.Annotations[v1alpha1.AnnotationRetired], s.instance.Name, namespace, v.name, namespace)
	case v.claim != nil && v.claim.Status.Phase == corev1.ClaimLost:
		return stall(v1alpha1.ReasonClaimLost, "claim %s has lost its volume %s: restore the volume, or replace the member: kubectl delete instance %s -n %s", v.name, v.claim.Spec.VolumeName, s.instance.Name, namespace)
	}
	return step.Done()
}

// mayStart says why the pod may not be made yet; Done if it may. It needs every claim, and
// every claim recorded in status.
func mayStart(s *snapshot) step.Outcome {
	var all []step.Outcome
	for _, v := range s.volumes {
		all = append(all, obstacle(s, v))
		switch {
		case v.claim == nil:
			all = append(all, wait("claim", v1alpha1.ReasonCreating, "claim %s is being created", v.name))
		case replaceable(s, v):
			all = append(all, wait("claim", v1alpha1.ReasonCreating, "claim %s is made anew with the StorageClass of the spec", v.name))
		case v.recorded != v.claim.UID:
			all = append(all, wait("instance", v1alpha1.ReasonCreating, "claim %s is being recorded for pod %s", v.name, s.instance.Name))
		}
	}
	return step.Worst(all...)
}

// mayRestart says why the pod may not be stopped to be made anew; Done if it may. A pod that
// could not be started again is left alone.
func mayRestart(s *snapshot) step.Outcome {
	var all []step.Outcome
	for _, v := range s.volumes {
		all = append(all, obstacle(s, v))
	}
	return step.Worst(all...)
}

// mayRenew says why a pod that has ended may not be deleted yet to be made anew; Done if it
// may. One that a node turned away before any container of it was
// created would be turned away again at once, as often as it is made.
func mayRenew(s *snapshot) step.Outcome {
	left := turnedAwayPause - s.now.Sub(s.pod.CreationTimestamp.Time)
	started := len(s.pod.Status.ContainerStatuses)+len(s.pod.Status.InitContainerStatuses) > 0
	if started || left <= 0 || left > turnedAwayPause { // more than the pause: our clock and the API server's differ
		return step.Done()
	}
	o := ended(s.pod)
	o.After = left // nothing reports that it is over
	return o
}

// maySuspend says why the pod may not be stopped with its claims kept; Done if it may. A
// claim that is being deleted would go with the pod.
func maySuspend(s *snapshot) step.Outcome {
	for _, v := range s.volumes {
		if v.claim != nil && v.claim.DeletionTimestamp != nil {
			return obstacle(s, v)
		}
	}
	return step.Done()
}

// ours reports whether a claim may be used by the Instance: it is the one that the
// Instance is recorded with, carries the labels that we give, or a person has said so
// by name. One in the place of a recorded one, with no label that says otherwise, was
// restored. Every other claim may be a StatefulSet's, or hold what nobody has backed up.
func ours(instance *v1alpha1.Instance, claim *corev1.PersistentVolumeClaim, recorded types.UID) bool {
	name, manager := claim.Labels[v1alpha1.LabelInstance], claim.Labels[v1alpha1.LabelManagedBy]
	known := recorded != "" && (manager == "" || manager == v1alpha1.ManagedBy)
	switch {
	case name != "" && name != instance.Name:
		return false
	case known && recorded == claim.UID, name != "" && manager == v1alpha1.ManagedBy:
		return true
	case len(claim.OwnerReferences) > 0:
		return false
	}
	return claim.Annotations[v1alpha1.AnnotationAdopt] == instance.Name || known
}

// rejectClaim stalls for a claim that is not the Instance's, and has the command by which a
// person gives it to the Instance. No watch reports changes of a claim without our labels.
func rejectClaim(instance *v1alpha1.Instance, claim *corev1.PersistentVolumeClaim) step.Outcome {
	if claim.Labels[v1alpha1.LabelInstance] != "" || len(claim.OwnerReferences) > 0 {
		return stall(v1alpha1.ReasonClaimRejected, "claim %s belongs to somebody else and is not touched: its owner must make room: kubectl describe pvc %s -n %s", claim.Name, claim.Name, claim.Namespace)
	}
	o := stall(v1alpha1.ReasonClaimRejected, "claim %s belongs to somebody else, or nobody has said whose it is, and is not touched: if it holds the data of this member: kubectl -n %s annotate pvc %s %s=%s --overwrite; if not, its owner must make room: kubectl -n %s describe pvc %s",
		claim.Name, claim.Namespace, claim.Name, v1alpha1.AnnotationAdopt, instance.Name, claim.Namespace, claim.Name)
	o.After = returnRecheck
	return o
}

// made reports whether a claim was made by an operator, so that the retention policy of the
// spec may delete it: it carries the annotation or, made by a version that wrote none, is
// the one that the Instance was started with. A claim that a person gave to the Instance is
// never deleted.
func made(s *snapshot, claim *corev1.PersistentVolumeClaim) bool {
	switch {
	case claim.Annotations[v1alpha1.AnnotationAdopt] != "":
		return false
	case claim.Annotations[v1alpha1.AnnotationMadeBy] != "":
		return true
	}
	return slices.ContainsFunc(s.volumes, func(v volume) bool { return v.claim == claim && v.recorded == claim.UID })
}

// replaceable reports whether a claim was made with another StorageClass than the
// spec now asks for and may be made anew, because no volume was ever bound to
// it and no node prepares one. It must carry our annotation.
func replaceable(s *snapshot, v volume) bool {
	if v.claim == nil || v.claim.DeletionTimestamp != nil || v.claim.Spec.VolumeName != "" || v.claim.Status.Phase == corev1.ClaimBound ||
		v.claim.Labels[v1alpha1.LabelInstance] != s.instance.Name || v.claim.Annotations[v1alpha1.AnnotationMadeBy] == "" || v.claim.Annotations[v1alpha1.AnnotationAdopt] != "" || (s.pod != nil && s.pod.Spec.NodeName != "") {
		return false
	}
	have, wanted := v.claim.Spec.StorageClassName, v.template.StorageClassName
	switch {
	case wanted != nil:
		return have == nil || *have != *wanted
	case have == nil || *have == "":
		return false
	default:
		// The API server writes the default class into a claim without one; a
		// class that does not exist cannot have been it.
		return s.classes != nil && s.classes[*have] == nil
	}
}

// podOwner says whose a pod is.
type podOwner string

const (
	// ownPod is controlled by the Instance.
	ownPod podOwner = "own"
	// orphanPod is ours by its labels and controlled by nobody.
	orphanPod podOwner = "orphan"
	// foreignPod is somebody else's.
	foreignPod podOwner = "foreign"
)

func ownerOf(instance *v1alpha1.Instance, pod *corev1.Pod) podOwner {
	controller := metav1.GetControllerOf(pod)
	switch {
	case controller != nil && controller.UID == instance.UID:
		return ownPod
	case controller == nil && pod.Labels[v1alpha1.LabelInstance] == instance.Name && pod.Labels[v1alpha1.LabelManagedBy] == v1alpha1.ManagedBy:
		return orphanPod
	}
	return foreignPod
}

// held reports whether this operator decides when the Instance may be gone: it has its own
// finalizer on it, or the group is gone and no other operator removes the group's finalizer.
func held(s *snapshot) bool {
	return slices.Contains(s.instance.Finalizers, v1alpha1.FinalizerInstance) || s.ownerless
}

// draining reports whether the operator of the group still has to take the member
// out of the database before its pod may stop for good.
func draining(s *snapshot) bool {
	return slices.Contains(s.instance.Finalizers, v1alpha1.FinalizerMember) && !s.ownerless
}

func wait(source, reason, format string, args ...any) step.Outcome {
	return step.Wait(source, deadline, reason, fmt.Sprintf(format, args...))
}

// stall returns the end of a step that only a person can help. It is looked at
// again after a while, because what helps may happen where no watch sees it.
func stall(reason, format string, args ...any) step.Outcome {
	o := step.Stall(reason, fmt.Sprintf(format, args...))
	o.After = recheck
	return o
}
