package controller

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// snapshot is the groups that the cluster has to do with.
type snapshot struct {
	groups map[groupKey]v1alpha1.Group
}

// groupKey names a group in its namespace.
type groupKey struct{ kind, name string }

func keyOf(g v1alpha1.Group) groupKey { return groupKey{g.GroupKind(), g.GetName()} }

// observe reads the cluster's groups, and those that have such a name but may be
// somebody else's, who must not be touched. The namespace may hold hundreds of
// others, so that only these are copied.
func (r *Reconciler) observe(ctx context.Context, c *v1alpha1.TidbCluster) (snapshot, error) {
	s := snapshot{groups: map[groupKey]v1alpha1.Group{}}
	for _, list := range []client.ObjectList{&v1alpha1.PDGroupList{}, &v1alpha1.TiKVGroupList{}, &v1alpha1.TiDBGroupList{}, &v1alpha1.TiFlashGroupList{}} {
		if err := r.Client.List(ctx, list, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return s, fmt.Errorf("list groups: %w", err)
		}
		for _, g := range v1alpha1.GroupsIn(list) {
			if !metav1.IsControlledBy(g, c) && !strings.HasPrefix(g.GetName(), c.Name+"-") {
				continue
			}
			if copied, ok := g.DeepCopyObject().(v1alpha1.Group); ok {
				s.groups[keyOf(g)] = copied
			}
		}
	}
	return s, nil
}
