package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out. Bootstrapping asks nothing of PD itself: its members
// found the cluster with the arguments that they are given.
func (r *Reconciler) act(ctx context.Context, g *v1alpha1.PDGroup, s group.Snapshot, p groupPlan) step.Outcome {
	if o := group.Act(ctx, r.Env, g, s, p.Plan); o.Kind != step.KindDone || p.Orphan.ID == "" {
		return o
	}
	return r.removeOrphan(ctx, g, s, p)
}

// removeOrphan removes a member from PD that has no Instance, if the API server
// knows of none either and PD still says the same.
func (r *Reconciler) removeOrphan(ctx context.Context, g *v1alpha1.PDGroup, s group.Snapshot, p groupPlan) step.Outcome {
	name := membership.Pod(g, p.Orphan)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &v1alpha1.Instance{})
	switch {
	case err == nil:
		return step.Done() // the cache will show it
	case !apierrors.IsNotFound(err):
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Instance %s: %w", name, err))
	}
	key := client.ObjectKeyFromObject(g)
	if s.PD = r.PD.Ask(ctx, key); membership.Orphan(g, s) != p.Orphan {
		return step.Done() // the new answer makes a new plan
	}
	c, err := r.PD.Client(key)
	if err == nil {
		err = c.DeleteMember(ctx, p.Orphan.ID)
	}
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("remove member %s, which has no Instance and no data: %w", name, err))
	}
	r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, string(group.DeleteMember), string(group.DeleteMember), "Removed member %s from PD: it has no Instance and no data", name)
	r.PD.Kick(key)
	return step.After(orderPatience, v1alpha1.ReasonDraining, "member "+name+", which has no Instance, is being removed from PD")
}
