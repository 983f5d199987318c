package controller

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/registry"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqljob"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/upgrade"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// act carries a plan out: what the servers need, and then the SQL. A server that cannot be
// labelled keeps nothing else from being done. What becomes of the SQL stands in
// status.sql, and in no condition.
func (r *steps) act(ctx context.Context, g *v1alpha1.TiDBGroup, s snapshot, p *groupPlan) step.Outcome {
	acted := r.updateServers(ctx, g, s, *p)
	p.SQLOutcome = r.Outcomes.Count("sql", r.runSQL(ctx, g, p.SQL))
	p.SQL = p.SQL.WithError(p.SQLOutcome.Err)
	return acted
}

// updateServers carries out what the servers need.
func (r *steps) updateServers(ctx context.Context, g *v1alpha1.TiDBGroup, s snapshot, p groupPlan) step.Outcome {
	if p.RootSecret {
		if err := r.makeRootSecret(ctx, g, s.SQL); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	if p.SigningSecret {
		if err := r.makeSigningSecret(ctx, g, s.PDGroup); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, err)
		}
	}
	outcome := execution.Act(ctx, r.Env, g, s.Snapshot, p.Plan)
	work := r.servers.ListWork(httpclient.WithTLS(ctx, r.Credentials.TLSForMembers(g)), p.Labels)
	r.recordUpgradeEvents(g, p)
	r.orders.Owe(client.ObjectKeyFromObject(g), r.findOwedOrder(g, s, p))
	if p.Registered != nil {
		r.collector.Collect(r.life, registry.Group{
			Name: client.ObjectKeyFromObject(g), PD: types.NamespacedName{Namespace: g.Namespace, Name: g.PDGroupName()}, Members: p.Registered,
		})
	}
	if p.Order != nil {
		work = append(work, func() step.Outcome { return r.sendOrder(ctx, g, s, *p.Order) })
	}
	given := r.members.Give(ctx, r.Live, r.Recorder, g, p.Configure)
	return step.Worst(outcome, step.RunInParallel(work...), given)
}

// makeRootSecret makes the Secret with root's password, unless there is one of its
// name: then that one holds the password, whatever made it. The operator reads no
// Secret.
func (r *steps) makeRootSecret(ctx context.Context, g *v1alpha1.TiDBGroup, sql string) error {
	secret := rootSecret(g, rand.Text(), sql)
	made, err := r.makeSecret(ctx, secret)
	if made {
		r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "RootPasswordMade", "Create", "Made a password for root, in Secret %s", secret.Name)
	}
	return err
}

// makeSigningSecret makes the Secret with the key that tokens of sessions are signed with. If
// another group of the cluster was faster, that one is looked at the next time.
func (r *steps) makeSigningSecret(ctx context.Context, g *v1alpha1.TiDBGroup, pd *v1alpha1.PDGroup) error {
	data, err := keyset.NewSigning(r.Now())
	if err != nil {
		return err
	}
	secret := signingSecret(g, pd, data)
	made, err := r.makeSecret(ctx, secret)
	if made {
		r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "SessionTokenKeyMade", "Create", "Made a key to sign tokens of sessions with, in Secret %s", secret.Name)
	}
	return err
}

// makeSecret makes a Secret unless there is one of its name.
func (r *steps) makeSecret(ctx context.Context, secret *corev1.Secret) (made bool, err error) {
	err = r.Client.Create(ctx, secret)
	switch {
	case apierrors.IsAlreadyExists(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("create Secret %s: %w", secret.Name, err)
	}
	return true, nil
}

// sendOrder tells TiDB that an upgrade begins or ends; the answer wakes the group up. Before an
// end the groups are read from the API server: another one may just have begun an upgrade.
func (r *steps) sendOrder(ctx context.Context, g *v1alpha1.TiDBGroup, s snapshot, o statusport.Order) step.Outcome {
	if o.Verb == statusport.Finish {
		others, err := reading.Select(ctx, r.Live, &v1alpha1.TiDBGroupList{},
			func(other v1alpha1.Group) bool { return other.PDGroupName() == g.PDGroupName() }, client.InNamespace(g.Namespace))
		if err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("list TiDBGroups of PDGroup %s: %w", g.PDGroupName(), err))
		}
		if upgrade.FindOngoing(others, s.Siblings, g.Name) != "" {
			return step.Done()
		}
	}
	o.TLS = r.tlsByHost(s)
	r.orders.Give(r.life, o)
	return step.Done()
}

// findOwedOrder is what TiDB is to be told if the group is deleted now: it holds DDL back until it
// is told that the upgrade is over. Nil for nothing; another group that is upgrading tells it.
func (r *steps) findOwedOrder(g *v1alpha1.TiDBGroup, s snapshot, p groupPlan) *statusport.Order {
	if g.Status.Upgrade == nil || p.Upgrade == nil || upgrade.FindOngoing(s.Groups, s.Siblings, g.Name) != "" {
		return nil
	}
	return &statusport.Order{Group: client.ObjectKeyFromObject(g), Verb: statusport.Finish, Hosts: listServingHosts(s), TLS: r.tlsByHost(s)}
}

