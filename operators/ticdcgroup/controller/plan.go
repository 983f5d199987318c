package controller

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
)

// groupPlan is a planning.Plan and what TiCDC alone adds to it.
type groupPlan struct {
	planning.Plan
	// Dependencies is the gate that the group stands before.
	Dependencies gate.Dependencies
}

// makePlan decides what to do about a TiCDCGroup. It is pure.
func makePlan(g *v1alpha1.TiCDCGroup, s observation.Snapshot) (groupPlan, error) {
	template, files, problems := buildTemplate(g, s.Image)
	return planWith(g, s, component.Rendering{Template: template, Problems: problems, Files: files, Inputs: collectInputs(g), Services: renderServices(g)})
}

// planWith is plan for pods that are rendered already.
func planWith(g *v1alpha1.TiCDCGroup, s observation.Snapshot, r component.Rendering) (groupPlan, error) {
	// PD keeps the changefeeds, and a store has the changes that are copied.
	open := gate.CheckDependencies(g, s.PDGroup, s.TiKVGroups)
	r.Gate, r.GateReason = open.Result, open.Reason
	r.ClaimLoss = v1alpha1.RecreateLostClaim
	r.Component = capturesOf(g, s, open.Result)
	r.RollGate, r.MaySuspend, r.Budget = rollout.RollGate(g, s), rollout.MaySuspend(g, s), budget.OwnBudget(g)
	children, err := group.MakePlan(g, s, r)
	return groupPlan{Plan: children, Dependencies: open}, err
}
