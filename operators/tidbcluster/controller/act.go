package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbcluster/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/origin"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out and nothing else. Groups are applied kind after kind in
// the order of an upgrade: the later kind checks whether those before it have
// arrived, and must not find them at an older spec. Kinds that are upgraded first are changed
// before all others, and made after PD. Those that are suspended now
// come first, from the last kind to PD: the kind that stops later checks whether those before
// it are to stop as well. A group that cannot be applied keeps no other from being,
// but those after it from another version; without PD, whose name may be another
// owner's, none is made.
func (r *Reconciler) act(ctx context.Context, c *v1alpha1.TidbCluster, p clusterPlan) step.Outcome {
	worst := step.Done()
	kinds := v1alpha1.RolloutOrder()
	for _, kind := range slices.Backward(kinds) {
		worst = step.Worst(worst, r.applyKind(ctx, c, p, kind.Kind, suspendsGroup))
	}
	for _, kind := range kinds {
		worst = step.Worst(worst, r.applyKind(ctx, c, p, kind.Kind, isAhead))
	}
	noPD := false
	for _, component := range kinds {
		kind := component.Kind
		goesOn := worst.Kind == step.KindDone || worst.Kind == step.KindWait
		o := r.applyKind(ctx, c, p, kind, func(change groupChange) bool {
			return !isAhead(change) && !suspendsGroup(change) && (goesOn || !upgradesGroup(change)) && (!noPD || change.live != nil)
		})
		if kind == v1alpha1.KindPDGroup && o.Kind != step.KindDone && o.Kind != step.KindWait {
			noPD = slices.ContainsFunc(p.Apply, func(change groupChange) bool { return change.live == nil && change.desired.GroupKind() == kind })
		}
		worst = step.Worst(worst, o)
	}
	r.tellMade(c, p.Apply)
	var work []func() step.Outcome
	for _, g := range p.Keep {
		work = append(work, func() step.Outcome { return r.mark(ctx, g, c.Name) })
	}
	if worst.Kind == step.KindDone || worst.Kind == step.KindWait {
		for _, g := range p.Prune {
			work = append(work, func() step.Outcome { return r.prune(ctx, c, g) })
		}
	}
	work = append(work, func() step.Outcome { return r.applyRestore(ctx, c, p.Bootstrap) })
	return step.Worst(worst, step.RunInParallel(work...))
}

// applyRestore makes, corrects or deletes the Restore of a cluster. One is made only if the newest
// version of the cluster does not say either that its data are there.
func (r *Reconciler) applyRestore(ctx context.Context, c *v1alpha1.TidbCluster, p bootstrap.Plan) step.Outcome {
	switch {
	case p.Remove != nil:
		err := r.Client.Delete(ctx, p.Remove, client.Preconditions{UID: &p.Remove.UID, ResourceVersion: &p.Remove.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationForeground))
		if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("delete Restore %s: %w", p.Remove.Name, err))
		}
		return step.Done()
	case p.Make == nil:
		return step.Done()
	}
	var live client.Object
	if p.Live != nil {
		live = p.Live
	} else if o := r.confirmNoRestore(ctx, c, p.Make.Name); o.Kind != step.KindDone {
		return o
	}
	result, err := r.Apply().Object(ctx, p.Make, live)
	switch {
	case err != nil:
		return applyErrorOutcome(err, "spec.bootstrapFrom: ", "Restore "+p.Make.Name)
	case result != apply.Unchanged:
		r.Recorder.Eventf(c, p.Make, corev1.EventTypeNormal, string(result), "Apply", "%s Restore %s", result, p.Make.Name)
	}
	return step.Done()
}

// confirmNoRestore looks in the API server whether a Restore may be made: the cluster is as it was
// seen, and none of the name has been made.
func (r *Reconciler) confirmNoRestore(ctx context.Context, c *v1alpha1.TidbCluster, name string) step.Outcome {
	isSame := func(now *v1alpha1.TidbCluster) bool { return now.ResourceVersion == c.ResourceVersion }
	if o := r.confirmCluster(ctx, c, v1alpha1.ReasonCreating, isSame); o.Kind != step.KindDone {
		return o
	}
	return r.confirmAbsent(ctx, v1alpha1.KindRestore, client.ObjectKey{Namespace: c.Namespace, Name: name})
}

