package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out. A claim that it creates or changes is put into the
// snapshot, so that the status which follows tells of it as it is now. A conflict
// as Err says that the plan rests on an old version of something.
func (r *reconciler) act(ctx context.Context, s *snapshot, p *plan) step.Outcome {
	if p.addFinalizer {
		if err := r.finalizer(ctx, s.instance, controllerutil.AddFinalizer); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	var all []step.Outcome
	for _, c := range p.createClaims {
		all = append(all, r.createClaim(ctx, s, c))
	}
	for _, c := range p.patchClaims {
		all = append(all, r.patchClaim(ctx, s, c))
	}
	for _, c := range p.deleteClaims {
		all = append(all, r.deleteClaim(ctx, s, c))
	}
	if p.createPod != nil {
		all = append(all, r.createPod(ctx, s, p.createPod))
	}
	if p.patchPod != nil {
		all = append(all, r.patchPod(ctx, s, p.patchPod))
	}
	if p.deletePod != nil {
		all = append(all, r.deletePod(ctx, s, p.deletePod))
	}
	worst := step.Worst(all...)
	if p.removeFinalizer && worst.Kind == step.KindDone {
		if err := r.finalizer(ctx, s.instance, letGo(s)); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	return worst
}

// letGo removes our finalizer, and that of the group's operator if there is no
// group any more.
func letGo(s *snapshot) func(client.Object, string) bool {
	return func(o client.Object, ours string) bool {
		if s.ownerless {
			controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerMember)
		}
		return controllerutil.RemoveFinalizer(o, ours)
	}
}

// finalizer adds or removes ours. The list is written whole, so the write must
// meet the version that it was computed from.
func (r *reconciler) finalizer(ctx context.Context, instance *v1alpha1.Instance, change func(client.Object, string) bool) error {
	changed := instance.DeepCopy()
	change(changed, v1alpha1.FinalizerInstance)
	patch := client.MergeFromWithOptions(instance, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(r.Name)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change finalizers of Instance %s: %w", instance.Name, err)
	}
	status.Note(ctrl.LoggerFrom(ctx), status.About{Object: instance, Reason: "Finalizers"}, "changed the finalizers of Instance %s to %q", instance.Name, changed.Finalizers)
	return nil
}

func (r *reconciler) createClaim(ctx context.Context, s *snapshot, c claimCreation) step.Outcome {
	created := c.claim.DeepCopy()
	if err := r.Client.Create(ctx, created, client.FieldOwner(r.Name)); err != nil {
		o := refused(s, created, fmt.Errorf("create claim %s: %w", created.Name, err))
		s.volumes[c.index].refused = o.Reason
		return o
	}
	s.volumes[c.index].claim = created
	// Kubernetes' own Events tell how it gets its volume.
	status.Note(ctrl.LoggerFrom(ctx), status.About{Object: s.instance, Related: created, Reason: "ClaimCreated"}, "created claim %s", created.Name)
	return step.Done()
}

func (r *reconciler) patchClaim(ctx context.Context, s *snapshot, c claimPatch) step.Outcome {
	changed := c.claim.DeepCopy()
	at := slices.IndexFunc(s.volumes, func(v volume) bool { return v.claim == c.claim })
	if err := r.patch(ctx, changed, c.body); err != nil {
		o := refused(s, c.claim, fmt.Errorf("change claim %s: %w", c.claim.Name, err))
		if o.Reason == v1alpha1.ReasonLimitRangeExceeded && c.body["spec"] == nil {
			// LimitRanger judges the size at every change, whatever is changed.
			o.Message = fmt.Sprintf("a LimitRange lets claim %s not be changed at all, and it is to be (%s): raise the LimitRange's maximum: kubectl -n %s get limitrange; or delete the claim, if its data is not needed: kubectl -n %s delete pvc %s",
				c.claim.Name, c.why, c.claim.Namespace, c.claim.Namespace, c.claim.Name)
		}
		if at >= 0 {
			s.volumes[at].refused = o.Reason
		}
		return o
	}
	if at >= 0 {
		s.volumes[at].claim = changed
		if spec, ok := c.body["spec"].(map[string]any); ok && spec[attributesField] != nil {
			// What it does not know, an API server drops.
			s.volumes[at].dropped = changed.Spec.VolumeAttributesClassName == nil
		}
	}
	r.tell(s, c.claim, c.event, "changed claim %s: %s", c.claim.Name, c.why)
	return step.Done()
}

func (r *reconciler) deleteClaim(ctx context.Context, s *snapshot, c claimDeletion) step.Outcome {
	live := &corev1.PersistentVolumeClaim{}
	if done, err := r.confirm(ctx, s, c.claim, live); done || err != nil {
		return failed(err)
	}
	if c.unbound && live.Spec.VolumeName != "" {
		return failed(outdated(live.Name))
	}
	if err := r.remove(ctx, live); err != nil {
		return failed(fmt.Errorf("delete claim %s: %w", live.Name, err))
	}
	r.tell(s, live, "ClaimDeleted", "deleted claim %s: %s", live.Name, c.why)
	return step.Done()
}

func (r *reconciler) createPod(ctx context.Context, s *snapshot, pod *corev1.Pod) step.Outcome {
	created := pod.DeepCopy()
	if err := r.Client.Create(ctx, created, client.FieldOwner(r.Name)); err != nil {
		if q := storage.QuotaOf(err); q != nil {
			return overQuota(s, pod, q)
		}
		return rejected(s, v1alpha1.ReasonPodRejected, fmt.Errorf("create pod %s: %w", pod.Name, err))
	}
	s.pod = created
	// Kubernetes' own Events tell where it is scheduled and how it starts.
	status.Note(ctrl.LoggerFrom(ctx), status.About{Object: s.instance, Related: created, Reason: "PodCreated"}, "created pod %s of revision %s", pod.Name, s.instance.Spec.Revision)
	return step.Done()
}

func (r *reconciler) patchPod(ctx context.Context, s *snapshot, p *podPatch) step.Outcome {
	if err := r.patch(ctx, p.pod.DeepCopy(), p.body); err != nil {
		return rejected(s, v1alpha1.ReasonPodRejected, fmt.Errorf("change pod %s: %w", p.pod.Name, err))
	}
	r.tell(s, p.pod, "PodUpdated", "changed pod %s in place: %s", p.pod.Name, p.why)
	return step.Done()
}

func (r *reconciler) deletePod(ctx context.Context, s *snapshot, d *podDeletion) step.Outcome {
	live := &corev1.Pod{}
	if done, err := r.confirm(ctx, s, d.pod, live); done || err != nil {
		return failed(err)
	}
	if d.next != nil {
		// Its own name is taken as yet. One that the API server made up would be
		// another one each time, and with it what status says of a refusal.
		trial := d.next.DeepCopy()
		trial.Name += "-next"
		if err := r.Client.Create(ctx, trial, client.DryRunAll, client.FieldOwner(r.Name)); neverMade(err) {
			return step.Fail(v1alpha1.ReasonPodRejected, fmt.Errorf("pod %s is left running, its replacement is invalid: %w", live.Name, err))
		}
	}
	if err := r.remove(ctx, live); err != nil {
		return failed(fmt.Errorf("delete pod %s: %w", live.Name, err))
	}
	r.tell(s, live, "PodDeleted", "deleted pod %s: %s", live.Name, d.why)
	return step.Done()
}

// neverMade reports whether a pod would be refused when the one that it replaces has
// gone as well: a quota may only be too small for both, and nobody knows what a webhook
// counts.
func neverMade(err error) bool {
	forbidden := apierrors.IsForbidden(err) && storage.QuotaOf(err) == nil && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) &&
		!strings.Contains(err.Error(), "admission webhook")
	return apierrors.IsInvalid(err) || forbidden
}

