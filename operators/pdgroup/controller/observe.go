package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/group"
)

// errNoMembers is why there is nobody to ask.
var errNoMembers = errors.New("no member has been started")

// observe reads everything that plan and report decide from.
func (r *Reconciler) observe(ctx context.Context, g *v1alpha1.PDGroup) (group.Snapshot, error) {
	s, err := group.Observe(ctx, r.Env, g)
	if err != nil {
		return s, err
	}
	if recovery.Wanted(g) {
		if s.Served, err = served(ctx, r.Client, g); err != nil {
			return s, err
		}
	}
	// Members of a group of the same name that was deleted are about to stop.
	if !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return group.Ours(g, i) }) {
		s.PD.Err = errNoMembers
		return s, nil
	}
	group.AskPD(r.Env, g, &s, group.Moving(g))
	return s, nil
}

// served reads the Instances of everything that a group's PD serves, those of
// groups that are gone included.
func served(ctx context.Context, c client.Reader, g *v1alpha1.PDGroup) ([]*v1alpha1.Instance, error) {
	var list v1alpha1.InstanceList
	cluster := client.MatchingLabels{v1alpha1.LabelManagedBy: v1alpha1.ManagedBy, v1alpha1.LabelCluster: g.Name}
	if err := c.List(ctx, &list, client.InNamespace(g.Namespace), cluster); err != nil {
		return nil, fmt.Errorf("list Instances of PDGroup %s: %w", g.Name, err)
	}
	var out []*v1alpha1.Instance
	for i := range list.Items {
		if list.Items[i].Spec.Group.Kind != v1alpha1.KindPDGroup {
			out = append(out, &list.Items[i])
		}
	}
	return out, nil
}
