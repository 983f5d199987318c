package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// perInstance is how long the removal of one Instance may take beside all others.
const perInstance = time.Second

// Close stops the operators, ends the simulated world and removes what is left
// of it. Whether all was well is not looked at: ask before.
func (r *Rig) Close() error {
	err := r.StopOperators(context.WithoutCancel(r.ctx), r.Running()...)
	if r.namespace != "" {
		failed := r.wipe()
		if failed != nil { // once in some thousand scenarios HTTP/2 ends a request, which client-go does not repeat
			failed = r.wipe()
		}
		err = errors.Join(err, failed)
	}
	return r.end(err)
}

// CloseWithPlane ends a rig whose control plane ends next: what is there goes with that. Other
// controllers, as that of StatefulSets, would make again what Close deletes.
func (r *Rig) CloseWithPlane() error {
	return r.end(r.StopOperators(context.WithoutCancel(r.ctx), r.Running()...))
}

// end stops what the rig simulates. err is what has failed before.
func (r *Rig) end(err error) error {
	r.cancel()
	if r.actor != nil {
		err = errors.Join(err, r.actor.close())
	}
	if err != nil {
		return fmt.Errorf("close rig: %w", err)
	}
	return nil
}

// ownedKinds are the kinds of what operators and Kubernetes' controllers make, those that make others first.
func ownedKinds() []schema.GroupVersionKind {
	return []schema.GroupVersionKind{
		batchv1.SchemeGroupVersion.WithKind("Job"),
		corev1.SchemeGroupVersion.WithKind("Pod"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		appsv1.SchemeGroupVersion.WithKind("ControllerRevision"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"),
	}
}

// wipe removes what an operator acts on, lest operators of other rigs take it for theirs. What is
// owned goes first, and the namespace stays: the garbage collector would ask for each object,
// and Kubernetes twice for each kind of a namespace, a sixth of all requests of the scenarios.
func (r *Rig) wipe() error {
	left := Timeout
	if r.Watcher != nil { // a rig that could not be opened has none
		r.Watcher.Now(func(o Objects) { left += perInstance * time.Duration(len(o.Names(v1alpha1.KindInstance, ""))) })
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), left)
	defer cancel()
	here := client.InNamespace(r.namespace)
	kinds := ownedKinds()
	for _, kind := range v1alpha1.Kinds() {
		kinds = append(kinds, v1alpha1.GroupVersion().WithKind(kind))
	}
	for _, kind := range kinds {
		if err := r.deleteAll(ctx, kind, here, client.GracePeriodSeconds(0)); err != nil {
			return err
		}
	}
	for _, kind := range []string{v1alpha1.KindInstance, v1alpha1.KindBackup} {
		if err := r.releaseAll(ctx, v1alpha1.GroupVersion().WithKind(kind), here); err != nil {
			return err
		}
	}
	outside := client.MatchingLabels{labelRig: r.namespace}
	for _, kind := range []string{kindNode, "PersistentVolume"} {
		if err := r.deleteAll(ctx, corev1.SchemeGroupVersion.WithKind(kind), outside); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rig) deleteAll(ctx context.Context, kind schema.GroupVersionKind, which ...client.DeleteAllOfOption) error {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(kind)
	if err := r.client.DeleteAllOf(ctx, object, which...); err != nil {
		return fmt.Errorf("delete all %s: %w", kind.Kind, err)
	}
	return nil
}

// releaseAll takes the finalizers off all objects of a kind: no operator is there any more to do it.
func (r *Rig) releaseAll(ctx context.Context, kind schema.GroupVersionKind, which ...client.ListOption) error {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(kind)
	if err := r.client.List(ctx, list, which...); err != nil {
		return fmt.Errorf("list all %s: %w", kind.Kind, err)
	}
	for i := range list.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := r.client.Patch(ctx, &list.Items[i], patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take finalizers off %s %s: %w", kind.Kind, list.Items[i].Name, err)
		}
	}
	return nil
}
