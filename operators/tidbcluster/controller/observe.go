package controller

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbcluster/bootstrap"
	"github.com/tidb-groups/tidb-groups/shared/index"
	"github.com/tidb-groups/tidb-groups/shared/reading"
)

// snapshot is the groups that the cluster has to do with.
type snapshot struct {
	groups map[groupKey]v1alpha1.Group
	// overdue are the groups that their operators should have looked at by now.
	overdue map[groupKey]bool
	// bootstrap is what is seen of spec.bootstrapFrom.
	bootstrap bootstrap.Seen
}

// groupKey names a group in its namespace.
type groupKey struct{ kind, name string }

func keyOf(g v1alpha1.Group) groupKey { return groupKey{g.GroupKind(), g.GetName()} }

// observe reads the cluster's groups, and groups with such a name that may be another
// owner's and must not be touched.
func (r *Reconciler) observe(ctx context.Context, c *v1alpha1.TidbCluster) (snapshot, error) {
	s := snapshot{groups: map[groupKey]v1alpha1.Group{}, overdue: map[groupKey]bool{}}
	for _, component := range v1alpha1.ComponentTable() {
		found, err := reading.Select(ctx, r.Client, component.NewList(),
			func(g v1alpha1.Group) bool { return concernsCluster(g, c) }, client.InNamespace(c.Namespace), index.OfTidbCluster(c.Name))
		if err != nil {
			return s, fmt.Errorf("list groups: %w", err)
		}
		for _, g := range found {
			s.groups[keyOf(g)] = g
			s.overdue[keyOf(g)] = r.Waits.IsOverdue(g, g.GetGroupStatus().Conditions, r.Now())
		}
	}
	return s, r.observeBootstrap(ctx, c, &s)
}

// observeBootstrap reads the Restore of a cluster whose data are not known to be there, and
// whether clients are let in.
func (r *Reconciler) observeBootstrap(ctx context.Context, c *v1alpha1.TidbCluster, s *snapshot) error {
	if c.Status.RestoredAt != nil {
		return nil
	}
	for _, g := range s.groups {
		if of, is := g.(v1alpha1.ClientGroup); is && ownsGroup(c, g) && !of.IsClosed() {
			s.bootstrap.Open = max(s.bootstrap.Open, g.GroupKind()+" "+g.GetName())
		}
	}
	for _, g := range renderGroups(c) {
		if live := s.groups[keyOf(g)]; g.GroupKind() == v1alpha1.KindTiDBGroup && live != nil && ownsGroup(c, live) {
			s.bootstrap.Through = live.GetName()
			break
		}
	}
	restore := &v1alpha1.Restore{}
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: bootstrap.Name(c.Name)}, restore); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("get Restore %s: %w", bootstrap.Name(c.Name), err)
	}
	s.bootstrap.Restore, s.bootstrap.Overdue = restore, r.Waits.IsOverdue(restore, restore.Status.Conditions, r.Now())
	s.bootstrap.Groupless = s.groups[groupKey{v1alpha1.KindTiDBGroup, restore.Spec.TiDBGroup.Name}] == nil
	return nil
}

// concernsCluster reports whether a group matters to a cluster: it is its own, or may have
// a name that the cluster wants.
func concernsCluster(g client.Object, c *v1alpha1.TidbCluster) bool {
	return metav1.IsControlledBy(g, c) || strings.HasPrefix(g.GetName(), c.Name+"-")
}
