package rig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is what a controller takes its work from.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// claims returns the claims of a pod, or says which can't be bound.
func (a *actor) claims(ctx context.Context, pod *corev1.Pod) ([]corev1.PersistentVolumeClaim, string, error) {
	var out []corev1.PersistentVolumeClaim
	for _, name := range claimNames(pod) {
		var claim corev1.PersistentVolumeClaim
		err := a.client.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: name}, &claim)
		switch {
		case apierrors.IsNotFound(err):
			return nil, fmt.Sprintf("persistentvolumeclaim %q not found", name), nil
		case err != nil:
			return nil, "", fmt.Errorf("get claim %s: %w", name, err)
		case claim.DeletionTimestamp != nil:
			return nil, fmt.Sprintf("persistentvolumeclaim %q is being deleted", name), nil
		case claim.Status.Phase == corev1.ClaimBound:
			out = append(out, claim)
			continue
		}
		var class storagev1.StorageClass
		err = a.client.Get(ctx, types.NamespacedName{Name: className(&claim)}, &class)
		switch {
		case className(&claim) == "", apierrors.IsNotFound(err):
			return nil, "pod has unbound immediate PersistentVolumeClaims", nil
		case err != nil:
			return nil, "", fmt.Errorf("get StorageClass %s: %w", className(&claim), err)
		}
		out = append(out, claim)
	}
	return out, "", nil
}

// claimNames returns the claims that a pod mounts.
func claimNames(pod *corev1.Pod) []string {
	var out []string
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil {
			out = append(out, v.PersistentVolumeClaim.ClaimName)
		}
	}
	return out
}

func className(claim *corev1.PersistentVolumeClaim) string {
	return ptr.Deref(claim.Spec.StorageClassName, "")
}

// volumeName is the name of the volume that a claim is given.
func volumeName(claim types.UID) string { return "pv-" + string(claim) }

// volumeAffinity returns where the volumes of bound claims are. Only local ones
// are somewhere.
func (a *actor) volumeAffinity(ctx context.Context, claims []corev1.PersistentVolumeClaim) ([]*corev1.NodeSelector, error) {
	var out []*corev1.NodeSelector
	for i := range claims {
		if className(&claims[i]) != LocalStorageClass || claims[i].Spec.VolumeName == "" {
			continue
		}
		var volume corev1.PersistentVolume
		if err := a.live.Get(ctx, types.NamespacedName{Name: claims[i].Spec.VolumeName}, &volume); err != nil {
			return nil, fmt.Errorf("get volume of claim %s: %w", claims[i].Name, err)
		}
		if volume.Spec.NodeAffinity != nil {
			out = append(out, volume.Spec.NodeAffinity.Required)
		}
	}
	return out, nil
}

// selectedNode is the annotation by which the scheduler tells for which node a
// volume was made.
const selectedNode = "volume.kubernetes.io/selected-node"

// bindCompleted is the annotation by which Kubernetes tells that a claim has got its
// volume.
const bindCompleted = "pv.kubernetes.io/bind-completed"

// bind gives a claim a volume. Only operators that watch all namespaces ask for other
// volumes than local ones.
func (a *actor) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	if claim.Status.Phase == corev1.ClaimBound {
		return nil
	}
	unbound := claim.DeepCopy()
	if claim.Spec.VolumeName == "" {
		made := networkVolume(claim)
		if className(claim) == LocalStorageClass {
			made = localVolume(claim, node)
		}
		if a.volumes || className(claim) == LocalStorageClass {
			if err := a.client.Create(ctx, made); client.IgnoreAlreadyExists(err) != nil {
				return fmt.Errorf("make volume of claim %s: %w", claim.Name, err)
			}
		}
		claim.Spec.VolumeName = volumeName(claim.UID)
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNode, node)
	}
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, bindCompleted, "yes")
	if err := a.client.Patch(ctx, claim, client.MergeFrom(unbound)); err != nil {
		return fmt.Errorf("bind claim %s: %w", claim.Name, err)
	}
	before := claim.DeepCopy()
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = claim.Spec.AccessModes
	claim.Status.Capacity = claim.Spec.Resources.Requests
	if err := a.client.Status().Patch(ctx, claim, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("bind claim %s: %w", claim.Name, err)
	}
	return nil
}

// networkVolume is a volume that can be used on every node.
func networkVolume(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: volumeName(claim.UID), Labels: map[string]string{labelRig: claim.Namespace}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			StorageClassName: className(claim), PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "rig", VolumeHandle: string(claim.UID)}},
		},
	}
}

// localVolume is a disk of a node.
func localVolume(claim *corev1.PersistentVolumeClaim, node string) *corev1.PersistentVolume {
	out := networkVolume(claim)
	out.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/mnt/disks/" + string(claim.UID)}}
	out.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}},
	}}}}
	return out
}

// claimGone tells the database that a claim's data is gone, with its volume.
func (a *actor) claimGone(ctx context.Context, e event.DeleteEvent, _ queue) {
	for _, db := range a.databases.List() {
		db.LoseClaim(e.Object.GetUID())
	}
	claim, ok := e.Object.(*corev1.PersistentVolumeClaim)
	if !ok || !a.volumes && className(claim) != LocalStorageClass {
		return
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volumeName(claim.UID)}}
	if err := a.client.Delete(ctx, volume); client.IgnoreNotFound(err) != nil {
		a.fail(fmt.Errorf("delete volume of claim %s: %w", claim.Name, err))
	}
}
