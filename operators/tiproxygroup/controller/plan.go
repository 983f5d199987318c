package controller

import (
	"maps"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/tomlconfig"
	"github.com/tidb-groups/tidb-groups/shared/topology"
)

// groupPlan is a planning.Plan and what TiProxy alone adds to it.
type groupPlan struct {
	planning.Plan
	// Dependencies is the gate that the group stands before.
	Dependencies gate.Dependencies
	// Configure is what running proxies are to take of a changed configuration.
	Configure []settings.Order
	// Labels to give to running proxies.
	Labels []labelling.Labelling
}

// makePlan decides what to do about a TiProxyGroup. It is pure.
func makePlan(g *v1alpha1.TiProxyGroup, s snapshot) (groupPlan, error) {
	template, files, problems := buildTemplate(g, s.Image)
	return planWith(g, s, component.Rendering{
		Template: template, Problems: problems, Files: files, Inputs: collectInputs(g), Services: renderServices(g), ServiceInputs: g.Spec.Service,
	})
}

// planWith is plan for pods that are rendered already.
func planWith(g *v1alpha1.TiProxyGroup, s snapshot, r component.Rendering) (groupPlan, error) {
	open := gate.CheckDependencies(g, s.PDGroup, s.TiKVGroups)
	r.Gate, r.GateReason = open.Result, open.Reason
	if s.PDGroup != nil && g.Status.CurrentRevision != "" {
		// Proxies that are added beside others that have served are wanted all the more
		// while PD does not answer: those that run know the servers.
		r.Gate = gate.Result{Open: true}
	}
	r.ClaimLoss = v1alpha1.RecreateLostClaim
	judge := settings.Judge{Table: statusport.SettingsTable(), Group: g, Policy: g.Spec.ConfigUpdate, Running: s.Running, Now: s.Now}
	r.OnlineConfig = judge
	r.Component, r.Surge = proxiesOf(g, s.Snapshot, open.Result), maxSurge(g)
	r.RollGate, r.MaySuspend, r.Budget = rollout.RollGate(g, s.Snapshot), rollout.MaySuspend(g, s.Snapshot), budget.OwnBudget(g)
	children, err := group.MakePlan(g, s.Snapshot, r)
	p := groupPlan{Plan: children, Dependencies: open, Configure: judge.Orders(children.ConfigUpdates), Labels: planLabels(g, s)}
	p.Outcome = step.Worst(p.Outcome, p.ConfigOutcome)
	return p, err
}

// planLabels finds the running proxies that do not have the labels of their nodes. They prefer
// servers of their zone. A label that the user's configuration has, whatever its value, is the
// user's.
func planLabels(g *v1alpha1.TiProxyGroup, s snapshot) []labelling.Labelling {
	user, err := tomlconfig.Parse("spec.config", g.Spec.Config)
	if err != nil {
		return nil // what the proxies run with may have any
	}
	return labelling.FindMissing(g, s.Instances, s.Labelled, func(i *v1alpha1.Instance) map[string]string {
		labels := topology.ServerLabels(s.Nodes[i.Status.NodeName], nil)
		maps.DeleteFunc(labels, func(key, _ string) bool { return len(tomlconfig.Conflicts(user, []string{"labels." + key})) > 0 })
		return labels
	})
}
