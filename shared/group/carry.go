package group

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// callsDeadline bounds all the calls of one plan.
const callsDeadline = 5 * time.Second

// takeLease takes the disruption Lease. Who comes second learns it from the
// Lease's watch.
func takeLease(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot, change LeaseChange) step.Outcome {
	if s.PDGroup == nil {
		return step.Wait("PDGroup", waitDeadline, v1alpha1.ReasonWaitingForPDGroup, "PDGroup "+g.PDGroupName()+" does not exist")
	}
	d, next := change.Take, change.state()
	if next.Since.IsZero() {
		next.Since = env.Now()
	}
	err := leaseclient.Take(ctx, env.Client, env.Name, s.PDGroup, s.Lease, next)
	switch {
	case apierrors.IsAlreadyExists(err):
		return leaseTaken(ctx, env, g)
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonWaitingForLease, "the Lease "+lease.Name(g.PDGroupName())+" has changed meanwhile")
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if !change.Since.IsZero() {
		return step.Done() // it goes on
	}
	env.Recorder.Eventf(g, d.Instance, corev1.EventTypeNormal, "DisruptionBegun", string(d.Verb), "%s Instance %s: %s", d.Verb, d.Instance.Name, d.Why)
	for _, c := range change.Companions {
		env.Recorder.Eventf(g, s.Instance(c.Instance), corev1.EventTypeNormal, "DisruptionBegun", string(d.Verb), "%s Instance %s together with %s: %s", d.Verb, c.Instance, d.Instance.Name, d.Why)
	}
	return step.Done()
}

// leaseTaken tells a Lease that somebody else has made under the name from one that the
// cache does not show yet.
func leaseTaken(ctx context.Context, env operator.Env, g v1alpha1.Group) step.Outcome {
	name := lease.Name(g.PDGroupName())
	there, err := leaseclient.Read(ctx, env.Live, g.GetNamespace(), g.PDGroupName())
	switch {
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	case there.Object != nil && there.Object.Labels[v1alpha1.LabelManagedBy] != v1alpha1.ManagedBy:
		return nameTaken(g, "Lease", name)
	}
	return step.Conflict(v1alpha1.ReasonWaitingForLease, "the Lease "+name+" has changed meanwhile")
}

func giveLease(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot, change LeaseChange) step.Outcome {
	err := leaseclient.Give(ctx, env.Client, env.Name, s.Lease)
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return step.Conflict(v1alpha1.ReasonProgressing, "the Lease "+lease.Name(g.PDGroupName())+" has changed meanwhile")
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "DisruptionEnded", "Release", "Disruption of %s has ended: %s", s.Lease.Holder, change.Why)
	return step.Done()
}

// call gives PD its orders, as many as it takes. What it refuses stays to be
// done and is named.
func call(ctx context.Context, env operator.Env, g v1alpha1.Group, calls []Call) step.Outcome {
	if len(calls) == 0 {
		return step.Done()
	}
	key := types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()}
	c, err := env.PD.Client(key)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callsDeadline)
	defer cancel()
	worst := step.Done()
	for _, order := range calls {
		if err := order.make(ctx, c); err != nil {
			worst = step.Worst(worst, step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("%s %s for Instance %s: %w", order.Verb, order.Target, order.Instance, err)))
			continue
		}
		if order.Verb == EvictLeaders || order.Verb == StopEvictingLeaders || order.Verb == TransferLeader {
			// Part of a disruption, which is told, or answered by an annotation.
			status.Note(ctrl.LoggerFrom(ctx), g, nil, string(order.Verb), "%s %s for Instance %s", order.Verb, order.Target, order.Instance)
			continue
		}
		env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, string(order.Verb), string(order.Verb), "%s %s for Instance %s", order.Verb, order.Target, order.Instance)
	}
	env.PD.Kick(key)
	return worst
}

func (c Call) make(ctx context.Context, client pd.Client) error {
	switch c.Verb {
	case TransferLeader:
		return client.TransferLeader(ctx, c.Target)
	case DeleteMember:
		return client.DeleteMember(ctx, c.Target)
	case EvictLeaders:
		return client.EvictLeaders(ctx, c.Target)
	case StopEvictingLeaders:
		return client.StopEvictingLeaders(ctx, c.Target)
	case DeleteStore:
		return client.DeleteStore(ctx, c.Target)
	case RestoreStore:
		return client.RestoreStore(ctx, c.Target)
	}
	return fmt.Errorf("unknown order %s", c.Verb)
}

// remove deletes Instances whose member has left or is dead, and revisions that
// nobody needs. Each is read from the API server first.
func remove(ctx context.Context, env operator.Env, g v1alpha1.Group, plan Plan) step.Outcome {
	worst := step.Done()
	for _, i := range plan.Deletes {
		live := &v1alpha1.Instance{}
		done, o := deleteLive(ctx, env, live, i, i.ResourceVersion)
		if done {
			env.Recorder.Eventf(g, i, corev1.EventTypeNormal, "Deleted", "Delete", "Deleted Instance %s: its member has left, or does not come back", i.Name)
		}
		worst = step.Worst(worst, o)
	}
	for _, object := range plan.Prune {
		live := &metav1.PartialObjectMetadata{}
		gvk, err := env.Client.GroupVersionKindFor(object)
		if err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
		live.SetGroupVersionKind(gvk)
		done, o := deleteLive(ctx, env, live, object, "")
		if done {
			status.Note(ctrl.LoggerFrom(ctx), g, nil, "Deleted", "deleted %s %s, which nothing uses any more", gvk.Kind, object.GetName())
		}
		worst = step.Worst(worst, o)
	}
	return worst
}

// deleteLive deletes an object if it still is the one that was seen, and the
// version of it if one is given. It reports whether it did.
func deleteLive(ctx context.Context, env operator.Env, live, seen client.Object, version string) (bool, step.Outcome) {
	err := env.Live.Get(ctx, client.ObjectKeyFromObject(seen), live)
	switch {
	case apierrors.IsNotFound(err):
		return false, step.Done()
	case err != nil:
		return false, step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get %s: %w", seen.GetName(), err))
	case version != "" && live.GetResourceVersion() != version, seen.GetUID() != "" && live.GetUID() != seen.GetUID():
		return false, step.Conflict(v1alpha1.ReasonProgressing, seen.GetName()+" has changed meanwhile")
	}
	err = env.Client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())})
	switch {
	case apierrors.IsConflict(err):
		return false, step.Conflict(v1alpha1.ReasonProgressing, seen.GetName()+" has changed meanwhile")
	case client.IgnoreNotFound(err) != nil:
		return false, step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("delete %s: %w", seen.GetName(), err))
	}
	return true, step.Done()
}

// applyBudget applies the PodDisruptionBudget of the group's component.
func applyBudget(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot, budget *policyv1.PodDisruptionBudget) step.Outcome {
	const kind = "PodDisruptionBudget"
	switch {
	case s.Budget == nil:
		return applyNew(ctx, env, g, budget, kind, budget.Labels)
	case !made(s.Budget, budget, budget.Labels):
		return nameTaken(g, kind, budget.Name)
	}
	return applyOne(ctx, env, budget, s.Budget)
}
