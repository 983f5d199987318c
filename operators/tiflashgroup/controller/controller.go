package controller

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiflashgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/reconciler"
	"github.com/tidb-groups/tidb-groups/shared/statusports"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tiflashgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tiflashgroups/finalizers,verbs=update

// pdDeadline is after how long the operator looks again by itself whether PD
// has answered for the first time.
const pdDeadline = 5 * time.Second

// steps are those of the reconcile of a TiFlashGroup.
type steps struct {
	operator.Env
	stores *statusports.Members
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	out := reconciler.Definition(v1alpha1.KindTiFlashGroup, func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, statusport.ReadState).component().Setup(env)
	})
	out.Dialer = pdclient.Open
	return out
}

func newSteps(ctx context.Context, env operator.Env, ask statusports.Ask) *steps {
	return &steps{env, statusports.New(ctx, ask, statusport.IsFinal, env.Now)}
}

func (r *steps) component() reconciler.Component[*v1alpha1.TiFlashGroup, observation.Snapshot, groupPlan, v1alpha1.TiFlashGroupStatus] {
	return reconciler.Component[*v1alpha1.TiFlashGroup, observation.Snapshot, groupPlan, v1alpha1.TiFlashGroupStatus]{
		Kind:     v1alpha1.KindTiFlashGroup,
		StatusOf: func(g *v1alpha1.TiFlashGroup) *v1alpha1.TiFlashGroupStatus { return &g.Status },
		Observe:  r.observe,
		Pending:  waitForAnswers,
		Plan: func(_ context.Context, g *v1alpha1.TiFlashGroup, s *observation.Snapshot) (groupPlan, error) {
			return makePlan(g, *s)
		},
		Act: r.act,
		Report: func(g *v1alpha1.TiFlashGroup, s observation.Snapshot, p groupPlan, acted step.Outcome, now time.Time) execution.Findings[v1alpha1.TiFlashGroupStatus] {
			status, set, end := reportStatus(g, s, p, acted, now)
			return execution.Findings[v1alpha1.TiFlashGroupStatus]{Status: status, Set: set, Members: reportMembers(g, s, p, now), Changes: p.Changes, End: end}
		},
		Announce: func(g *v1alpha1.TiFlashGroup, _ v1alpha1.TiFlashGroupStatus) {
			if !observation.IsProgressing(g) {
				// What the stores said until now is too old for what is edited next.
				r.stores.Forget(client.ObjectKeyFromObject(g))
			}
		},
		Forget: r.stores.Forget,
		AsksPD: asksPD,
		Watch: func(b *builder.Builder) *builder.Builder {
			return b.WatchesRawSource(source.Channel(r.stores.Answers(), &handler.EnqueueRequestForObject{}))
		},
	}
}

// waitForAnswers waits for the first answers of PD and of the stores.
func waitForAnswers(s observation.Snapshot) step.Outcome {
	switch {
	case s.PDPending:
		return step.Wait("PD", pdDeadline, v1alpha1.ReasonPDUnreachable, "PD is being asked")
	case s.StatusPortsPending:
		return step.Wait("status port", statusports.FirstAnswerTimeout, v1alpha1.ReasonRecovering, "stores are being asked")
	}
	return step.Done()
}
