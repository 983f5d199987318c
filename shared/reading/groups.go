package reading

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/index"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// ObserveGroups reads the groups that make the cluster, in the order in which they get a new
// version: the first that is waited for is the right one to name.
func ObserveGroups(ctx context.Context, c client.Reader, g v1alpha1.Group, s *observation.Snapshot) error {
	for _, component := range v1alpha1.RolloutOrder() {
		found, err := groupsOf(ctx, c, g, component.NewList())
		if err != nil {
			return err
		}
		slices.SortFunc(found, func(a, b v1alpha1.Group) int { return cmp.Compare(a.GetName(), b.GetName()) })
		for _, other := range found {
			s.Groups = append(s.Groups, other)
			if tikv, ok := other.(*v1alpha1.TiKVGroup); ok {
				s.TiKVGroups = append(s.TiKVGroups, tikv)
			}
		}
	}
	return nil
}

// groupsOf reads the groups of a kind that share a group's PD.
func groupsOf(ctx context.Context, c client.Reader, g v1alpha1.Group, list client.ObjectList) ([]v1alpha1.Group, error) {
	out, err := Select(ctx, c, list,
		func(other v1alpha1.Group) bool { return other.PDGroupName() == g.PDGroupName() }, client.InNamespace(g.GetNamespace()), index.OfPDGroup(g.PDGroupName()))
	if err != nil {
		return nil, fmt.Errorf("list groups of PDGroup %s: %w", g.PDGroupName(), err)
	}
	return out, nil
}

// Select reads the groups of a kind that are wanted among those that options find. list is an
// empty list of the kind. There may be hundreds of others: they are looked at in the
// cache, and only what is wanted is copied.
func Select(ctx context.Context, c client.Reader, list client.ObjectList, wanted func(v1alpha1.Group) bool, options ...client.ListOption) ([]v1alpha1.Group, error) {
	if err := c.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		return nil, err
	}
	var out []v1alpha1.Group
	for _, g := range v1alpha1.GroupsIn(list) {
		if !wanted(g) {
			continue
		}
		if copied, ok := g.DeepCopyObject().(v1alpha1.Group); ok {
			out = append(out, copied)
		}
	}
	return out, nil
}

func pdGroup(ctx context.Context, c client.Reader, g v1alpha1.Group) (*v1alpha1.PDGroup, error) {
	if own, ok := g.(*v1alpha1.PDGroup); ok {
		return own, nil
	}
	var out v1alpha1.PDGroup
	err := c.Get(ctx, types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()}, &out)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get PDGroup %s: %w", g.PDGroupName(), err)
	}
	return &out, nil
}
