package group

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/leaseclient"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Act carries a plan out and nothing else. It returns how that ended: Done
// leaves the word to the plan's own outcome.
func Act(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot, plan Plan) step.Outcome {
	// What the pods need to start, side by side, and then the Instances.
	var first []func() step.Outcome
	for _, service := range plan.Services {
		first = append(first, func() step.Outcome { return applyService(ctx, env, g, s, service) })
	}
	if plan.ConfigMap != nil {
		first = append(first, func() step.Outcome {
			return applyNew(ctx, env, g, plan.ConfigMap, "ConfigMap", workload.Selector(g))
		})
	}
	if plan.Revision != nil {
		first = append(first, func() step.Outcome {
			return applyNew(ctx, env, g, plan.Revision, "ControllerRevision", workload.Selector(g))
		})
	}
	if plan.Budget != nil {
		first = append(first, func() step.Outcome { return applyBudget(ctx, env, g, s, plan.Budget) })
	}
	if o := step.Parallel(first...); o.Kind != step.KindDone {
		return o
	}
	if o := confirmPD(ctx, env, g, plan); o.Kind != step.KindDone {
		return o
	}
	if o := lastFirst(ctx, env, g, plan); o.Kind != step.KindDone {
		return o
	}
	if plan.Lease.Take != nil {
		if o := takeLease(ctx, env, g, s, plan.Lease); o.Kind != step.KindDone {
			return o
		}
	}
	changed, taken := make([]bool, len(plan.Instances)), make([]string, len(plan.Instances))
	var second []func() step.Outcome
	for i, change := range plan.Instances {
		second = append(second, func() step.Outcome {
			if o := confirm(ctx, env, g, s, change); o.Kind != step.KindDone {
				return o
			}
			var err error
			if taken[i], err = retired(ctx, env, g, change); err != nil || taken[i] != "" {
				return failed(err)
			}
			result, o := applyInstance(ctx, env, g, change)
			changed[i] = o.Kind == step.KindDone && result != apply.Unchanged
			return o
		})
	}
	if o := step.Parallel(second...); o.Kind != step.KindDone {
		return o
	}
	if o := step.Worst(call(ctx, env, g, plan.Calls), remove(ctx, env, g, plan)); o.Kind != step.KindDone {
		return o
	}
	if plan.Lease.Give {
		if o := giveLease(ctx, env, g, s, plan.Lease); o.Kind != step.KindDone {
			return o
		}
	}
	if o := call(ctx, env, g, plan.Evictions); o.Kind == step.KindFail && plan.Outcome.Reason == v1alpha1.ReasonEvictingLeaders {
		// It holds nobody up: what is waited for tells why.
		return step.Wait("PD", plan.Outcome.After, plan.Outcome.Reason, plan.Outcome.Message+": "+o.Message)
	}
	if at := slices.IndexFunc(taken, func(claim string) bool { return claim != "" }); at >= 0 {
		return step.Wait("PersistentVolumeClaim", time.Second, v1alpha1.ReasonCreating,
			fmt.Sprintf("Instance %s is not made, for claim %s is that of a member that has left: another slot is taken as soon as the operator sees that", plan.Instances[at].Desired.Name, taken[at]))
	}
	if at := slices.Index(changed, true); at >= 0 && plan.Outcome.Kind == step.KindDone {
		// The plan was made from what the Instances said of their old specs.
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonProgressing, "Instance "+plan.Instances[at].Desired.Name+" has just been changed")
	}
	return step.Done()
}

// confirm looks at an Instance in the API server before it is made or its pod
// may be stopped: the plan must not rest on a cache that lags. A member that
// serves is stopped only for who holds the Lease at that moment, if it needs it.
func confirm(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot, change InstanceChange) step.Outcome {
	if !stops(change) {
		return step.Done()
	}
	var there v1alpha1.Instance
	err := env.Live.Get(ctx, client.ObjectKeyFromObject(change.Desired), &there)
	changed := step.Conflict(v1alpha1.ReasonProgressing, "Instance "+change.Desired.Name+" has changed meanwhile")
	switch {
	case apierrors.IsNotFound(err) && change.Live == nil:
		return inTurn(ctx, env, g, change)
	case err != nil && !apierrors.IsNotFound(err):
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Instance %s: %w", change.Desired.Name, err))
	case err == nil && change.Live == nil && there.DeletionTimestamp == nil && (there.Spec.Group.Kind != g.GroupKind() || there.Spec.Group.Name != g.GetName()):
		return nameTaken(g, "Instance", there.Name)
	case err != nil || change.Live == nil || there.ResourceVersion != change.Live.ResourceVersion:
		return changed
	}
	if o := inTurn(ctx, env, g, change); o.Kind != step.KindDone || !change.Stops {
		return o
	}
	if !s.Lease.Covers(change.Live) {
		return alone(ctx, env, g, s)
	}
	now, err := leaseclient.Read(ctx, env.Live, g.GetNamespace(), g.PDGroupName())
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if now.Holder != s.Lease.Holder || !now.Covers(change.Live) {
		return step.Conflict(v1alpha1.ReasonProgressing, "Instance "+change.Desired.Name+" does not hold the Lease any more")
	}
	return step.Done()
}

