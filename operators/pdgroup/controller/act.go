package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/bootstrap"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/membership"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/persisted"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// retryPeriod is after how long a PD is asked again that did not answer.
const retryPeriod = time.Second

// act carries a plan out. Bootstrapping asks nothing of PD itself: its members
// bootstrap the cluster with the arguments that they are given. Of a plan that does
// not rest on what is so now nothing is done, and nothing recorded.
func (r *steps) act(ctx context.Context, g *v1alpha1.PDGroup, s observation.Snapshot, p *groupPlan) step.Outcome {
	o := r.confirm(ctx, g, s, *p)
	if o.Kind != step.KindDone {
		p.Recovery = g.Status.Recovery
		clear(p.Drained)
	} else {
		o = execution.Act(ctx, r.Env, g, s, p.Plan)
	}
	if len(p.Late) > 0 {
		// Services rest on the spec alone, and PD may not answer for lack of one.
		return step.Worst(o, execution.Act(ctx, r.Env, g, s, planning.Plan{Objects: planning.Objects{Services: p.Late}}))
	}
	if o.Kind == step.KindDone && p.Orphan.ID != "" {
		o = r.removeOrphan(ctx, g, s, *p)
	}
	if o.Kind == step.KindDone && len(p.PeerURLs) > 0 {
		o = r.setPeerURLs(ctx, g, p.PeerURLs)
	}
	return step.Worst(o, r.configure(ctx, g, s, p.Config))
}

// confirm looks at the API server, and asks PD, before what a recovery of PD must
// not get wrong, or an operator that has not seen that there is one.
func (r *steps) confirm(ctx context.Context, g *v1alpha1.PDGroup, s observation.Snapshot, p groupPlan) step.Outcome {
	active := recovery.IsActive(g)
	if active && len(p.Instances) > 0 || !active && p.ClusterID != "" && recovery.StartsMember(p.Plan) {
		var now v1alpha1.PDGroup
		if err := r.Live.Get(ctx, client.ObjectKeyFromObject(g), &now); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get PDGroup %s: %w", g.Name, err))
		}
		if now.UID != g.UID || !equality.Semantic.DeepEqual(now.Status.Recovery, g.Status.Recovery) {
			return newConflict("PDGroup " + g.Name)
		}
	}
	if p.ClusterID == "" {
		if o := r.confirmInitialMembers(ctx, g, s, p); o.Kind != step.KindDone {
			return o
		}
	}
	if active && recovery.ForcesMember(p.Plan) {
		if o := r.confirmQuiet(ctx, g); o.Kind != step.KindDone {
			return o
		}
	}
	begins, releases := recovery.BeginsRecovery(g, p.Recovery), active && recovery.ReleasesInstances(g, p.Plan)
	if !begins && !releases {
		return step.Done()
	}
	view := r.PD.Ask(ctx, client.ObjectKeyFromObject(g))
	switch {
	case !recovery.ContradictsPD(g, p.Recovery, view):
		return step.Done()
	case begins:
		return newConflict("what PD says")
	}
	survivor := g.Status.Recovery.Survivor.Name
	what := "it answers otherwise"
	if view.Err != nil {
		what = "it does not answer: " + view.Err.Error()
	}
	return step.Wait("PD", retryPeriod, v1alpha1.ReasonRecoveringQuorum, fmt.Sprintf("waiting for PD to list only member %s before deleting the other Instances, but %s: kubectl -n %s describe instance %s",
		survivor, what, g.Namespace, survivor))
}

// confirmInitialMembers looks at the API server before a member is made that may bootstrap
// the cluster: which one may depends on the claims and Instances that are there, and a
// cache that lags does not show the data that there is.
func (r *steps) confirmInitialMembers(ctx context.Context, g *v1alpha1.PDGroup, s observation.Snapshot, p groupPlan) step.Outcome {
	if !slices.ContainsFunc(p.Instances, func(c planning.InstanceChange) bool { return c.Live == nil }) {
		return step.Done()
	}
	var now v1alpha1.PDGroup
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(g), &now); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get PDGroup %s: %w", g.Name, err))
	}
	if now.UID != g.UID || now.Status.ClusterID != "" || !equality.Semantic.DeepEqual(now.Status.InitialMembers, g.Status.InitialMembers) {
		return newConflict("PDGroup " + g.Name)
	}
	there := s
	var err error
	if there.Instances, err = reading.Instances(ctx, r.Live, g); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if err := reading.ObserveClaims(ctx, r.Live, g, &there); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	there.ForeignClaims = nil
	if err := r.observeBootstrap(ctx, g, &there); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if len(there.ForeignClaims) > 0 || bootstrap.LeftByAnother(g, there) != "" || !slices.Equal(bootstrap.StartingSlots(g, there), bootstrap.StartingSlots(g, s)) ||
		!slices.Equal(bootstrap.InitialMembers(g, there), bootstrap.InitialMembers(g, s)) || !slices.Equal(bootstrap.InitialCluster(g, there), bootstrap.InitialCluster(g, s)) {
		return newConflict("which members may bootstrap PD's cluster")
	}
	return step.Done()
}

// confirmQuiet looks at the API server for what must have stopped before a member
// forgets the others: these, and everything that PD serves.
func (r *steps) confirmQuiet(ctx context.Context, g *v1alpha1.PDGroup) step.Outcome {
	members, err := reading.Instances(ctx, r.Live, g)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if name := recovery.FindRunning(g, members); name != "" {
		return newConflict("Instance " + name)
	}
	clients, err := listServedInstances(ctx, r.Live, g)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	if i := recovery.FindRunningClient(clients); i != nil {
		return newConflict("Instance " + i.Name)
	}
	return step.Done()
}

