package controller

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/registry"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/upgrade"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out. A server that cannot be labelled keeps nothing else
// from being done.
func (r *Reconciler) act(ctx context.Context, g *v1alpha1.TiDBGroup, s snapshot, p groupPlan) step.Outcome {
	if p.RootSecret {
		if err := r.makeRootSecret(ctx, g, s.SQL); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	outcome := group.Act(ctx, r.Env, g, s.Snapshot, p.Plan)
	var work []func() step.Outcome
	for _, l := range p.Labels {
		work = append(work, func() step.Outcome {
			if err := r.servers.Give(ctx, l); err != nil {
				return step.Fail(v1alpha1.ReasonRequestFailed, err)
			}
			return step.Done()
		})
	}
	r.announce(g, p)
	if p.Registered != nil {
		r.sweeper.Sweep(r.life, registry.Group{
			Name: client.ObjectKeyFromObject(g), PD: types.NamespacedName{Namespace: g.Namespace, Name: g.PDGroupName()}, Members: p.Registered,
		})
	}
	if p.Order != nil {
		work = append(work, func() step.Outcome { return r.order(ctx, g, *p.Order) })
	}
	given := r.members.Give(ctx, r.Live, r.Recorder, g, p.Configure)
	return step.Worst(outcome, step.Parallel(work...), given)
}

// makeRootSecret makes the Secret with root's password, unless there is one of its
// name: then that one holds the password, whoever made it. The operator reads no
// Secret.
func (r *Reconciler) makeRootSecret(ctx context.Context, g *v1alpha1.TiDBGroup, sql string) error {
	secret := rootSecret(g, rand.Text(), sql)
	switch err := r.Client.Create(ctx, secret); {
	case apierrors.IsAlreadyExists(err):
		return nil
	case err != nil:
		return fmt.Errorf("create Secret %s: %w", secret.Name, err)
	}
	r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "RootPasswordMade", "Create", "Made a password for root, in Secret %s", secret.Name)
	return nil
}

// order gives TiDB the word; the answer wakes the group up. That an upgrade is
// over is looked at in the API server first: another group may just have begun
// one.
func (r *Reconciler) order(ctx context.Context, g *v1alpha1.TiDBGroup, o statusport.Order) step.Outcome {
	if o.Verb == statusport.Finish {
		others, err := group.Select(ctx, r.Live, g.Namespace, list(), func(other v1alpha1.Group) bool { return other.PDGroupName() == g.PDGroupName() })
		if err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("list TiDBGroups of PDGroup %s: %w", g.PDGroupName(), err))
		}
		if upgrade.Between(others, g.Name) != "" {
			return step.Done()
		}
	}
	r.orders.Give(r.life, o)
	return step.Done()
}

// announce tells people how far TiDB has been told of an upgrade.
func (r *Reconciler) announce(g *v1alpha1.TiDBGroup, p groupPlan) {
	before, after := g.Status.Upgrade, p.Upgrade
	switch {
	case before != nil && after == nil:
		r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "UpgradeFinished", "Announce", "TiDB has been told that the upgrade to %s is over", before.To)
	case before == nil || after == nil || before.State == after.State:
	case after.State == v1alpha1.UpgradeStarted:
		r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "UpgradeStarted", "Announce", "TiDB has been told of the upgrade from %s to %s", after.From, after.To)
	case after.State == v1alpha1.UpgradeUnannounced:
		r.Recorder.Eventf(g, nil, corev1.EventTypeWarning, "UpgradeUnannounced", "Announce", "TiDB did not take the word of the upgrade from %s to %s for %s: it goes on without", after.From, after.To, announcePatience)
	}
}
