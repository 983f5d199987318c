package execution

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// confirmInstance looks at an Instance in the API server before it is made or its pod
// may be stopped: the plan must not rest on a cache that lags. A member that
// serves is stopped only if it holds the Lease at that moment, if it needs it.
func confirmInstance(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, change planning.InstanceChange) step.Outcome {
	if !permitsStop(change) {
		return step.Done()
	}
	var there v1alpha1.Instance
	err := env.Live.Get(ctx, client.ObjectKeyFromObject(change.Desired), &there)
	group, changed := v1alpha1.InstanceGroup{Kind: g.GroupKind(), Name: g.GetName()}, step.Conflict(v1alpha1.ReasonProgressing, "Instance "+change.Desired.Name+" has changed meanwhile")
	switch {
	case apierrors.IsNotFound(err) && change.Live == nil:
		return confirmRollOrder(ctx, env, g, change)
	case err != nil && !apierrors.IsNotFound(err):
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Instance %s: %w", change.Desired.Name, err))
	case err == nil && change.Live == nil && there.DeletionTimestamp == nil && there.Spec.Group != group:
		return nameTaken(g, "Instance", there.Name)
	case err == nil && change.Live == nil && there.Spec.Group == group && !labels.SelectorFromSet(workload.Selector(g)).Matches(labels.Set(there.Labels)):
		return relabelInstance(ctx, env, g, &there)
	case err != nil || change.Live == nil || there.ResourceVersion != change.Live.ResourceVersion:
		return changed
	}
	if o := confirmRollOrder(ctx, env, g, change); o.Kind != step.KindDone || !change.Stops {
		return o
	}
	if !s.Lease.Covers(change.Live) {
		return confirmInstances(ctx, env, g, s)
	}
	now, err := leaseclient.Read(ctx, env.Live, g.GetNamespace(), g.PDGroupName())
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if now.Holder != s.Lease.Holder || !now.Covers(change.Live) {
		return step.Conflict(v1alpha1.ReasonProgressing, "Instance "+change.Desired.Name+" no longer holds the Lease")
	}
	return step.Done()
}

// relabelInstance gives an Instance of the group its labels back: without them the operator does not
// see it, and would make it again without end.
func relabelInstance(ctx context.Context, env operator.Env, g v1alpha1.Group, there *v1alpha1.Instance) step.Outcome {
	if !metav1.IsControlledBy(there, g) {
		return nameTaken(g, "Instance", there.Name)
	}
	before := there.DeepCopy()
	there.Labels = labels.Merge(there.Labels, workload.Labels(g))
	err := env.Client.Patch(ctx, there, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(env.Name))
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("give Instance %s its labels back: %w", there.Name, err))
	}
	return step.Conflict(v1alpha1.ReasonProgressing, "Instance "+there.Name+" had lost its labels, and gets them back")
}

// retiredClaim names the claim of a former member in the slot of one that is to be made;
// empty if there is none. That it is retired may be learnt after that member's Instance
// is known to have gone, and a member on a retired claim never starts. What the
// operator's own view never shows is for the instance operator to tell.
func retiredClaim(ctx context.Context, env operator.Env, g v1alpha1.Group, change planning.InstanceChange) (string, error) {
	if change.Live != nil {
		return "", nil
	}
	ours := labels.SelectorFromSet(workload.Selector(g))
	for _, t := range change.Desired.Spec.VolumeClaimTemplates {
		claim, err := reading.LiveClaim(ctx, env.Live, change.Desired, t.Name)
		if err != nil {
			return "", err
		}
		if claim != nil && claim.Annotations[v1alpha1.AnnotationRetired] != "" && claim.Labels[v1alpha1.LabelInstance] == change.Desired.Name && ours.Matches(labels.Set(claim.Labels)) {
			return claim.Name, nil
		}
	}
	return "", nil
}

// confirmRollOrder looks at the groups that come before this one in the API server before
// a member gets a new revision while others serve at an old one: of an edit of
// several groups, the last may be seen first.
func confirmRollOrder(ctx context.Context, env operator.Env, g v1alpha1.Group, change planning.InstanceChange) step.Outcome {
	if !change.Rolls {
		return step.Done()
	}
	return judgeLiveGroups(ctx, env, g, func(now observation.Snapshot) step.Outcome {
		if turn := rollout.RollGate(g, now); !turn.Open {
			return step.Conflict(v1alpha1.ReasonWaitingForGroups, turn.Message)
		}
		return step.Done()
	})
}

// confirmSuspendOrder looks at the groups that stop before this one in the API server before
// its members are suspended: of an edit of several groups, the last may be seen first.
func confirmSuspendOrder(ctx context.Context, env operator.Env, g v1alpha1.Group, plan planning.Plan) step.Outcome {
	if !g.GetComponentSpec().Suspended || !slices.ContainsFunc(plan.Instances, beginsSuspension) {
		return step.Done()
	}
	return judgeLiveGroups(ctx, env, g, func(now observation.Snapshot) step.Outcome {
		if may := rollout.MaySuspend(g, now); !may.IsAllowed() {
			return step.Conflict(v1alpha1.ReasonSuspended, may.Reason())
		}
		return step.Done()
	})
}

// judgeLiveGroups judges by the groups of the cluster as the API server has them now.
func judgeLiveGroups(ctx context.Context, env operator.Env, g v1alpha1.Group, judge func(now observation.Snapshot) step.Outcome) step.Outcome {
	var now observation.Snapshot
	if err := reading.ObserveGroups(ctx, env.Live, g, &now); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	return judge(now)
}

// beginsSuspension reports whether a change suspends a member.
func beginsSuspension(change planning.InstanceChange) bool {
	return change.Live != nil && !change.Live.Spec.Suspended && change.Desired.Spec.Suspended
}

// confirmInstances looks at all members in the API server before one that serves is stopped
// without the Lease: what the others were seen to do must still be so.
func confirmInstances(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot) step.Outcome {
	there, err := reading.Instances(ctx, env.Live, g)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	same := slices.EqualFunc(there, s.Instances, func(a, b *v1alpha1.Instance) bool {
		return a.UID == b.UID && a.ResourceVersion == b.ResourceVersion
	})
	if !same {
		return step.Conflict(v1alpha1.ReasonProgressing, "the Instances have changed meanwhile")
	}
	return step.Done()
}

// permitsStop reports whether a change makes an Instance, or lets its pod be stopped.
func permitsStop(change planning.InstanceChange) bool {
	live, desired := change.Live, change.Desired
	return live == nil || live.Spec.Revision != desired.Spec.Revision || live.Spec.StopPod != desired.Spec.StopPod || member.HasMemberFinalizer(live) && !member.HasMemberFinalizer(desired)
}

// ConfirmPD asks PD right before what cannot be taken back, and lets none of it
// happen if the answer is not what the plan rests on. The new answer makes a new
// plan.
func ConfirmPD(ctx context.Context, env operator.Env, g v1alpha1.Group, plan planning.Plan) step.Outcome {
	if len(plan.Rechecks) == 0 || env.PD == nil {
		return step.Done()
	}
	now := env.PD.Ask(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()})
	for _, c := range plan.Rechecks {
		if may := c.Still(now); !may.IsAllowed() {
			clear(plan.Drained) // none is reported
			return step.Conflict(v1alpha1.ReasonUnsafe, "Instance "+c.Instance+" is not disrupted: "+may.Reason())
		}
	}
	return step.Done()
}
