package controller

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/execution"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
)

// rulesDeadline bounds the call that turns placement rules on.
const rulesDeadline = 5 * time.Second

// act carries a plan out and nothing else. What PD refuses does not keep the
// children from being applied.
func (r *steps) act(ctx context.Context, g *v1alpha1.TiFlashGroup, s observation.Snapshot, p *groupPlan) step.Outcome {
	children := execution.Act(ctx, r.Env, g, s, p.Plan)
	rules := step.Done()
	if p.EnablePlacementRules {
		rules = r.enablePlacementRules(ctx, g)
	}
	return step.Worst(children, rules, store.SetLabels(ctx, r.Env, g, p.Labels))
}

func (r *steps) enablePlacementRules(ctx context.Context, g *v1alpha1.TiFlashGroup) step.Outcome {
	key := types.NamespacedName{Namespace: g.Namespace, Name: g.PDGroupName()}
	client, err := r.PD.Client(key)
	if err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, err)
	}
	ctx, cancel := context.WithTimeout(ctx, rulesDeadline)
	defer cancel()
	if err := client.EnablePlacementRules(ctx); err != nil {
		return step.Fail(v1alpha1.ReasonRequestFailed, fmt.Errorf("turn placement rules of PDGroup %s on: %w", key.Name, err))
	}
	r.Recorder.Eventf(g, nil, corev1.EventTypeNormal, "PlacementRulesEnabled", "EnablePlacementRules", "Turned placement rules of PDGroup %s on", key.Name)
	r.PD.Kick(key)
	return step.Done()
}
