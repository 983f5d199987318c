package controller

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/logbackup"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/operator"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/reading"
	"github.com/tidb-groups/tidb-groups/shared/reconciler"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tikvgroups/status,verbs=patch
// +kubebuilder:rbac:groups=groups.tidb.dev,resources=tikvgroups/finalizers,verbs=update

// pdDeadline is after how long the operator looks again by itself whether PD
// has answered for the first time.
const pdDeadline = 5 * time.Second

// steps are those of the reconcile of a TiKVGroup.
type steps struct {
	operator.Env
	stores  *logbackup.Stores
	members *settings.Members
	holds   holds
}

// Definition describes the operator to operator.Main.
func Definition() operator.Definition {
	out := reconciler.Definition(v1alpha1.KindTiKVGroup, func(ctx context.Context, env operator.Env) error {
		return newSteps(ctx, env, statusport.HTTP{}).component().Setup(env)
	})
	out.Dialer, out.Tools = pdclient.Open, true
	return out
}

func newSteps(ctx context.Context, env operator.Env, api settings.API) *steps {
	r := &steps{Env: env, members: settings.NewMembers(statusport.SettingsTable(), api, settings.RunInBackground(ctx), env.Now).WithTLS(env.Credentials.TLSForMembers)}
	r.stores = logbackup.New(ctx, logbackup.FlushNow, r.recordFlush)
	return r
}

func (r *steps) component() reconciler.Component[*v1alpha1.TiKVGroup, observation.Snapshot, groupPlan, v1alpha1.TiKVGroupStatus] {
	return reconciler.Component[*v1alpha1.TiKVGroup, observation.Snapshot, groupPlan, v1alpha1.TiKVGroupStatus]{
		Kind:     v1alpha1.KindTiKVGroup,
		StatusOf: func(g *v1alpha1.TiKVGroup) *v1alpha1.TiKVGroupStatus { return &g.Status },
		Observe:  r.observe,
		Pending:  waitForAnswers,
		Plan:     r.decide,
		Act:      r.act,
		Report: func(g *v1alpha1.TiKVGroup, s observation.Snapshot, p groupPlan, acted step.Outcome, now time.Time) execution.Findings[v1alpha1.TiKVGroupStatus] {
			status, set, end := reportStatus(g, s, p, acted, now)
			return execution.Findings[v1alpha1.TiKVGroupStatus]{Status: status, Set: set, Members: reportMembers(g, s, p, now), Changes: p.Changes, End: end}
		},
		Forget: func(group types.NamespacedName) {
			r.members.Forget(group)
			r.holds.set(group, observation.Hold{})
		},
		AsksPD: asksPD,
		Watch: func(b *builder.Builder) *builder.Builder {
			return b.WatchesRawSource(source.Channel(r.members.Answers(), &handler.EnqueueRequestForObject{}))
		},
	}
}

// waitForAnswers waits for the first answers of PD and of the stores.
func waitForAnswers(s observation.Snapshot) step.Outcome {
	switch {
	case s.PDPending:
		return step.Wait("PD", pdDeadline, v1alpha1.ReasonPDUnreachable, "PD is being asked")
	case s.RunningPending:
		return step.Wait("status port", settings.FirstAnswerTimeout, v1alpha1.ReasonConfigPending, "stores are being asked")
	}
	return step.Done()
}

// decide plans, and asks PD for what the plan cannot go on without: it is too much to
// be asked for at any other moment.
func (r *steps) decide(ctx context.Context, g *v1alpha1.TiKVGroup, s *observation.Snapshot) (groupPlan, error) {
	p, err := makePlan(g, *s)
	if err == nil && p.Question != nil {
		s.Answer = reading.AskQuestion(ctx, r.Env, g, *p.Question)
		p, err = makePlan(g, *s)
	}
	if err == nil {
		r.holds.set(types.NamespacedName{Namespace: g.Namespace, Name: g.Name}, p.Hold)
	}
	return p, err
}
