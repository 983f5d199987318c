package member

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// IsVolumeLost reports whether Kubernetes has given up the volume of a claim that still
// exists.
func IsVolumeLost(i *v1alpha1.Instance) bool {
	return IsClaimLost(i) && slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.Phase == string(corev1.ClaimLost) })
}

// IsClaimLost reports whether the instance operator starts no pod because a claim with the
// member's data is gone.
func IsClaimLost(i *v1alpha1.Instance) bool {
	c := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionVolumesReady)
	return c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonClaimLost
}

// ReplacesVolumes reports whether members are to be replaced whose volumes cannot become
// what the spec asks for.
func ReplacesVolumes(g v1alpha1.Group) bool {
	return g.GetComponentSpec().VolumeReplacement == v1alpha1.ReplaceVolumes
}

// VolumeMismatch says which volume of a member cannot become what the spec of the group
// asks for, if one cannot. Volumes neither move to another StorageClass nor shrink. A
// claim without a volume is created again by the instance operator. A claim that was made
// larger than its Instance asks for may stay.
func VolumeMismatch(g v1alpha1.Group, i *v1alpha1.Instance) verdict.Reason {
	for _, wanted := range g.GetComponentSpec().Volumes {
		has := VolumeStatus(i, wanted.Name)
		if has == nil || !HasVolume(has) {
			continue
		}
		if class := wanted.StorageClassName; class != nil && has.StorageClassName != "" && has.StorageClassName != *class {
			return verdict.NewReasonf("volume %s has StorageClass %s, spec.volumes says %s", wanted.Name, has.StorageClassName, *class)
		}
		asked := ClaimTemplate(i.Spec.VolumeClaimTemplates, wanted.Name)
		if ReplacesVolumes(g) && asked != nil && asked.Storage.Cmp(wanted.Storage) > 0 && StaysLarger(has, wanted.Storage) {
			return verdict.NewReasonf("volume %s has %s, spec.volumes says %s", wanted.Name, asked.Storage.String(), wanted.Storage.String())
		}
	}
	return verdict.Reason{}
}

// StaysLarger reports whether a claim has asked for more than a size, and cannot ask for less
// again: Kubernetes takes an increase back only to a size above that of the volume.
func StaysLarger(has *v1alpha1.VolumeStatus, size resource.Quantity) bool {
	return has.Requested != nil && has.Requested.Cmp(size) > 0 && (has.Capacity == nil || has.Capacity.Cmp(size) >= 0)
}

// HasVolume reports whether a claim is known to have a volume. Which one it is an operator
// without the right to read PersistentVolumes does not know, but then how large it is.
func HasVolume(v *v1alpha1.VolumeStatus) bool { return v.PersistentVolume != "" || v.Capacity != nil }

// VolumeReplacementReason says why a member is to be replaced for its volumes, if it is and
// the user wants that. The claims of a new member would be changed as its own were.
func VolumeReplacementReason(g v1alpha1.Group, i *v1alpha1.Instance) verdict.Reason {
	if !ReplacesVolumes(g) || IsClassChanged(g, i) {
		return verdict.Reason{}
	}
	return VolumeMismatch(g, i)
}

// IsClassChanged reports whether a claim of a member was made with the StorageClass that the
// spec of the group asks for and has another one, as from an admission webhook.
func IsClassChanged(g v1alpha1.Group, i *v1alpha1.Instance) bool {
	return VolumeMismatch(g, i).IsGiven() && slices.ContainsFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool {
		return HasVolume(&v) && v.Change == v1alpha1.ReasonClaimRejected
	})
}

// ClaimTemplate returns the claim of a volume, nil if there is none of that name.
func ClaimTemplate(claims []v1alpha1.VolumeClaimTemplate, name string) *v1alpha1.VolumeClaimTemplate {
	if at := slices.IndexFunc(claims, func(c v1alpha1.VolumeClaimTemplate) bool { return c.Name == name }); at >= 0 {
		return &claims[at]
	}
	return nil
}

// VolumeStatus returns what an Instance reports of a volume, nil if it reports nothing.
func VolumeStatus(i *v1alpha1.Instance, name string) *v1alpha1.VolumeStatus {
	if at := slices.IndexFunc(i.Status.Volumes, func(v v1alpha1.VolumeStatus) bool { return v.Name == name }); at >= 0 {
		return &i.Status.Volumes[at]
	}
	return nil
}