// applyKind applies the groups of a kind whose change is chosen.
func (r *Reconciler) applyKind(ctx context.Context, c *v1alpha1.TidbCluster, p clusterPlan, kind string, chosen func(groupChange) bool) step.Outcome {
	var work []func() step.Outcome
	for at := range p.Apply {
		if change := &p.Apply[at]; change.desired.GroupKind() == kind && chosen(*change) {
			work = append(work, func() step.Outcome { return r.applyGroup(ctx, c, change) })
		}
	}
	return step.RunInParallel(work...)
}

// tellMade records the groups that were made together in one Event.
func (r *Reconciler) tellMade(c *v1alpha1.TidbCluster, changes []groupChange) {
	var names []string
	for _, change := range changes {
		if change.made {
			names = append(names, change.desired.GroupKind()+" "+change.desired.GetName())
		}
	}
	if len(names) > 0 {
		r.Recorder.Eventf(c, nil, corev1.EventTypeNormal, string(apply.Created), "Apply", "Created %s", strings.Join(names, ", "))
	}
}

// suspendsGroup reports whether a change suspends a group that exists.
func suspendsGroup(change groupChange) bool {
	return change.live != nil && !change.live.GetComponentSpec().Suspended && change.desired.GetComponentSpec().Suspended
}

// isAhead reports whether a change is of a group that exists, runs on and is upgraded first: those
// that wait for it must not find it at an older spec.
func isAhead(change groupChange) bool {
	info, _ := v1alpha1.LookupComponent(change.desired.GroupKind())
	return info.UpgradedFirst && change.live != nil && !change.live.GetComponentSpec().Suspended && !change.desired.GetComponentSpec().Suspended
}

// upgradesGroup reports whether a change gives a group that exists another version.
func upgradesGroup(change groupChange) bool {
	return change.live != nil && change.live.GetComponentSpec().Version != change.desired.GetComponentSpec().Version
}

func (r *Reconciler) applyGroup(ctx context.Context, c *v1alpha1.TidbCluster, change *groupChange) step.Outcome {
	name := change.desired.GroupKind() + " " + change.desired.GetName()
	var live client.Object
	if change.live != nil {
		live = change.live
	} else if o := r.confirmAbsent(ctx, change.desired.GroupKind(), client.ObjectKeyFromObject(change.desired)); o.Kind != step.KindDone {
		return o
	}
	if change.live != nil {
		if o := r.mark(ctx, change.live, ""); o.Kind != step.KindDone {
			return o
		}
	}
	// What the entry does not say of the replicas others may, and have said it.
	result, err := r.Apply().ObjectKeepingField(ctx, change.desired, live, "spec", "replicas")
	switch {
	case err != nil:
		return applyErrorOutcome(err, "", name)
	case result == apply.Updated && r.Apply().WasApplied(change.desired, live):
		// The cluster says what it said before: the group was changed.
		edit := origin.OfGroup(change.desired)
		r.Recorder.Eventf(change.live, c, corev1.EventTypeWarning, "SetBack", "Apply", "%s is set back to what TidbCluster %s says; change it there, in %s: %s", name, c.Name, strings.TrimSuffix(edit.Field(""), "."), edit.Edit())
		return step.Wait("groups", waitDeadline, v1alpha1.ReasonProgressing, name+" has just been set back")
	case result == apply.Created:
		change.made = true
		return step.Wait("groups", waitDeadline, v1alpha1.ReasonProgressing, name+" has just been changed")
	case result != apply.Unchanged:
		r.Recorder.Eventf(c, change.desired, corev1.EventTypeNormal, string(result), "Apply", "%s %s", result, name)
		// The plan rests on what the group said of its old spec.
		return step.Wait("groups", waitDeadline, v1alpha1.ReasonProgressing, name+" has just been changed")
	}
	return step.Done()
}

// confirmAbsent looks in the API server for an object that the cache does not show: one
// that was just made by another is not ours to take.
func (r *Reconciler) confirmAbsent(ctx context.Context, kind string, key client.ObjectKey) step.Outcome {
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))
	switch err := r.Live.Get(ctx, key, there); {
	case apierrors.IsNotFound(err):
		return step.Done()
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get %s %s: %w", kind, key.Name, err))
	}
	return step.Conflict(v1alpha1.ReasonCreating, kind+" "+key.Name+" has appeared meanwhile")
}

// applyErrorOutcome says how an apply ended that failed. field is what asks for the object.
func applyErrorOutcome(err error, field, name string) step.Outcome {
	switch {
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonProgressing, name+" has changed meanwhile")
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		o := step.Stall(v1alpha1.ReasonInvalidSpec, fmt.Sprintf("%s%s is refused: %v", field, name, err))
		o.After = waitDeadline
		return o
	}
	return step.Fail(v1alpha1.ReasonRequestFailed, err)
}

