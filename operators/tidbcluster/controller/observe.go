package controller

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// snapshot is the groups that the cluster has to do with.
type snapshot struct {
	groups map[groupKey]v1alpha1.Group
	// silent are the groups that their operators should have looked at by now.
	silent map[groupKey]bool
}

// groupKey names a group in its namespace.
type groupKey struct{ kind, name string }

func keyOf(g v1alpha1.Group) groupKey { return groupKey{g.GroupKind(), g.GetName()} }

// observe reads the cluster's groups, and those that have such a name but may be
// somebody else's, who must not be touched.
func (r *Reconciler) observe(ctx context.Context, c *v1alpha1.TidbCluster) (snapshot, error) {
	s := snapshot{groups: map[groupKey]v1alpha1.Group{}, silent: map[groupKey]bool{}}
	for _, component := range v1alpha1.ComponentTable() {
		found, err := reading.Select(ctx, r.Client, c.Namespace, component.NewList(), func(g v1alpha1.Group) bool { return concerns(g, c) })
		if err != nil {
			return s, fmt.Errorf("list groups: %w", err)
		}
		for _, g := range found {
			s.groups[keyOf(g)] = g
			s.silent[keyOf(g)] = r.Waits.Overdue(g, g.GetGroupStatus().Conditions, r.Now())
		}
	}
	return s, nil
}

// concerns reports whether a group matters to a cluster: it is its own, or may have
// a name that the cluster wants.
func concerns(g client.Object, c *v1alpha1.TidbCluster) bool {
	return metav1.IsControlledBy(g, c) || strings.HasPrefix(g.GetName(), c.Name+"-")
}