// confirm reads an object that is to be deleted, and the Instance, from the API
// server. It is done if the object is gone or going; it is a conflict if either
// is not what the plan was made for.
func (r *reconciler) confirm(ctx context.Context, s *snapshot, seen, live client.Object) (bool, error) {
	instance := &v1alpha1.Instance{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.instance), instance); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Instance %s: %w", s.instance.Name, err)
	}
	if instance.UID != s.instance.UID || instance.Generation != s.instance.Generation {
		return false, outdated(s.instance.Name)
	}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", live, seen.GetName(), err)
	case live.GetUID() != seen.GetUID():
		return false, outdated(seen.GetName())
	}
	return live.GetDeletionTimestamp() != nil, nil
}

// remove deletes exactly the object that was read.
func (r *reconciler) remove(ctx context.Context, live client.Object) error {
	return client.IgnoreNotFound(r.Client.Delete(ctx, live, client.Preconditions{
		UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion()),
	}))
}

// patch sends a JSON merge patch; the object becomes what the API server answers.
func (r *reconciler) patch(ctx context.Context, object client.Object, body map[string]any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode patch: %w", err)
	}
	return client.IgnoreNotFound(r.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(r.Name)))
}

// tell records a side effect as an Event of the Instance.
func (r *reconciler) tell(s *snapshot, related client.Object, reason, format string, args ...any) {
	r.Recorder.Eventf(s.instance, related, corev1.EventTypeNormal, reason, "Reconcile", format, args...)
}

