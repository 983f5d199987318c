package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/expiry"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=instances/finalizers,verbs=update
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups;ticdcgroups;tidbgroups;tiflashgroups;tikvgroups;tiproxygroups,verbs=get
// +kubebuilder:rbac:groups="",resources=pods;persistentvolumeclaims,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=volumeattributesclasses,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Definition returns the instance operator.
func Definition() operator.Definition {
	return operator.Definition{
		Name:    "instance",
		Kind:    v1alpha1.KindInstance,
		List:    func() client.ObjectList { return &v1alpha1.InstanceList{} },
		Expires: expiry.Expires,
		Setup:   setupController,
	}
}

type reconciler struct {
	operator.Env
	places observation.Places
}

func setupController(_ context.Context, env operator.Env) error {
	r := &reconciler{Env: env}
	edits := queueing.NewEdits()
	b := edits.For(ctrl.NewControllerManagedBy(env.Manager).Named(env.Name), &v1alpha1.Instance{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(instanceOf)).
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(instanceOf)).
		WithOptions(edits.WithBackoff(env.Controller))
	if env.ClusterScoped {
		b = b.Watches(&storagev1.StorageClass{}, handler.EnqueueRequestsFromMapFunc(r.waitingForVolumes))
	}
	if err := b.Complete(r.InScope(edits.NewFairReconciler(r.PerNamespace, r.Now, edits.NewPacedReconciler(r)))); err != nil {
		return fmt.Errorf("add controller: %w", err)
	}
	return expiry.Add(env)
}

// Reconcile brings one Instance a step closer to its spec.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	instance := &v1alpha1.Instance{}
	if err := r.Client.Get(ctx, request.NamespacedName, instance); err != nil {
		if apierrors.IsNotFound(err) {
			r.places.Forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	s := r.observe(ctx, instance)
	if s.Gone {
		return reconcile.Result{}, nil
	}
	result, recorded, err := r.reconcileSnapshot(ctx, s)
	if err != nil || !recorded {
		return result, err
	}
	// Nothing but the pod is left to do: it does not wait until the caches show the claims.
	if same, err := r.readAgain(ctx, s); err != nil || !same {
		return result, err
	}
	result, _, err = r.reconcileSnapshot(ctx, s)
	return result, err
}

// reconcileSnapshot plans for a snapshot, carries the plan out and reports. recorded says that the status
// has just recorded the claims which a pod waited for.
func (r *reconciler) reconcileSnapshot(ctx context.Context, s *observation.Snapshot) (result reconcile.Result, recorded bool, err error) {
	p := makePlan(s)
	acted := r.act(ctx, s, p)
	switch {
	case acted.Err != nil && apierrors.IsConflict(acted.Err):
		// What was planned rests on an old version: plan again, say nothing.
		return reconcile.Result{RequeueAfter: step.ConflictDelay}, false, nil
	case p.RemoveFinalizer && acted.Kind == step.KindDone:
		return reconcile.Result{}, false, nil
	}
	found := reportStatus(s, p, acted, r.Now())
	wait, err := r.Status.Write(ctx, s.Instance, &found.before, &found.after, found.transitions)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: step.ConflictDelay}, false, nil
	case err != nil:
		return reconcile.Result{}, false, err
	}
	result, err = queueing.ResultOf(found.outcome, found.lookAgain(), wait)
	return result, s.Pod == nil && acted.Kind == step.KindDone && volumeclaim.RecordsClaims(found.before.Volumes, found.after.Volumes), err
}

// instanceOf returns the Instance that a pod or claim belongs to, by its
// controller or, where it has none, by its label.
func instanceOf(_ context.Context, object client.Object) []reconcile.Request {
	name := object.GetLabels()[v1alpha1.LabelInstance]
	if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == v1alpha1.KindInstance {
		name = owner.Name
	}
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: object.GetNamespace(), Name: name}}}
}

// waitingForVolumes returns the Instances whose volumes are not ready: a
// StorageClass that comes or goes may matter to them.
func (r *reconciler) waitingForVolumes(ctx context.Context, _ client.Object) []reconcile.Request {
	list := &v1alpha1.InstanceList{}
	if err := r.Client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "list Instances that wait for volumes")
		return nil
	}
	var out []reconcile.Request
	for i := range list.Items {
		if !meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, v1alpha1.ConditionVolumesReady) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return out
}
