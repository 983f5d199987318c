package reconciler

import (
	"context"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/queueing"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// loop is the reconciler of a component.
type loop[G v1alpha1.Group, S any, P Planned, Status any] struct {
	env       operator.Env
	info      v1alpha1.ComponentInfo
	component Component[G, S, P, Status]
}

// Reconcile brings one group closer to its spec.
func (l *loop[G, S, P, Status]) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	c := l.component
	g, ok := l.info.New().(G)
	if !ok {
		return ctrl.Result{}, fmt.Errorf("v1alpha1.ComponentTable: New of %s makes a %T", c.Kind, l.info.New())
	}
	if err := l.env.Client.Get(ctx, request.NamespacedName, g); err != nil {
		if client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		return ctrl.Result{}, l.forget(ctx, request)
	}
	s, err := c.Observe(ctx, g)
	if err != nil {
		return ctrl.Result{}, err
	}
	if c.Pending != nil {
		if pending := c.Pending(s); pending.Kind != step.KindDone {
			return queueing.ResultOf(pending)
		}
	}
	p, err := c.Plan(ctx, g, &s)
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("plan %s %s: %w", c.Kind, g.GetName(), err)
	}
	l.env.Outcomes.Count("plan", p.CommonPlan().Outcome)
	acted := l.env.Outcomes.Count("act", c.Act(ctx, g, s, &p))
	return l.conclude(ctx, g, s, c.Report(g, s, p, acted, l.env.Now()))
}

// conclude writes the report, and has PD polled as often as it calls for.
func (l *loop[G, S, P, Status]) conclude(ctx context.Context, g G, s S, found execution.Findings[Status]) (ctrl.Result, error) {
	c := l.component
	status := c.StatusOf(g)
	before := *status
	result, err := execution.Conclude(ctx, l.env, g, status, found)
	if err != nil {
		return result, err
	}
	// Secrets that change wake the group (credentials.Store), time does not.
	if g.GetTLS() != nil {
		result = queueing.RequeueWithin(result, certificate.ReviewDelay(g.GetGroupStatus().Certificates, l.env.Now()))
	}
	if c.Announce != nil {
		c.Announce(g, before)
	}
	switch {
	case c.AsksPD == nil:
	case c.AsksPD(g, s):
		return result, reading.AdjustPolling(ctx, l.env, g, l.info.NewList())
	case l.env.PD.IsAskedFor(client.ObjectKey{Namespace: g.GetNamespace(), Name: g.PDGroupName()}):
		// Its PDGroup may be gone, whose PD would be polled for as long as the group is there.
		return result, reading.StopPolling(ctx, l.env, g.GetNamespace(), l.info.NewList())
	}
	return result, nil
}

// forget drops what is remembered of a group that is gone.
func (l *loop[G, S, P, Status]) forget(ctx context.Context, request ctrl.Request) error {
	if l.component.Forget != nil {
		l.component.Forget(request.NamespacedName)
	}
	if l.component.AsksPD == nil {
		return nil
	}
	return reading.StopPolling(ctx, l.env, request.Namespace, l.info.NewList())
}
