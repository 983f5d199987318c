package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// wipe removes everything, lest operators of other rigs take it for theirs.
// No operator is there any more to take finalizers off.
func (r *Rig) wipe() error {
	left := Timeout
	if r.Watcher != nil { // a rig that could not be opened has none
		r.Watcher.Now(func(o Objects) { left += perInstance * time.Duration(len(o.Names(v1alpha1.KindInstance, ""))) })
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.ctx), left)
	defer cancel()
	here := client.InNamespace(r.namespace)
	kinds := []client.Object{&v1alpha1.TidbCluster{}}
	for _, component := range v1alpha1.ComponentTable() {
		kinds = append(kinds, component.New())
	}
	for _, kind := range append(kinds, &v1alpha1.Instance{}) {
		if err := r.client.DeleteAllOf(ctx, kind, here); err != nil {
			return fmt.Errorf("delete all %T: %w", kind, err)
		}
	}
	instances := &v1alpha1.InstanceList{}
	if err := r.client.List(ctx, instances, here); err != nil {
		return fmt.Errorf("list Instances: %w", err)
	}
	for i := range instances.Items {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		if err := r.client.Patch(ctx, &instances.Items[i], patch); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("take finalizers off Instance %s: %w", instances.Items[i].Name, err)
		}
	}
	if err := r.client.DeleteAllOf(ctx, &corev1.Pod{}, here, client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete all pods: %w", err)
	}
	outside := client.MatchingLabels{labelRig: r.namespace}
	for _, kind := range []client.Object{&corev1.Node{}, &corev1.PersistentVolume{}} {
		if err := r.client.DeleteAllOf(ctx, kind, outside); err != nil {
			return fmt.Errorf("delete all %T: %w", kind, err)
		}
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.namespace}}
	if err := r.client.Delete(ctx, namespace); err != nil {
		return fmt.Errorf("delete namespace %s: %w", r.namespace, err)
	}
	return nil
}
