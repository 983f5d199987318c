package reading

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
)

// IsAnyProgressing reports whether a group, or another one of its kind with the same PD,
// is on its way to its spec. One poll serves them all, and a group that has arrived must
// not slow it down for the others. list is an empty list of the group's kind.
func IsAnyProgressing(ctx context.Context, env operator.Env, g v1alpha1.Group, list client.ObjectList) (bool, error) {
	if observation.IsProgressing(g) {
		return true, nil
	}
	groups, err := groupsOf(ctx, env.Client, g, list)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(groups, func(other v1alpha1.Group) bool {
		return other.GetName() != g.GetName() && observation.IsProgressing(other)
	}), nil
}

// AdjustPolling has the PD of a group polled as often as the group's new status calls for:
// nothing else would slow the poll down once the group has arrived.
func AdjustPolling(ctx context.Context, env operator.Env, g v1alpha1.Group, list client.ObjectList) error {
	moving, err := IsAnyProgressing(ctx, env, g, list)
	if err != nil {
		return err
	}
	env.PD.Watch(types.NamespacedName{Namespace: g.GetNamespace(), Name: g.PDGroupName()}, moving)
	return nil
}

// StopPolling stops polling the PDs of a namespace that no group of the list's kind names
// any more, or whose PDGroup is gone.
func StopPolling(ctx context.Context, env operator.Env, namespace string, list client.ObjectList) error {
	if err := env.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list groups of namespace %s: %w", namespace, err)
	}
	var there v1alpha1.PDGroupList
	if err := env.Client.List(ctx, &there, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list PDGroups of namespace %s: %w", namespace, err)
	}
	exists := map[string]bool{}
	for n := range there.Items {
		exists[there.Items[n].Name] = true
	}
	var used []string
	for _, g := range v1alpha1.GroupsIn(list) {
		if exists[g.PDGroupName()] {
			used = append(used, g.PDGroupName())
		}
	}
	env.PD.Keep(namespace, used)
	return nil
}
