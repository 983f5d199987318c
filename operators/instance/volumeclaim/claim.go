package volumeclaim

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// isRestored reports whether a claim is another one than the one that was recorded.
func isRestored(s *observation.Snapshot, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(s.Volumes, func(v observation.Volume) bool {
		return v.Claim == claim && v.Recorded != "" && v.Recorded != claim.UID
	})
}

// Obstacle says why no pod may start on a volume; Done if one may.
func Obstacle(s *observation.Snapshot, v observation.Volume) step.Outcome {
	namespace := s.Instance.Namespace
	lost := s.Instance.Spec.ClaimLoss != v1alpha1.RecreateLostClaim && v.Recorded != "" && (v.Claim == nil || v.Claim.UID != v.Recorded)
	switch {
	case v.Claim != nil && !mayUseClaim(s.Instance, v.Claim, v.Recorded):
		return rejectClaim(s.Instance, v.Claim)
	case v.Claim != nil && v.Claim.DeletionTimestamp != nil:
		return planning.Wait("claim", v1alpha1.ReasonClaimTerminating, "claim %s is being deleted and goes away when its pod does: replace the member with its data: kubectl delete instance %s -n %s", v.Name, s.Instance.Name, namespace)
	case lost:
		o := planning.Stall(v1alpha1.ReasonClaimLost, "claim %s with the data of the member is gone: if %s %s does not replace the member by itself, restore the claim, or give its data up, and then: kubectl delete instance %s -n %s",
			v.Name, s.Instance.Spec.Group.Kind, s.Instance.Spec.Group.Name, s.Instance.Name, namespace)
		o.After = planning.ReturnRecheck
		return o
	case v.Claim != nil && v.Claim.Annotations[v1alpha1.AnnotationRetired] != "":
		return planning.Stall(v1alpha1.ReasonClaimRetired, "claim %s holds the data of a member that has left the cluster (%s): to have a member in another slot: kubectl delete instance %s -n %s; or, if the data is not needed: kubectl delete pvc %s -n %s",
			v.Name, v.Claim.Annotations[v1alpha1.AnnotationRetired], s.Instance.Name, namespace, v.Name, namespace)
	case v.Claim != nil && v.Claim.Status.Phase == corev1.ClaimLost:
		return planning.Stall(v1alpha1.ReasonClaimLost, "claim %s has lost its volume %s: restore the volume, or replace the member: kubectl delete instance %s -n %s", v.Name, v.Claim.Spec.VolumeName, s.Instance.Name, namespace)
	}
	return step.Done()
}