// mark notes on a group whose TidbCluster does not name it any more; empty takes the
// note back. The group's operator answers it with what the group holds.
func (r *Reconciler) mark(ctx context.Context, g v1alpha1.Group, cluster string) step.Outcome {
	if g.GetAnnotations()[v1alpha1.AnnotationEntryRemoved] == cluster || len(listStores(g)) == 0 && cluster != "" {
		return step.Done()
	}
	var value any
	if cluster != "" {
		value = cluster
	}
	raw, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": g.GetUID(), "annotations": map[string]any{v1alpha1.AnnotationEntryRemoved: value}}})
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("encode a mark on %s %s: %w", g.GroupKind(), g.GetName(), err))
	}
	changed, ok := g.DeepCopyObject().(v1alpha1.Group)
	if !ok {
		return step.Done()
	}
	err = r.Client.Patch(ctx, changed, client.RawPatch(types.MergePatchType, raw), client.FieldOwner(r.Name))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err), apierrors.IsInvalid(err): // it is another one by now
		return step.Conflict(v1alpha1.ReasonProgressing, g.GroupKind()+" "+g.GetName()+" has changed meanwhile")
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("mark %s %s: %w", g.GroupKind(), g.GetName(), err))
	}
	return step.Done()
}

// prune deletes a group that the spec no longer names, exactly the one
// that was seen, if it holds nothing by what the API server says, or a user consents.
// Its claims stay, unless its own policy says otherwise.
func (r *Reconciler) prune(ctx context.Context, c *v1alpha1.TidbCluster, seen v1alpha1.Group) step.Outcome {
	live, ok := seen.DeepCopyObject().(v1alpha1.Group)
	if !ok {
		return step.Done()
	}
	if o := r.confirmEntries(ctx, c); o.Kind != step.KindDone {
		return o
	}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(seen), live); err != nil {
		if apierrors.IsNotFound(err) {
			return step.Done()
		}
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get %s %s: %w", seen.GroupKind(), seen.GetName(), err))
	}
	if owner := metav1.GetControllerOf(live); owner == nil || owner.UID != c.UID || live.GetUID() != seen.GetUID() {
		return step.Done()
	}
	removal := mayDelete(live)
	if !removal.IsAllowed() && !allowsRemoval(c, live.GetName()) {
		return step.Conflict(v1alpha1.ReasonProgressing, live.GroupKind()+" "+live.GetName()+" has changed meanwhile")
	}
	err := r.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())})
	if err != nil && !apierrors.IsNotFound(err) {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("delete %s %s: %w", seen.GroupKind(), seen.GetName(), err))
	}
	if !removal.IsAllowed() {
		r.Recorder.Eventf(c, seen, corev1.EventTypeWarning, "Pruned", "Delete", "deleted %s %s, which the spec no longer names: %s, and annotation %s allows it", seen.GroupKind(), seen.GetName(), removal.Reason(), v1alpha1.AnnotationAllowRemoval)
		return step.Done()
	}
	r.Recorder.Eventf(c, seen, corev1.EventTypeNormal, "Pruned", "Delete", "deleted %s %s: the spec no longer names it", seen.GroupKind(), seen.GetName())
	return step.Done()
}

// confirmEntries looks at the TidbCluster in the API server before a group is deleted whose entry
// is gone: a cache that lags may not show that it was put back, or the consent withdrawn.
func (r *Reconciler) confirmEntries(ctx context.Context, c *v1alpha1.TidbCluster) step.Outcome {
	return r.confirmCluster(ctx, c, v1alpha1.ReasonProgressing, func(now *v1alpha1.TidbCluster) bool {
		return now.Generation == c.Generation && now.Annotations[v1alpha1.AnnotationAllowRemoval] == c.Annotations[v1alpha1.AnnotationAllowRemoval]
	})
}

// confirmCluster looks at the TidbCluster in the API server, and refuses to go on, for a reason, if it
// is another one or not the same any more.
func (r *Reconciler) confirmCluster(ctx context.Context, c *v1alpha1.TidbCluster, reason string, isSame func(now *v1alpha1.TidbCluster) bool) step.Outcome {
	now := &v1alpha1.TidbCluster{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(c), now); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get TidbCluster %s: %w", c.Name, err))
	}
	if now.UID != c.UID || !isSame(now) {
		return step.Conflict(reason, "TidbCluster "+c.Name+" has changed meanwhile")
	}
	return step.Done()
}
