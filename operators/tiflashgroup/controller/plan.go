package controller

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// groupPlan is a group.Plan and what TiFlash alone adds to it.
type groupPlan struct {
	planning.Plan
	// Dependencies are the groups that this one waits for.
	Dependencies gate.Dependencies
	// Start is what the first pod, and each that is added, waits for: the
	// dependencies and PD's placement rules.
	Start gate.Dependencies
	// EnablePlacementRules says to turn them on in PD.
	EnablePlacementRules bool
	// Labels to set in PD.
	Labels []placement.LabelChange
}

// makePlan decides what to do about a TiFlashGroup. It is pure.
func makePlan(g *v1alpha1.TiFlashGroup, s observation.Snapshot) (groupPlan, error) {
	template, files, problems := buildTemplate(g)
	return planWith(g, s, component.Rendering{Template: template, Problems: problems, Files: files, Inputs: collectInputs(g), Services: renderServices(g)})
}

// planWith is plan for pods that are rendered already.
func planWith(g *v1alpha1.TiFlashGroup, s observation.Snapshot, r component.Rendering) (groupPlan, error) {
	members := storesOf(g, s)
	p := groupPlan{Dependencies: gate.CheckDependencies(g, s.PDGroup, s.TiKVGroups)}
	p.Start = startGate(g, s, p.Dependencies)
	r.Gate, r.GateReason = p.Start.Result, p.Start.Reason
	r.ReadinessGates = []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy}
	r.ClaimLoss = v1alpha1.HoldOnClaimLoss
	r.Component, r.DatabaseUnknown, r.Extra = members, !members.TrustPD.IsAllowed(), members.ExtraMembers()
	r.AwaitedSlots = storestate.SlotsWithoutInstance(members.State)
	r.Spread = members.Spread(&r.Template, g.Spec.StoreLabels)
	r.ComponentFor = func(now pd.View) component.Component {
		later := s
		later.PD = now
		return storesOf(g, later)
	}
	r.RollGate, r.MaySuspend, r.Budget = rollout.RollGate(g, s), rollout.MaySuspend(g, s), budget.SharedBudget(g, s)
	var err error
	p.Plan, err = group.MakePlan(g, s, r)
	if err != nil || g.DeletionTimestamp != nil {
		return p, err
	}
	p.Outcome = members.ReportFailover(step.Worst(p.Outcome, storestate.StallOnMismatch(members.Stores)))
	if !g.Spec.Paused && p.Outcome.Kind != step.KindStall {
		p.EnablePlacementRules = p.Dependencies.Open && storestate.TrustPD(g, s).IsAllowed() && !s.PD.PlacementRules && g.GetReplicas() > 0
		p.Labels = placement.LabelChanges(s, members.Stores, g.Spec.StoreLabels, nil)
		p.Outcome = step.Worst(p.Outcome, placement.LabelsPending(p.Labels))
	}
	return p, nil
}

// startGate opens when the dependencies are met and PD's placement rules are on.
func startGate(g *v1alpha1.TiFlashGroup, s observation.Snapshot, dependencies gate.Dependencies) gate.Dependencies {
	if !dependencies.Open {
		return dependencies
	}
	trust := storestate.TrustPD(g, s)
	switch {
	case !trust.IsAllowed():
		return gate.Dependencies{Result: gate.Result{Message: "PD has not reported whether placement rules are on: " + trust.Reason()}, Reason: storestate.DistrustReason(s)}
	case !s.PD.PlacementRules:
		return gate.Dependencies{Result: gate.Result{Message: "turning PD's placement rules on (replication.enable-placement-rules), which TiFlash needs"}, Reason: v1alpha1.ReasonProgressing}
	}
	return gate.Dependencies{Result: gate.Result{Open: true}}
}
