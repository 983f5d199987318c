package controller

import (
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/issuance"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/recovery"
	"github.com/tidb-groups/tidb-groups/operators/pdgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/reconciler"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/watch"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=pdgroups/finalizers,verbs=update

// pdDeadline is after how long the operator looks again by itself whether PD
// has been asked.
const pdDeadline = 5 * time.Second

// steps are those of the reconcile of a PDGroup.
type steps struct {
	operator.Env
	certificates *issuance.Reader
	members      *statusports.Members
}

// snapshot is what all groups observe, and what PD alone adds to it.
type snapshot struct {
	observation.Snapshot
	// Issuance is what there is of the certificates of the cluster.
	Issuance issuance.Observed
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	out := reconciler.Definition(v1alpha1.KindPDGroup, func(ctx context.Context, env operator.Env) error {
		members := statusports.New(ctx, statusport.ReadState, statusport.IsFinal, env.Now)
		return (&steps{env, issuance.NewReader(env.Live, env.Credentials, env.Now), members}).component().Setup(env)
	})
	out.Dialer, out.Tools = pdclient.OpenWithConfig, true
	// A recovery waits for the pods of everything that PD serves.
	maps.DeleteFunc(out.Cached, func(object client.Object, _ cache.ByObject) bool {
		_, isInstance := object.(*v1alpha1.Instance)
		return isInstance
	})
	return out
}

func (r *steps) component() reconciler.Component[*v1alpha1.PDGroup, snapshot, groupPlan, v1alpha1.PDGroupStatus] {
	return reconciler.Component[*v1alpha1.PDGroup, snapshot, groupPlan, v1alpha1.PDGroupStatus]{
		Kind:     v1alpha1.KindPDGroup,
		StatusOf: func(g *v1alpha1.PDGroup) *v1alpha1.PDGroupStatus { return &g.Status },
		Observe: func(ctx context.Context, g *v1alpha1.PDGroup) (snapshot, error) {
			s, err := r.observe(ctx, g)
			if err != nil {
				return snapshot{Snapshot: s}, err
			}
			issued, err := r.certificates.Read(ctx, g, s.Groups)
			return snapshot{s, issued}, err
		},
		Pending: func(s snapshot) step.Outcome {
			switch {
			case s.PDPending:
				return step.Wait("PD", pdDeadline, v1alpha1.ReasonBootstrapping, "PD is being asked")
			case s.StatusPortsPending:
				return step.Wait("PD", statusports.FirstAnswerTimeout, v1alpha1.ReasonRecovering, "members are being asked")
			}
			return step.Done()
		},
		Plan: func(_ context.Context, g *v1alpha1.PDGroup, s *snapshot) (groupPlan, error) {
			issued := issuance.MakePlan(g, s.Issuance, s.Now)
			issued.ExplainMissing(&s.Certificates)
			p, err := makePlan(g, s.Snapshot)
			p.Issuance, p.Outcome = issued, step.Worst(p.Outcome, issued.Outcome)
			return p, err
		},
		Act: func(ctx context.Context, g *v1alpha1.PDGroup, s snapshot, p *groupPlan) step.Outcome {
			issued := r.certificates.Act(ctx, r.Env, g, p.Issuance)
			return step.Worst(issued, r.act(ctx, g, s.Snapshot, p))
		},
		Report: func(g *v1alpha1.PDGroup, s snapshot, p groupPlan, acted step.Outcome, now time.Time) execution.Findings[v1alpha1.PDGroupStatus] {
			status, set, end := reportStatus(g, s.Snapshot, p, acted, now)
			return execution.Findings[v1alpha1.PDGroupStatus]{Status: status, Set: set, Members: reportMembers(g, s.Snapshot, p, now), Changes: p.Changes, End: end, Once: true}
		},
		Announce: func(g *v1alpha1.PDGroup, before v1alpha1.PDGroupStatus) {
			if after := g.Status.Recovery; recovery.NeedsEvent(before.Recovery, after) {
				r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "QuorumRecovery", string(after.Phase), "%s", recovery.DescribePhase(after))
			}
		},
		Forget: r.members.Forget,
		AsksPD: func(_ *v1alpha1.PDGroup, s snapshot) bool { return len(s.Instances) > 0 },
		Watch: func(b *builder.Builder) *builder.Builder {
			list := func() client.ObjectList { return &v1alpha1.PDGroupList{} }
			return b.WatchesRawSource(source.Channel(r.members.Answers(), &handler.EnqueueRequestForObject{})).
				Watches(&v1alpha1.Instance{}, watch.GroupsOf(r.Client, list, watch.ByCluster), builder.WithPredicates(podStopPredicate()))
		},
	}
}

// podStopPredicate passes what may be the end of a pod: a recovery waits for those of
// everything that PD serves, also of groups that are gone.
func podStopPredicate() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*v1alpha1.Instance)
			after, also := e.ObjectNew.(*v1alpha1.Instance)
			return ok && also && after.Status.PodUID == "" &&
				(before.Status.PodUID != "" || before.Status.ObservedGeneration != after.Status.ObservedGeneration)
		},
	}
}