// retired names the claim of a former member in the slot of one that is to be made;
// empty if there is none. That it is retired may be learnt after that member's Instance
// is known to have gone, and a member on a retired claim never starts. What the
// operator's own view never shows is for the instance operator to tell.
func retired(ctx context.Context, env operator.Env, g v1alpha1.Group, change InstanceChange) (string, error) {
	if change.Live != nil {
		return "", nil
	}
	ours := labels.SelectorFromSet(workload.Selector(g))
	for _, t := range change.Desired.Spec.VolumeClaimTemplates {
		claim, err := liveClaim(ctx, env.Live, change.Desired, t.Name)
		if err != nil {
			return "", err
		}
		if claim != nil && claim.Annotations[v1alpha1.AnnotationRetired] != "" && claim.Labels[v1alpha1.LabelInstance] == change.Desired.Name && ours.Matches(labels.Set(claim.Labels)) {
			return claim.Name, nil
		}
	}
	return "", nil
}

// failed is the end of a step by what went wrong; Done if nothing did.
func failed(err error) step.Outcome {
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	return step.Done()
}

// inTurn looks at the groups that come before this one in the API server before
// a member gets a new revision while others serve at an old one: of an edit of
// several groups, the last may be seen first.
func inTurn(ctx context.Context, env operator.Env, g v1alpha1.Group, change InstanceChange) step.Outcome {
	if !change.Rolls {
		return step.Done()
	}
	return amongLive(ctx, env, g, func(now Snapshot) step.Outcome {
		if turn := RollGate(g, now); !turn.Open {
			return step.Conflict(v1alpha1.ReasonWaitingForGroups, turn.Message)
		}
		return step.Done()
	})
}

// lastFirst looks at the groups that stop before this one in the API server before
// its members are suspended: of an edit of several groups, the last may be seen first.
func lastFirst(ctx context.Context, env operator.Env, g v1alpha1.Group, plan Plan) step.Outcome {
	if !g.GetComponentSpec().Suspended || !slices.ContainsFunc(plan.Instances, suspends) {
		return step.Done()
	}
	return amongLive(ctx, env, g, func(now Snapshot) step.Outcome {
		if first := SuspendWait(g, now); first != "" {
			return step.Conflict(v1alpha1.ReasonSuspended, first)
		}
		return step.Done()
	})
}

// amongLive judges by the groups of the cluster as the API server has them now.
func amongLive(ctx context.Context, env operator.Env, g v1alpha1.Group, judge func(now Snapshot) step.Outcome) step.Outcome {
	var now Snapshot
	if err := observeGroups(ctx, env.Live, g, &now); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	return judge(now)
}

// suspends reports whether a change suspends a member.
func suspends(change InstanceChange) bool {
	return change.Live != nil && !change.Live.Spec.Suspended && change.Desired.Spec.Suspended
}

// alone looks at all members in the API server before one that serves is stopped
// without the Lease: what the others were seen to do must still be so.
func alone(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot) step.Outcome {
	there, err := Instances(ctx, env.Live, g)
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

// stops reports whether a change makes an Instance, or lets its pod be stopped.
func stops(change InstanceChange) bool {
	live, desired := change.Live, change.Desired
	return live == nil || live.Spec.Revision != desired.Spec.Revision || live.Spec.StopPod != desired.Spec.StopPod || held(live) && !held(desired)
}

// applyService applies a Service, unless somebody else holds its name.
func applyService(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot, service *corev1.Service) step.Outcome {
	if have, ok := s.Services[service.Name]; ok {
		return applyOne(ctx, env, service, have)
	}
	if o := stranger(ctx, env, g, service.Name); o.Kind != step.KindDone {
		return o
	}
	return applyOne(ctx, env, service, nil)
}

// lookAgain is after how long a name that somebody else holds is looked at
// again: nothing tells when he lets go of it.
const lookAgain = time.Minute

// stranger stalls before a Service that somebody else has made under one of the
// group's names. The cache holds only what the suite made, and a write would
// take the Service over.
func stranger(ctx context.Context, env operator.Env, g v1alpha1.Group, name string) step.Outcome {
	var service corev1.Service
	err := env.Live.Get(ctx, client.ObjectKey{Namespace: g.GetNamespace(), Name: name}, &service)
	switch {
	case apierrors.IsNotFound(err):
		return step.Done()
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Service %s: %w", name, err))
	}
	if conflict := conflicts(g, Snapshot{Services: map[string]*corev1.Service{name: &service}}); conflict != "" {
		o := step.Stall(v1alpha1.ReasonNameConflict, conflict)
		o.After = lookAgain
		return o
	}
	return step.Done()
}

// applyNew applies an object that the operator's cache does not show, unless somebody
// else has one of that name: the cache holds only what the suite made, and a write
// would take the object over.
func applyNew(ctx context.Context, env operator.Env, g v1alpha1.Group, desired client.Object, kind string, own map[string]string) step.Outcome {
	gvk, err := env.Client.GroupVersionKindFor(desired)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(gvk)
	switch err := env.Live.Get(ctx, client.ObjectKeyFromObject(desired), there); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get %s %s: %w", kind, desired.GetName(), err))
	case !made(there, desired, own):
		return nameTaken(g, kind, desired.GetName())
	}
	return applyOne(ctx, env, desired, nil)
}

