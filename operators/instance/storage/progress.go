package storage

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

// Progress is how far a claim's volume is on its way to what the claim asks for.
// The zero value is a volume that is what it should be.
type Progress struct {
	// Change is the type of the claim's own condition that tells most.
	Change string
	// Failed says that the storage driver or the kubelet has reported an error.
	// They try again by themselves.
	Failed bool
}

// ProgressOf returns how far the volume of a claim is. A claim without a volume, or whose
// volume has no known size, has made no progress.
//
// Conditions and allocatedResourceStatuses are what Kubernetes documents for
// PersistentVolumeClaimStatus. Their messages are not used: drivers put the ID of
// each failed request into them.
func ProgressOf(c *corev1.PersistentVolumeClaim) Progress {
	if c.Status.Phase != corev1.ClaimBound {
		return Progress{}
	}
	size, attributes := resizeProgress(c), attributesProgress(c)
	if size.Change == "" || attributes.Failed && !size.Failed {
		return attributes
	}
	return size
}

// resizeProgress is how far a volume is on its way to the size that its claim asks for.
func resizeProgress(c *corev1.PersistentVolumeClaim) Progress {
	if !isGrowing(c) {
		return Progress{}
	}
	at := c.Status.AllocatedResourceStatuses[corev1.ResourceStorage]
	switch {
	case hasCondition(c, corev1.PersistentVolumeClaimControllerResizeError), at == corev1.PersistentVolumeClaimControllerResizeInfeasible:
		return Progress{Change: string(corev1.PersistentVolumeClaimControllerResizeError), Failed: true}
	case hasCondition(c, corev1.PersistentVolumeClaimNodeResizeError), at == corev1.PersistentVolumeClaimNodeResizeInfeasible:
		return Progress{Change: string(corev1.PersistentVolumeClaimNodeResizeError), Failed: true}
	case hasCondition(c, corev1.PersistentVolumeClaimFileSystemResizePending):
		return Progress{Change: string(corev1.PersistentVolumeClaimFileSystemResizePending)}
	}
	return Progress{Change: string(corev1.PersistentVolumeClaimResizing)}
}

// attributesProgress is how far a volume is on its way to the VolumeAttributesClass that
// its claim asks for.
func attributesProgress(c *corev1.PersistentVolumeClaim) Progress {
	wanted := ptr.Deref(c.Spec.VolumeAttributesClassName, "")
	state := c.Status.ModifyVolumeStatus
	switch {
	case wanted == "", wanted == AttributesClass(c):
		return Progress{}
	case hasCondition(c, corev1.PersistentVolumeClaimVolumeModifyVolumeError),
		state != nil && state.TargetVolumeAttributesClassName == wanted && state.Status == corev1.PersistentVolumeClaimModifyVolumeInfeasible:
		return Progress{Change: string(corev1.PersistentVolumeClaimVolumeModifyVolumeError), Failed: true}
	}
	return Progress{Change: string(corev1.PersistentVolumeClaimVolumeModifyingVolume)}
}

// AttributesClass returns the VolumeAttributesClass that the volume of a claim has,
// empty if it has none.
func AttributesClass(c *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(c.Status.CurrentVolumeAttributesClassName, "")
}

// NextAttributesClass returns the VolumeAttributesClass that a claim is to ask for, nil
// for none, and whether that differs from what it asks for now. If none is wanted, the
// claim goes back to the class that its volume has, so that an earlier wish that never came
// true ends. Kubernetes allows the change only for claims with a volume.
func NextAttributesClass(c *corev1.PersistentVolumeClaim, wanted *string) (any, bool) {
	asked := ptr.Deref(c.Spec.VolumeAttributesClassName, "")
	next := ptr.Deref(wanted, AttributesClass(c))
	if c.Status.Phase != corev1.ClaimBound || next == asked {
		return nil, false
	}
	if next == "" {
		return nil, true
	}
	return next, true
}

// isGrowing reports whether a claim asks for more than its volume is known to have.
func isGrowing(c *corev1.PersistentVolumeClaim) bool {
	capacity, known := c.Status.Capacity[corev1.ResourceStorage]
	return known && capacity.Cmp(c.Spec.Resources.Requests[corev1.ResourceStorage]) < 0
}

// hasCondition reports whether a claim carries a condition at True.
func hasCondition(c *corev1.PersistentVolumeClaim, kind corev1.PersistentVolumeClaimConditionType) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(o corev1.PersistentVolumeClaimCondition) bool {
		return o.Type == kind && o.Status == corev1.ConditionTrue
	})
}

// NeedsResize reports whether a claim is to ask for another size: for more, or
// again for less where its volume has not grown as far. Kubernetes takes an
// increase back only to a size above that of the volume. A volume that has the size
// already may be one that a user made, of which Kubernetes refuses to ask for it.
func NeedsResize(c *corev1.PersistentVolumeClaim, wanted resource.Quantity) bool {
	capacity, known := c.Status.Capacity[corev1.ResourceStorage]
	order := wanted.Cmp(c.Spec.Resources.Requests[corev1.ResourceStorage])
	if !known {
		return order > 0
	}
	return order != 0 && capacity.Cmp(wanted) < 0
}