// forgetOrders forgets what TiDB was told for a group that is gone, and tells it what is owed:
// its servers drain for a while, and those of other groups stay. A group that still has its
// upgrade is served by another process now.
func (r *steps) forgetOrders(group types.NamespacedName) {
	owed, live := r.orders.Forget(group), &v1alpha1.TiDBGroup{}
	if owed == nil {
		return
	}
	if err := r.Live.Get(r.life, group, live); client.IgnoreNotFound(err) == nil && live.Status.Upgrade == nil {
		r.orders.Give(r.life, *owed)
	}
}

// tlsByHost is how the servers of the PDGroup are connected to over TLS, by host.
func (r *steps) tlsByHost(s snapshot) map[string]*tls.Config {
	out, over := map[string]*tls.Config{}, r.Credentials.TLSForInstances(s.Groups)
	for _, i := range s.WithSiblings() {
		if config := over(i); config != nil {
			out[i.Status.PodIP] = config
		}
	}
	return out
}

// runSQL makes the Job that is to run next, and deletes those that are not needed any
// more. The group is read from the API server before: what has run stands in its
// status, and a cache that does not know it yet must not have it run again.
func (r *steps) runSQL(ctx context.Context, g *v1alpha1.TiDBGroup, p sqljob.Plan) step.Outcome {
	if p.Start == nil && len(p.Stop) == 0 {
		return step.Done()
	}
	live := &v1alpha1.TiDBGroup{}
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(g), live); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get TiDBGroup %s: %w", g.Name, err))
	}
	if live.UID != g.UID || live.ResourceVersion != g.ResourceVersion {
		return step.Conflict(v1alpha1.ReasonRequestFailed, "the group has changed meanwhile")
	}
	for _, job := range p.Stop {
		// In the foreground the Job is there until its pod is not.
		err := r.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID, ResourceVersion: &job.ResourceVersion}, client.PropagationPolicy(metav1.DeletePropagationForeground))
		switch {
		case apierrors.IsConflict(err):
			return step.Conflict(v1alpha1.ReasonRequestFailed, "Job "+job.Name+" has changed meanwhile")
		case client.IgnoreNotFound(err) != nil:
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("delete Job %s: %w", job.Name, err))
		}
	}
	if p.Start == nil {
		return step.Done()
	}
	err := r.Client.Create(ctx, p.Start)
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.takenJob(ctx, g, p.Start.Name)
	case err != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("create Job %s: %w", p.Start.Name, err))
	}
	return step.Done()
}

// takenJob is the end of a step whose Job exists already although the cache does not show it:
// not yet, or because it lacks our labels.
func (r *steps) takenJob(ctx context.Context, g *v1alpha1.TiDBGroup, name string) step.Outcome {
	var job batchv1.Job
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &job)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Job %s: %w", name, err))
	case err == nil && !metav1.IsControlledBy(&job, g):
		return step.Fail(v1alpha1.ReasonNameConflict, fmt.Errorf("it belongs to another owner: delete it: kubectl -n %s delete job %s", g.Namespace, name))
	}
	return step.Conflict(v1alpha1.ReasonRequestFailed, "Job "+name+" has just been made")
}

// tellSQL tells people how far the SQL of a group is, where its status says so for
// the first time.
func (r *steps) tellSQL(g *v1alpha1.TiDBGroup, before []v1alpha1.SQLStatus) {
	for _, is := range g.Status.SQL {
		if slices.ContainsFunc(before, func(was v1alpha1.SQLStatus) bool {
			return was.Name == is.Name && was.Revision == is.Revision && was.State == is.State
		}) {
			continue
		}
		switch is.State {
		case v1alpha1.SQLRunning:
			r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "SQLStarted", "RunSQL", "revision %d of SQL %s runs", is.Revision, is.Name)
		case v1alpha1.SQLSucceeded:
			r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "SQLSucceeded", "RunSQL", "revision %d of SQL %s has run", is.Revision, is.Name)
		case v1alpha1.SQLFailed:
			r.Recorder.Eventf(g, nil, corev1.EventTypeWarning, "SQLFailed", "RunSQL", "revision %d of SQL %s has failed: %s", is.Revision, is.Name, is.Message)
		case v1alpha1.SQLWaiting:
		}
	}
}

// recordUpgradeEvents records Events of how far TiDB was notified of an upgrade.
func (r *steps) recordUpgradeEvents(g *v1alpha1.TiDBGroup, p groupPlan) {
	before, after := g.Status.Upgrade, p.Upgrade
	switch {
	case before != nil && after == nil:
		r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "UpgradeFinished", "Announce", "TiDB was notified that the upgrade to %s is over", before.To)
	case before == nil || after == nil || before.State == after.State:
	case after.State == v1alpha1.UpgradeStarted:
		r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "UpgradeStarted", "Announce", "TiDB was notified of the upgrade from %s to %s", after.From, after.To)
	case after.State == v1alpha1.UpgradeUnannounced:
		r.Recorder.Eventf(g, nil, corev1.EventTypeWarning, "UpgradeUnannounced", "Announce", "TiDB did not accept the announcement of the upgrade from %s to %s for %s: the upgrade goes on without it", after.From, after.To, announceTimeout)
	}
}
