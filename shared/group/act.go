package group

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/step"
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
		first = append(first, func() step.Outcome { return applyOne(ctx, env, g, plan.ConfigMap, nil) })
	}
	if plan.Revision != nil {
		first = append(first, func() step.Outcome { return applyOne(ctx, env, g, plan.Revision, nil) })
	}
	if o := step.Parallel(first...); o.Kind != step.KindDone {
		return o
	}
	changed := make([]bool, len(plan.Instances))
	var second []func() step.Outcome
	for i, change := range plan.Instances {
		second = append(second, func() step.Outcome {
			if o := confirm(ctx, env, change); o.Kind != step.KindDone {
				return o
			}
			var live client.Object
			if change.Live != nil {
				live = change.Live
			}
			result, o := applyResult(ctx, env, g, change.Desired, live)
			changed[i] = o.Kind == step.KindDone && result != apply.Unchanged
			return o
		})
	}
	if o := step.Parallel(second...); o.Kind != step.KindDone {
		return o
	}
	if at := slices.Index(changed, true); at >= 0 && plan.Outcome.Kind == step.KindDone {
		// The plan was made from what the Instances said of their old specs.
		return step.Wait("Instance", waitDeadline, v1alpha1.ReasonProgressing, "Instance "+plan.Instances[at].Desired.Name+" has just been changed")
	}
	return step.Done()
}

// conflictDelay is how soon a plan that met a newer object is made anew.
const conflictDelay = 50 * time.Millisecond

// confirm looks at an Instance in the API server before it is made or given
// another revision, which is the permission to stop its pod: the plan must not
// rest on a cache that lags.
func confirm(ctx context.Context, env operator.Env, change InstanceChange) step.Outcome {
	if change.Live != nil && change.Live.Spec.Revision == change.Desired.Spec.Revision {
		return step.Done()
	}
	var there v1alpha1.Instance
	err := env.Live.Get(ctx, client.ObjectKeyFromObject(change.Desired), &there)
	switch {
	case apierrors.IsNotFound(err) && change.Live == nil:
		return step.Done()
	case err != nil && !apierrors.IsNotFound(err):
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Instance %s: %w", change.Desired.Name, err))
	case err == nil && change.Live != nil && there.ResourceVersion == change.Live.ResourceVersion:
		return step.Done()
	}
	return step.After(conflictDelay, v1alpha1.ReasonProgressing, "Instance "+change.Desired.Name+" has changed meanwhile")
}

// applyService applies a Service, unless somebody else holds its name.
func applyService(ctx context.Context, env operator.Env, g v1alpha1.Group, s Snapshot, service *corev1.Service) step.Outcome {
	if have, ok := s.Services[service.Name]; ok {
		return applyOne(ctx, env, g, service, have)
	}
	if o := stranger(ctx, env, g, service.Name); o.Kind != step.KindDone {
		return o
	}
	return applyOne(ctx, env, g, service, nil)
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

// applyOne applies an object and tells a person about it. What the API server
// refuses as invalid is for a person to mend; everything else is tried again.
func applyOne(ctx context.Context, env operator.Env, g v1alpha1.Group, desired, live client.Object) step.Outcome {
	_, o := applyResult(ctx, env, g, desired, live)
	return o
}

// applyResult is applyOne that says what it did.
func applyResult(ctx context.Context, env operator.Env, g v1alpha1.Group, desired, live client.Object) (apply.Result, step.Outcome) {
	result, err := apply.Object(ctx, env.Client, env.Name, desired, live)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		// The cause may go without the spec: a port that somebody else holds, a
		// policy of the cluster.
		o := step.Stall(v1alpha1.ReasonInvalidSpec, err.Error())
		o.After = lookAgain
		return result, o
	case apierrors.IsConflict(err):
		return result, step.After(conflictDelay, v1alpha1.ReasonProgressing, desired.GetName()+" has changed meanwhile")
	case err != nil:
		return result, step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if result != apply.Unchanged {
		if _, isInstance := desired.(*v1alpha1.Instance); isInstance {
			env.Recorder.Eventf(g, desired, corev1.EventTypeNormal, string(result), "Apply", "%s Instance %s", result, desired.GetName())
		}
	}
	return result, step.Done()
}
