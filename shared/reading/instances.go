package reading

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// Instances reads the Instances of a group by slot, those being deleted included.
func Instances(ctx context.Context, c client.Reader, g v1alpha1.Group) ([]*v1alpha1.Instance, error) {
	var list v1alpha1.InstanceList
	if err := c.List(ctx, &list, client.InNamespace(g.GetNamespace()), client.MatchingLabels(workload.Selector(g))); err != nil {
		return nil, fmt.Errorf("list Instances of %s: %w", g.GetName(), err)
	}
	var out []*v1alpha1.Instance
	for i := range list.Items {
		if list.Items[i].Spec.Group.Kind == g.GroupKind() && list.Items[i].Spec.Group.Name == g.GetName() {
			out = append(out, &list.Items[i])
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Instance) int { return cmp.Compare(a.Spec.Slot, b.Spec.Slot) })
	return out, nil
}

// listSiblings reads the Instances of the other groups of a group's kind in its cluster,
// those of groups that are gone already included.
func listSiblings(ctx context.Context, c client.Reader, g v1alpha1.Group) ([]*v1alpha1.Instance, error) {
	var list v1alpha1.InstanceList
	cluster := client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelComponent: g.Component(), v1alpha1.LabelCluster: g.PDGroupName()}
	// The group's own are among them, and need no second copy.
	if err := c.List(ctx, &list, client.InNamespace(g.GetNamespace()), cluster, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list Instances of PDGroup %s: %w", g.PDGroupName(), err)
	}
	var out []*v1alpha1.Instance
	for i := range list.Items {
		if list.Items[i].Spec.Group.Name != g.GetName() {
			out = append(out, list.Items[i].DeepCopy())
		}
	}
	return out, nil
}