// mayUseClaim reports whether a claim may be used by the Instance: it is the one that the
// Instance is recorded with, carries the labels that we give, or a user has said so
// by name. One in the place of a recorded one, with no label that says otherwise, was
// restored. Every other claim may be a StatefulSet's, or hold data without a backup.
func mayUseClaim(instance *v1alpha1.Instance, claim *corev1.PersistentVolumeClaim, recorded types.UID) bool {
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
// user gives it to the Instance. No watch reports changes of a claim without our labels.
func rejectClaim(instance *v1alpha1.Instance, claim *corev1.PersistentVolumeClaim) step.Outcome {
	if claim.Labels[v1alpha1.LabelInstance] != "" || len(claim.OwnerReferences) > 0 {
		return planning.Stall(v1alpha1.ReasonClaimRejected, "claim %s belongs to another owner and is not touched: its owner must make room: kubectl describe pvc %s -n %s", claim.Name, claim.Name, claim.Namespace)
	}
	o := planning.Stall(v1alpha1.ReasonClaimRejected, "claim %s belongs to another owner, or to an unknown one, and is not touched: if it holds the data of this member: kubectl -n %s annotate pvc %s %s=%s --overwrite; if not, its owner must make room: kubectl -n %s describe pvc %s",
		claim.Name, claim.Namespace, claim.Name, v1alpha1.AnnotationAdopt, instance.Name, claim.Namespace, claim.Name)
	o.After = planning.ReturnRecheck
	return o
}

// wasMadeByOperator reports whether a claim was made by an operator, so that the retention policy of the
// spec may delete it: it carries the annotation or, made by a version that wrote none, is
// the one that the Instance was started with. A claim that a user gave to the Instance is
// never deleted.
func wasMadeByOperator(s *observation.Snapshot, claim *corev1.PersistentVolumeClaim) bool {
	switch {
	case claim.Annotations[v1alpha1.AnnotationAdopt] != "":
		return false
	case claim.Annotations[v1alpha1.AnnotationMadeBy] != "":
		return true
	}
	return slices.ContainsFunc(s.Volumes, func(v observation.Volume) bool { return v.Claim == claim && v.Recorded == claim.UID })
}

// IsReplaceable reports whether a claim asks for something else than the spec by now and
// may be recreated, because no volume was ever bound to it and no node prepares one.
// Kubernetes forbids to change it then, and it may ask for what no storage driver has. It
// must carry our annotation.
func IsReplaceable(s *observation.Snapshot, v observation.Volume) bool {
	if v.Claim == nil || v.Claim.DeletionTimestamp != nil || v.Claim.Spec.VolumeName != "" || v.Claim.Status.Phase == corev1.ClaimBound ||
		v.Claim.Labels[v1alpha1.LabelInstance] != s.Instance.Name || v.Claim.Annotations[v1alpha1.AnnotationMadeBy] == "" || v.Claim.Annotations[v1alpha1.AnnotationAdopt] != "" || (s.Pod != nil && s.Pod.Spec.NodeName != "") {
		return false
	}
	if v.Claim.Annotations[v1alpha1.AnnotationApplied] == describeRequest(v.Template) {
		// What differs a webhook has changed, and would again.
		return v.Template.StorageClassName == nil && hasOtherClass(s, v)
	}
	// In whole bytes: the API server rounds what a claim asks for to thousandths of one.
	size := v.Claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if v.Template.Storage.Value() != size.Value() || hasOtherClass(s, v) {
		return true
	}
	// One that it does not ask for yet it gets once it has a volume.
	attributes := ptr.Deref(v.Claim.Spec.VolumeAttributesClassName, "")
	return attributes != "" && attributes != ptr.Deref(v.Template.VolumeAttributesClassName, "")
}

// hasOtherClass reports whether a claim was made with another StorageClass than the spec
// now asks for.
func hasOtherClass(s *observation.Snapshot, v observation.Volume) bool {
	have, wanted := v.Claim.Spec.StorageClassName, v.Template.StorageClassName
	switch {
	case wanted != nil:
		return have == nil || *have != *wanted
	case have == nil || *have == "":
		return false
	}
	// The API server writes the default class into a claim without one; a
	// class that does not exist cannot have been it.
	return s.Classes != nil && s.Classes[*have] == nil
}

// Render returns the claim of a volume. It has no owner: it outlives its
// Instance unless claimRetention says otherwise.
func Render(instance *v1alpha1.Instance, template *corev1.PodTemplateSpec, t v1alpha1.VolumeClaimTemplate) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name:      names.Claim(t.Name, instance.Name),
			Namespace: instance.Namespace,
			Labels:    labelsOf(instance, template, t.Name),
			// What carries no such mark was made by another owner.
			Annotations: map[string]string{v1alpha1.AnnotationMadeBy: string(instance.UID), v1alpha1.AnnotationApplied: describeRequest(t)},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			StorageClassName: t.StorageClassName, VolumeAttributesClassName: t.VolumeAttributesClassName,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: t.Storage}},
		},
	}
	workload.KeepUnowned(claim)
	return claim
}

// isClassChanged reports whether a claim was made with the StorageClass that the spec asks for
// and has another one: a webhook did that, and would again for a new member.
func isClassChanged(v observation.Volume) bool {
	asked, wanted := strings.Fields(v.Claim.Annotations[v1alpha1.AnnotationApplied]), v.Template.StorageClassName
	return wanted != nil && len(asked) > 1 && asked[1] == *wanted && ptr.Deref(v.Claim.Spec.StorageClassName, "") != *wanted
}

// describeRequest says what a claim asks for as it is made.
func describeRequest(t v1alpha1.VolumeClaimTemplate) string {
	return fmt.Sprintf("%d %s %s", t.Storage.Value(), ptr.Deref(t.StorageClassName, "-"), ptr.Deref(t.VolumeAttributesClassName, "-"))
}

// labelsOf returns the labels of a claim: what it belongs to, and which of
// Kubernetes' recommended labels the pod carries.
func labelsOf(instance *v1alpha1.Instance, template *corev1.PodTemplateSpec, volumeName string) map[string]string {
	labels := map[string]string{}
	for key, value := range template.Labels {
		if strings.HasPrefix(key, "app.kubernetes.io/") {
			labels[key] = value
		}
	}
	labels[v1alpha1.LabelManagedBy] = v1alpha1.ManagedBy
	labels[v1alpha1.LabelInstance] = instance.Name
	labels[v1alpha1.LabelGroup] = instance.Spec.Group.Name
	labels[v1alpha1.LabelVolume] = volumeName
	return labels
}