func newConflict(what string) step.Outcome {
	return step.Conflict(v1alpha1.ReasonProgressing, what+" has changed meanwhile")
}

// removeOrphan removes a member from PD that has no Instance, if the API server
// knows of none either and PD still says the same.
func (r *steps) removeOrphan(ctx context.Context, g *v1alpha1.PDGroup, s observation.Snapshot, p groupPlan) step.Outcome {
	name := membership.PodName(g, p.Orphan)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: name}, &v1alpha1.Instance{})
	switch {
	case err == nil:
		return step.Done() // the cache will show it
	case !apierrors.IsNotFound(err):
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get Instance %s: %w", name, err))
	}
	// One that PD has no name of has never run: on a claim of it there is no member's data.
	if p.Orphan.Name != "" {
		if o := r.confirmNoData(ctx, g, name, p.Outcome.Reason); o.Kind != step.KindDone {
			return o
		}
	}
	key := client.ObjectKeyFromObject(g)
	if s.PD = r.PD.Ask(ctx, key); membership.FindOrphan(g, s) != p.Orphan {
		return step.Done() // the new answer makes a new plan
	}
	c, err := r.PD.Client(key)
	if err == nil {
		limited, cancel := context.WithTimeout(ctx, ordersDeadline)
		defer cancel()
		err = c.DeleteMember(limited, p.Orphan.ID)
	}
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("remove member %s, which has no Instance and no data: %w", name, err))
	}
	r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, string(component.DeleteMember), string(component.DeleteMember), "Removed member %s from PD: it has no Instance and no data", name)
	r.PD.Kick(key)
	return step.RetryAfter(membership.OrderRetryPeriod, v1alpha1.ReasonDraining, "member "+name+", which has no Instance, is being removed from PD")
}

// setPeerURLs gives members of PD the URLs at which the others reach them. The next answer
// of PD shows them.
func (r *steps) setPeerURLs(ctx context.Context, g *v1alpha1.PDGroup, all []membership.PeerURLs) step.Outcome {
	key := client.ObjectKeyFromObject(g)
	c, err := r.PD.Client(key)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	limited, cancel := context.WithTimeout(ctx, ordersDeadline)
	defer cancel()
	for _, m := range all {
		if err := c.SetPeerURLs(limited, m.ID, m.URLs); err != nil {
			return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("set the URLs of member %s in PD: %w", m.Name, err))
		}
	}
	r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "PeerURLsSet", "SetPeerURLs", "PD's members find each other by %s", all[0].Schemes())
	r.PD.Kick(key)
	return step.Done()
}

// confirmNoData looks at the API server for the claim of a member that has no
// Instance: a user who restores a claim need not know the labels it is found by. It
// is a Wait, so that the plan's own does not hide it, and for the plan's reason:
// that tells others whether PD has a roll ahead.
func (r *steps) confirmNoData(ctx context.Context, g *v1alpha1.PDGroup, name, reason string) step.Outcome {
	claim := &metav1.PartialObjectMetadata{}
	claim.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"))
	data := bootstrap.DataClaim(g, name)
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: data}, claim)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("get claim %s: %w", data, err))
	case err == nil && claim.DeletionTimestamp == nil && claim.Annotations[v1alpha1.AnnotationRetired] == "":
		return step.Wait("claim", membership.LookAgain, cmp.Or(reason, v1alpha1.ReasonDraining),
			fmt.Sprintf("member %s has no Instance, but claim %s exists: give it the labels of the other members' claims, or delete it: kubectl -n %s get pvc --show-labels", name, data, g.Namespace))
	}
	return step.Done()
}

// configure gives PD the items that it lacks, one by one, so that the one that it
// refuses has a name. An item may be refused for the sake of another one, and is given
// once more after that.
func (r *steps) configure(ctx context.Context, g *v1alpha1.PDGroup, s observation.Snapshot, missing []persisted.MissingItem) step.Outcome {
	if len(missing) == 0 {
		return step.Done()
	}
	if o := persisted.New(g, s).CheckConflicts(missing); o.Kind != step.KindDone {
		return o
	}
	key := client.ObjectKeyFromObject(g)
	c, err := r.PD.Client(key)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	limited, cancel := context.WithTimeout(ctx, ordersDeadline)
	defer cancel()
	answers, given := map[string]error{}, []string(nil)
	defer func() {
		if len(given) > 0 { // one Event for all: of several with the same reason Kubernetes' recorder keeps the first text
			r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "ConfigGiven", "Configure", "PD has taken %s", strings.Join(given, ", and "))
		}
	}()
	for rest := missing; len(rest) > 0; {
		var refused []persisted.MissingItem
		for _, l := range rest {
			var no *pd.Refused
			switch err := c.SetConfig(limited, map[string]any{l.Key: l.Send}); {
			case errors.As(err, &no):
				answers[l.Key] = err
				refused = append(refused, l)
			case err != nil:
				return step.Fail(v1alpha1.ReasonRequestFailed, err)
			default:
				delete(answers, l.Key)
				given = append(given, fmt.Sprintf("%s; it had %s", l.Item, persisted.OrNothing(l.Has)))
			}
		}
		if len(refused) == len(rest) {
			break
		}
		rest = refused
	}
	// What it shows counts, not what it answers.
	return persisted.CheckItems(g, r.PD.Ask(ctx, key), answers)
}