// outdated is the conflict of a plan with what there is by now.
func outdated(name string) error {
	return apierrors.NewConflict(schema.GroupResource{Group: v1alpha1.GroupName, Resource: "instances"}, name, errors.New("it has changed meanwhile"))
}

// failed turns an error, or none, into an outcome.
func failed(err error) step.Outcome {
	if err == nil {
		return step.Done()
	}
	return step.Fail(v1alpha1.ReasonRequestFailed, err)
}

// refused turns the API server's answer to a write of a claim into an outcome. It
// is asked again after a while: nobody tells when a quota grows.
func refused(s *snapshot, c *corev1.PersistentVolumeClaim, err error) step.Outcome {
	if why := storage.RefusalOf(c.Namespace, c.Name, from(s).In("volumes"), err); why != nil {
		o := stall(why.Reason, "%s", why.Message)
		o.After = refusalRecheck
		return o
	}
	return rejected(s, v1alpha1.ReasonClaimRejected, err)
}

// overQuota waits for a ResourceQuota to have room for a pod: a person makes it, or
// another pod that ends. How much of it is used is not told, others change that.
func overQuota(s *snapshot, pod *corev1.Pod, q *storage.Quota) step.Outcome {
	o := wait("resourcequota", v1alpha1.ReasonPodRejected, "ResourceQuota %s is too small for pod %s (it adds %s, the limit is %s): see what uses it: kubectl -n %s describe resourcequota %s; raise it, or lower resources or replicas: %s",
		q.Name, pod.Name, q.Adds, q.Limit, pod.Namespace, q.Name, from(s).Edit())
	o.After = refusalRecheck
	return o
}

// source is the field of a group that what the API server calls invalid comes from, so
// far as that shows: what a pod has from no other field it has from the overlay.
func source(reason string, err error) string {
	if reason == v1alpha1.ReasonClaimRejected {
		return "volumes"
	}
	fields := []string{"affinity", "env", "nodeSelector", "priorityClassName", "resources", "securityContext", "serviceAccountName", "tolerations", "topologySpreadConstraints"}
	for _, field := range fields {
		if text := err.Error(); strings.Contains(text, "spec."+field) || strings.Contains(text, "spec.containers[0]."+field) {
			return field
		}
	}
	return "overlay"
}

// rejected turns the API server's answer to a write into an outcome. What is
// invalid stays invalid until the spec changes; what is forbidden, by a quota
// for example, may be allowed later.
func rejected(s *snapshot, reason string, err error) step.Outcome {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return stall(reason, "%v: correct what the pod has it from, such as %s", err, from(s).In(source(reason, err)))
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return wait("namespace", v1alpha1.ReasonDeleting, "the namespace is being deleted: nothing can be created in it")
	case apierrors.IsForbidden(err):
		return step.Fail(reason, err)
	case apierrors.IsAlreadyExists(err):
		// It came into being after we looked: look again.
		return step.Fail(reason, outdated(reason))
	}
	return failed(err)
}
