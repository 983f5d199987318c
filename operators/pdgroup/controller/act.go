package controller

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out. Bootstrapping asks nothing of PD itself: its members
// found the cluster with the arguments that they are given. Of a plan that does
// not rest on what is so now nothing is done, and nothing recorded.
func (r *Reconciler) act(ctx context.Context, g *v1alpha1.PDGroup, s group.Snapshot, p *groupPlan) step.Outcome {
	if o := r.confirm(ctx, g, *p); o.Kind != step.KindDone {
		p.Recovery = g.Status.Recovery
		clear(p.Drained)
		return o
	}
	o := group.Act(ctx, r.Env, g, s, p.Plan)
	if len(p.Late) > 0 {
		return step.Worst(o, group.Act(ctx, r.Env, g, s, group.Plan{Services: p.Late}))
	}
	if o.Kind != step.KindDone || p.Orphan.ID == "" {
		return o
	}
	return r.removeOrphan(ctx, g, s, *p)
}

// confirm looks at the API server, and asks PD, before what a recovery of PD must
// not get wrong, or an operator that has not seen that there is one.
func (r *Reconciler) confirm(ctx context.Context, g *v1alpha1.PDGroup, p groupPlan) step.Outcome {
	changed := func(what string) step.Outcome {
		return step.Conflict(v1alpha1.ReasonProgressing, what+" has changed meanwhile")
	}
	active := recovery.Active(g)
	if active && len(p.Instances) > 0 || !active && p.ClusterID != "" && recovery.Starts(p.Plan) {
		var now v1alpha1.PDGroup
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(g), &now); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get PDGroup %s: %w", g.Name, err))
		}
		if now.UID != g.UID || !equality.Semantic.DeepEqual(now.Status.Recovery, g.Status.Recovery) {
			return changed("PDGroup " + g.Name)
		}
	}
	if active && recovery.Forces(p.Plan) {
		there, err := group.Instances(ctx, r.Live, g)
		if err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
		if name := recovery.Running(g, there); name != "" {
			return changed("Instance " + name)
		}
	}
	asks := recovery.Begins(g, p.Recovery) || active && recovery.LetsGo(g, p.Plan)
	if asks && recovery.Contradicts(g, p.Recovery, r.PD.Ask(ctx, client.ObjectKeyFromObject(g))) {
		return changed("what PD says")
	}
	return step.Done()
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