// made reports whether what there is was made by the suite for this group: it has an
// owner of the desired object's, or all the labels that are given.
func made(there, desired metav1.Object, own map[string]string) bool {
	return labels.SelectorFromSet(own).Matches(labels.Set(there.GetLabels())) || slices.ContainsFunc(there.GetOwnerReferences(), func(have metav1.OwnerReference) bool {
		return slices.ContainsFunc(desired.GetOwnerReferences(), func(want metav1.OwnerReference) bool { return want.UID == have.UID })
	})
}

// nameTaken stalls before an object of somebody else under a name that the group
// needs.
func nameTaken(g v1alpha1.Group, kind, name string) step.Outcome {
	o := step.Stall(v1alpha1.ReasonNameConflict, fmt.Sprintf("%s %s exists and belongs to somebody else, and is not touched: delete it (kubectl -n %s delete %s %s) or give the group another name",
		kind, name, g.GetNamespace(), strings.ToLower(kind), name))
	o.After = lookAgain
	return o
}

// applyInstance applies an Instance and tells a person about it. Its spec is a
// permission to stop its pod: what an outdated version of it says must not be
// written again.
func applyInstance(ctx context.Context, env operator.Env, g v1alpha1.Group, change InstanceChange) (apply.Result, step.Outcome) {
	var live client.Object
	if change.Live != nil {
		live = change.Live
	}
	result, err := apply.Seen(ctx, env.Client, env.Name, change.Desired, live)
	switch {
	case err != nil:
	case result == apply.Created:
		env.Recorder.Eventf(g, change.Desired, corev1.EventTypeNormal, string(result), "Apply", "%s Instance %s", result, change.Desired.Name)
	case result == apply.Updated:
		status.Note(ctrl.LoggerFrom(ctx), g, change.Desired, string(result), "changed Instance %s: %s", change.Desired.Name, edited(change))
	}
	return result, applied(change.Desired, err)
}

// edited says what of an Instance is changed, as far as it matters to its pod.
func edited(change InstanceChange) string {
	if change.Live == nil {
		return "it was not seen before"
	}
	var out []string
	note := func(field string, from, to any) {
		if from != to {
			out = append(out, fmt.Sprintf("%s: %v → %v", field, from, to))
		}
	}
	live, desired := change.Live.Spec, change.Desired.Spec
	note("revision", live.Revision, desired.Revision)
	note("retire", live.Retire, desired.Retire)
	note("stopPod", live.StopPod, desired.StopPod)
	note("suspended", live.Suspended, desired.Suspended)
	note("paused", live.Paused, desired.Paused)
	note("disruption", change.Live.Annotations[v1alpha1.AnnotationDisruption], change.Desired.Annotations[v1alpha1.AnnotationDisruption])
	note("finalizers", len(change.Live.Finalizers), len(change.Desired.Finalizers))
	return cmp.Or(strings.Join(out, ", "), "labels, annotations or what its pod takes without a restart")
}

// applyOne applies any other object.
func applyOne(ctx context.Context, env operator.Env, desired, live client.Object) step.Outcome {
	result, err := apply.Object(ctx, env.Client, env.Name, desired, live)
	if err == nil && result != apply.Unchanged {
		status.Note(ctrl.LoggerFrom(ctx), desired, nil, string(result), "%s %s", result, desired.GetName())
	}
	return applied(desired, err)
}

// applied tells how an apply ended. What the API server refuses as invalid is
// for a person to mend; everything else is tried again.
func applied(desired client.Object, err error) step.Outcome {
	switch {
	case err == nil:
		return step.Done()
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		// The cause may go without the spec: a port that somebody else holds, a
		// policy of the cluster.
		o := step.Stall(v1alpha1.ReasonInvalidSpec, err.Error())
		o.After = lookAgain
		return o
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonProgressing, desired.GetName()+" has changed meanwhile")
	}
	return step.Fail(v1alpha1.ReasonRequestFailed, err)
}
