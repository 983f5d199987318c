package group

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// Abandon lets the Instances of a group that does not exist any more go: there
// is nobody left who could take their members out of the database, and nothing
// to take them out of. It is for a group that was not found.
func Abandon(ctx context.Context, env operator.Env, kind string, group types.NamespacedName) error {
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))
	if err := env.Live.Get(ctx, group, live); err == nil || client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		// It is there after all, and its own reconcile will look after them.
		return err
	}
	var list v1alpha1.InstanceList
	if err := env.Client.List(ctx, &list, client.InNamespace(group.Namespace), client.MatchingLabels{v1alpha1.LabelGroup: group.Name}); err != nil {
		return fmt.Errorf("list Instances of %s %s: %w", kind, group.Name, err)
	}
	for n := range list.Items {
		i := &list.Items[n]
		if i.Spec.Group.Kind != kind || i.DeletionTimestamp == nil || !held(i) {
			continue
		}
		changed := i.DeepCopy()
		controllerutil.RemoveFinalizer(changed, v1alpha1.FinalizerMember)
		patch := client.MergeFromWithOptions(i, client.MergeFromWithOptimisticLock{})
		if err := env.Client.Patch(ctx, changed, patch, client.FieldOwner(env.Name)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("let Instance %s go: %w", i.Name, err)
		}
	}
	return nil
}
