package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/instance/observation"
	"github.com/tidb-groups/tidb-groups/operators/instance/planning"
	"github.com/tidb-groups/tidb-groups/operators/instance/refusal"
	"github.com/tidb-groups/tidb-groups/operators/instance/storage"
	"github.com/tidb-groups/tidb-groups/operators/instance/volumeclaim"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out. A claim that it creates or changes is put into the
// snapshot, so that the status which follows reports it as it is now. A conflict
// as Err says that the plan rests on an old version of something.
func (r *reconciler) act(ctx context.Context, s *observation.Snapshot, p *planning.Plan) step.Outcome {
	if p.AddFinalizer {
		if err := r.changeFinalizer(ctx, s.Instance, controllerutil.AddFinalizer); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	var all []step.Outcome
	for _, c := range p.CreateClaims {
		all = append(all, r.createClaim(ctx, s, c))
	}
	for _, c := range p.PatchClaims {
		all = append(all, r.patchClaim(ctx, s, c))
	}
	for _, c := range p.DeleteClaims {
		all = append(all, r.deleteClaim(ctx, s, c))
	}
	if p.CreatePod != nil {
		all = append(all, r.createPod(ctx, s, p.CreatePod))
	}
	if p.PatchPod != nil {
		all = append(all, r.patchPod(ctx, s, p.PatchPod))
	}
	if p.DeletePod != nil {
		all = append(all, r.deletePod(ctx, s, p.DeletePod))
	}
	worst := step.Worst(all...)
	if p.RemoveFinalizer && worst.Kind == step.KindDone {
		if err := r.changeFinalizer(ctx, s.Instance, releaseFinalizers(s)); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	return worst
}

// releaseFinalizers removes our finalizer, and that of the group's operator if there is no
// group any more.
func releaseFinalizers(s *observation.Snapshot) func(client.Object, string) bool {
	return func(o client.Object, ours string) bool {
		if s.Ownerless {
			controllerutil.RemoveFinalizer(o, v1alpha1.FinalizerMember)
		}
		return controllerutil.RemoveFinalizer(o, ours)
	}
}

// changeFinalizer adds or removes ours. The list is written whole, so the write must
// meet the version that it was computed from.
func (r *reconciler) changeFinalizer(ctx context.Context, instance *v1alpha1.Instance, change func(client.Object, string) bool) error {
	changed := instance.DeepCopy()
	change(changed, v1alpha1.FinalizerInstance)
	patch := client.MergeFromWithOptions(instance, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch, client.FieldOwner(r.Name)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("change finalizers of Instance %s: %w", instance.Name, err)
	}
	status.Note(ctrl.LoggerFrom(ctx), status.About{Object: instance, Reason: "Finalizers"}, "changed the finalizers of Instance %s to %q", instance.Name, changed.Finalizers)
	return nil
}

func (r *reconciler) createClaim(ctx context.Context, s *observation.Snapshot, c planning.ClaimCreation) step.Outcome {
	created := c.Claim.DeepCopy()
	if err := r.Client.Create(ctx, created, client.FieldOwner(r.Name)); err != nil {
		o := refusal.FromClaimError(s, created, fmt.Errorf("create claim %s: %w", created.Name, err))
		s.Volumes[c.Index].Refused = o.Reason
		return o
	}
	s.Volumes[c.Index].Claim = created
	// Kubernetes' own Events report how it gets its volume.
	status.Note(ctrl.LoggerFrom(ctx), status.About{Object: s.Instance, Related: created, Reason: "ClaimCreated"}, "created claim %s", created.Name)
	return step.Done()
}

func (r *reconciler) patchClaim(ctx context.Context, s *observation.Snapshot, c planning.ClaimPatch) step.Outcome {
	changed := c.Claim.DeepCopy()
	at := slices.IndexFunc(s.Volumes, func(v observation.Volume) bool { return v.Claim != nil && v.Claim.UID == c.Claim.UID }) // another patch may have renewed it
	if err := r.patch(ctx, changed, c.Body); err != nil {
		o := refusal.FromChangeError(s, c, err)
		if at >= 0 {
			s.Volumes[at].Refused = o.Reason
		}
		return o
	}
	if at >= 0 {
		s.Volumes[at].Claim = changed
		if spec, ok := c.Body["spec"].(map[string]any); ok && spec[volumeclaim.AttributesField] != nil {
			// What it does not know, an API server drops.
			s.Volumes[at].Dropped = changed.Spec.VolumeAttributesClassName == nil
		}
	}
	r.recordEvent(s, c.Claim, c.Event, "changed claim %s: %s", c.Claim.Name, c.Why)
	return step.Done()
}

func (r *reconciler) deleteClaim(ctx context.Context, s *observation.Snapshot, c planning.ClaimDeletion) step.Outcome {
	live := &corev1.PersistentVolumeClaim{}
	if done, err := r.confirm(ctx, s, c.Claim, live); done || err != nil {
		return refusal.FromError(err)
	}
	if c.Unbound && live.Spec.VolumeName != "" {
		return refusal.FromError(refusal.NewConflict(live.Name))
	}
	if err := r.remove(ctx, live); err != nil {
		return refusal.FromError(fmt.Errorf("delete claim %s: %w", live.Name, err))
	}
	r.recordEvent(s, live, "ClaimDeleted", "deleted claim %s: %s", live.Name, c.Why)
	return step.Done()
}

func (r *reconciler) createPod(ctx context.Context, s *observation.Snapshot, pod *corev1.Pod) step.Outcome {
	created := pod.DeepCopy()
	if err := r.Client.Create(ctx, created, client.FieldOwner(r.Name)); err != nil {
		if q := storage.QuotaOf(err); q != nil {
			return refusal.OverQuota(s, pod, q)
		}
		return refusal.FromWriteError(s, v1alpha1.ReasonPodRejected, fmt.Errorf("create pod %s: %w", pod.Name, err))
	}
	s.Pod = created
	// Kubernetes' own Events report where it is scheduled and how it starts.
	status.Note(ctrl.LoggerFrom(ctx), status.About{Object: s.Instance, Related: created, Reason: "PodCreated"}, "created pod %s of revision %s", pod.Name, s.Instance.Spec.Revision)
	return step.Done()
}

func (r *reconciler) patchPod(ctx context.Context, s *observation.Snapshot, p *planning.PodPatch) step.Outcome {
	if err := r.patch(ctx, p.Pod.DeepCopy(), p.Body); err != nil {
		return refusal.FromWriteError(s, v1alpha1.ReasonPodRejected, fmt.Errorf("change pod %s: %w", p.Pod.Name, err))
	}
	// No Event: a user acts on none of it, and the pod shows it.
	status.Note(ctrl.LoggerFrom(ctx), status.About{Object: s.Instance, Related: p.Pod, Reason: "PodUpdated"}, "changed pod %s in place: %s", p.Pod.Name, p.Why)
	return step.Done()
}

func (r *reconciler) deletePod(ctx context.Context, s *observation.Snapshot, d *planning.PodDeletion) step.Outcome {
	live := &corev1.Pod{}
	if done, err := r.confirm(ctx, s, d.Pod, live); done || err != nil {
		return refusal.FromError(err)
	}
	if d.Next != nil {
		// Its own name is taken as yet. One of the API server would be another each time, as would what status says.
		trial := d.Next.DeepCopy()
		trial.Name += "-next"
		err := r.Client.Create(ctx, trial, client.DryRunAll, client.FieldOwner(r.Name))
		if o := refusal.FromTrial(s, live, d.Next, err); o.Kind != step.KindDone {
			return o
		}
	}
	if err := r.remove(ctx, live); err != nil {
		return refusal.FromError(fmt.Errorf("delete pod %s: %w", live.Name, err))
	}
	r.recordEvent(s, live, "PodDeleted", "deleted pod %s: %s", live.Name, d.Why)
	return step.Done()
}

// confirm reads an object that is to be deleted, and the Instance, from the API
// server. It is done if the object is gone or going; it is a conflict if either
// is not what the plan was made for.
func (r *reconciler) confirm(ctx context.Context, s *observation.Snapshot, seen, live client.Object) (bool, error) {
	instance := &v1alpha1.Instance{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(s.Instance), instance); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("read Instance %s: %w", s.Instance.Name, err)
	}
	if instance.UID != s.Instance.UID || instance.Generation != s.Instance.Generation {
		return false, refusal.NewConflict(s.Instance.Name)
	}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("read %T %s: %w", live, seen.GetName(), err)
	case live.GetUID() != seen.GetUID():
		return false, refusal.NewConflict(seen.GetName())
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

// recordEvent records a side effect as an Event of the Instance.
func (r *reconciler) recordEvent(s *observation.Snapshot, related client.Object, reason, format string, args ...any) {
	r.Recorder.Eventf(s.Instance, related, corev1.EventTypeNormal, reason, "Reconcile", format, args...)
}
