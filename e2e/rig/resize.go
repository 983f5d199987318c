package rig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// claimActor plays the storage driver's resizer, which also applies
// VolumeAttributesClasses, and the kubelet that grows file systems, for the claims
// that are bound.
type claimActor struct{ *actor }

func (c *claimActor) setUp(manager ctrl.Manager) error {
	if err := ctrl.NewControllerManagedBy(manager).Named("claim" + ActorSuffix).For(&corev1.PersistentVolumeClaim{}).Complete(c); err != nil {
		return fmt.Errorf("build claim actor: %w", err)
	}
	return nil
}

// Reconcile brings the volume of one claim to what the claim asks for.
func (c *claimActor) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	claim := &corev1.PersistentVolumeClaim{}
	if err := c.client.Get(ctx, request.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	before := claim.DeepCopy()
	if wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]; wanted.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) > 0 {
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: wanted}
	}
	if class := claim.Spec.VolumeAttributesClassName; class != nil {
		err := c.live.Get(ctx, client.ObjectKey{Name: *class}, &storagev1.VolumeAttributesClass{})
		if client.IgnoreNotFound(err) != nil {
			return reconcile.Result{}, fmt.Errorf("get VolumeAttributesClass of claim %s: %w", claim.Name, err)
		}
		if err == nil {
			claim.Status.CurrentVolumeAttributesClassName = class
		}
	}
	if equality.Semantic.DeepEqual(before.Status, claim.Status) {
		return reconcile.Result{}, nil
	}
	if err := c.client.Status().Patch(ctx, claim, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("change volume of claim %s: %w", claim.Name, err)
	}
	return reconcile.Result{}, nil
}
