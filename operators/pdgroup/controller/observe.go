package controller

import (
	"context"
	"errors"
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
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
	// Members of a group of the same name that was deleted are about to stop.
	if !slices.ContainsFunc(s.Instances, func(i *v1alpha1.Instance) bool { return group.Ours(g, i) }) {
		s.PD.Err = errNoMembers
		return s, nil
	}
	group.AskPD(r.Env, g, &s, group.Moving(g))
	return s, nil
}
