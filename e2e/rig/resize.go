package rig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// claimActor plays the storage driver's resizer and the kubelet that grows file
// systems, for the claims that are bound.
type claimActor struct{ *actor }

func (c *claimActor) setUp(manager ctrl.Manager) error {
	if err := ctrl.NewControllerManagedBy(manager).Named("claim-actor").For(&corev1.PersistentVolumeClaim{}).Complete(c); err != nil {
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
	wanted := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	if claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil || wanted.Cmp(claim.Status.Capacity[corev1.ResourceStorage]) <= 0 {
		return reconcile.Result{}, nil
	}
	before := claim.DeepCopy()
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: wanted}
	if err := c.client.Status().Patch(ctx, claim, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("grow volume of claim %s: %w", claim.Name, err)
	}
	return reconcile.Result{}, nil
}
