package controller

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// snapshot is the groups of the namespace.
type snapshot struct {
	groups map[groupKey]v1alpha1.Group
}

// groupKey names a group in its namespace.
type groupKey struct{ kind, name string }

func keyOf(g v1alpha1.Group) groupKey { return groupKey{g.GroupKind(), g.GetName()} }

// observe reads the groups of the cluster's namespace, its own and others: one
// that has the name of ours but is somebody else's must not be touched.
func (r *Reconciler) observe(ctx context.Context, c *v1alpha1.TidbCluster) (snapshot, error) {
	s := snapshot{groups: map[groupKey]v1alpha1.Group{}}
	for _, list := range []client.ObjectList{&v1alpha1.PDGroupList{}, &v1alpha1.TiKVGroupList{}, &v1alpha1.TiDBGroupList{}, &v1alpha1.TiFlashGroupList{}} {
		if err := r.Client.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
			return s, fmt.Errorf("list groups: %w", err)
		}
		for _, g := range v1alpha1.GroupsIn(list) {
			s.groups[keyOf(g)] = g
		}
	}
	return s, nil
}
