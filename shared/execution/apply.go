package execution

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/apply"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// outcomeOfError is the end of a step by what went wrong; Done if nothing did.
func outcomeOfError(err error) step.Outcome {
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	return step.Done()
}

// applyService applies a Service, unless another owner holds its name.
func applyService(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, service *corev1.Service) step.Outcome {
	if have, ok := s.Services[service.Name]; ok {
		return applyOne(ctx, env, service, have)
	}
	if o := checkServiceName(ctx, env, g, service.Name); o.Kind != step.KindDone {
		return o
	}
	return applyOne(ctx, env, service, nil)
}

// checkServiceName stalls before a Service that another owner has made under one of the
// group's names. The cache holds only what the suite made, and a write would
// take the Service over.
func checkServiceName(ctx context.Context, env operator.Env, g v1alpha1.Group, name string) step.Outcome {
	var service corev1.Service
	err := env.Live.Get(ctx, client.ObjectKey{Namespace: g.GetNamespace(), Name: name}, &service)
	switch {
	case apierrors.IsNotFound(err):
		return step.Done()
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Service %s: %w", name, err))
	}
	return observation.CheckNames(g, observation.Snapshot{Services: map[string]*corev1.Service{name: &service}})
}

// applyNew applies an object that the operator's cache does not show, unless another
// else has one of that name: the cache holds only what the suite made, and a write
// would take the object over.
func applyNew(ctx context.Context, env operator.Env, g v1alpha1.Group, desired client.Object, own map[string]string) step.Outcome {
	gvk, err := env.Client.GroupVersionKindFor(desired)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	there := &metav1.PartialObjectMetadata{}
	there.SetGroupVersionKind(gvk)
	switch err := env.Live.Get(ctx, client.ObjectKeyFromObject(desired), there); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get %s %s: %w", gvk.Kind, desired.GetName(), err))
	case !isOurs(there, desired, own):
		return nameTaken(g, gvk.Kind, desired.GetName())
	}
	return applyOne(ctx, env, desired, nil)
}

// isOurs reports whether what there is was made by the suite for this group: it has an
// owner of the desired object's, or all the labels that are given.
func isOurs(there, desired metav1.Object, own map[string]string) bool {
	return labels.SelectorFromSet(own).Matches(labels.Set(there.GetLabels())) || slices.ContainsFunc(there.GetOwnerReferences(), func(have metav1.OwnerReference) bool {
		return slices.ContainsFunc(desired.GetOwnerReferences(), func(want metav1.OwnerReference) bool { return want.UID == have.UID })
	})
}

// nameTaken stalls before an object of another owner under a name that the group
// needs.
func nameTaken(g v1alpha1.Group, kind, name string) step.Outcome {
	o := step.Stall(v1alpha1.ReasonNameConflict, fmt.Sprintf("%s %s exists and belongs to another owner, and is not touched: delete it (kubectl -n %s delete %s %s) or give the group another name",
		kind, name, g.GetNamespace(), strings.ToLower(kind), name))
	o.After = observation.RetryPeriod
	return o
}

// applyInstance applies an Instance. Its spec is a permission to stop its pod: what an
// outdated version of it says must not be written again.
func applyInstance(ctx context.Context, env operator.Env, g v1alpha1.Group, change planning.InstanceChange) (apply.Result, step.Outcome) {
	var live client.Object
	if change.Live != nil {
		live = change.Live
	}
	result, err := env.Apply().ObjectIfLatest(ctx, change.Desired, live)
	if err == nil && result == apply.Updated {
		status.Note(ctrl.LoggerFrom(ctx), status.About{Object: g, Related: change.Desired, Reason: string(result)}, "changed Instance %s: %s", change.Desired.Name, describeChange(change))
	}
	return result, applyOutcome(change.Desired, err)
}

// tellCreated records the Instances that were made together in one Event.
func tellCreated(env operator.Env, g v1alpha1.Group, changes []planning.InstanceChange, results []apply.Result) {
	var made []*v1alpha1.Instance
	var names []string
	for i, change := range changes {
		if results[i] == apply.Created {
			made, names = append(made, change.Desired), append(names, change.Desired.Name)
		}
	}
	switch len(made) {
	case 0:
	case 1:
		env.Recorder.Eventf(g, made[0], corev1.EventTypeNormal, string(apply.Created), "Apply", "Created Instance %s", names[0])
	default:
		env.Recorder.Eventf(g, nil, corev1.EventTypeNormal, string(apply.Created), "Apply", "Created Instances %s", strings.Join(names, ", "))
	}
}

// describeChange says what of an Instance is changed, as far as it matters to its pod.
func describeChange(change planning.InstanceChange) string {
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
	result, err := env.Apply().Object(ctx, desired, live)
	if err == nil && result != apply.Unchanged {
		status.Note(ctrl.LoggerFrom(ctx), status.About{Object: desired, Reason: string(result)}, "%s %s", result, desired.GetName())
	}
	return applyOutcome(desired, err)
}

// applyOutcome reports how an apply ended. What the API server refuses as invalid is
// for a user to fix; everything else is tried again.
func applyOutcome(desired client.Object, err error) step.Outcome {
	switch {
	case err == nil:
		return step.Done()
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		// The cause may go without the spec: a port that another Service holds, a
		// policy of the cluster.
		o := step.Stall(v1alpha1.ReasonInvalidSpec, err.Error())
		o.After = observation.RetryPeriod
		return o
	case apierrors.IsConflict(err):
		return step.Conflict(v1alpha1.ReasonProgressing, desired.GetName()+" has changed meanwhile")
	}
	return step.Fail(v1alpha1.ReasonRequestFailed, err)
}

// applyBudget applies the PodDisruptionBudget of the group's component.
func applyBudget(ctx context.Context, env operator.Env, g v1alpha1.Group, s observation.Snapshot, budget *policyv1.PodDisruptionBudget) step.Outcome {
	switch {
	case s.Budget == nil:
		return applyNew(ctx, env, g, budget, budget.Labels)
	case !isOurs(s.Budget, budget, budget.Labels):
		return nameTaken(g, "PodDisruptionBudget", budget.Name)
	}
	return applyOne(ctx, env, budget, s.Budget)
}
