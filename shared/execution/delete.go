package execution

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/status"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// deleteObjects deletes Instances whose member has left or is dead, and revisions that
// nothing needs. Each is read from the API server first.
func deleteObjects(ctx context.Context, env operator.Env, g v1alpha1.Group, plan planning.Plan) step.Outcome {
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
			status.Note(ctrl.LoggerFrom(ctx), status.About{Object: g, Reason: "Deleted"}, "deleted %s %s, which is no longer used", gvk.Kind, object.GetName())
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
