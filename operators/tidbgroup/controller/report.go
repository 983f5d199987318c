package controller

import (
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// reportStatus computes the status of a TiDBGroup. It is pure.
func reportStatus(g *v1alpha1.TiDBGroup, s snapshot, p groupPlan, outcome step.Outcome, now time.Time) (v1alpha1.TiDBGroupStatus, *conditions.Set) {
	set := conditions.New(g.Status.Conditions, g.Generation, now)
	p.Dependencies.SetCondition("PDGroup "+g.PDGroupName()+" and a TiKVGroup of it are Ready", set)
	// One server that answers is a service; how many do is for UpToDate.
	serving := slices.ContainsFunc(s.Instances, member.WasReady)
	status := v1alpha1.TiDBGroupStatus{
		GroupStatus: groupstatus.Report(g, s.Snapshot, p.Plan, groupstatus.Work{Acted: outcome, Serving: serving}, set),
		Endpoint:    workload.Endpoint(g, g.Spec.Service, renderPorts()[0], s.Services[g.Name]),
		Upgrade:     p.Upgrade,
		SQL:         p.SQL.Status,
	}
	return status, set
}

// combineOutcomes says how the reconcile ends.
func combineOutcomes(g *v1alpha1.TiDBGroup, p groupPlan, acted step.Outcome) step.Outcome {
	out := step.Worst(acted, p.Outcome, p.SQLOutcome)
	if keyset.IsNeeded(g) {
		out = step.Worst(out, step.RetryAfter(certificate.ReviewAgain, "", "")) // beside that a Secret that changes wakes the group
	}
	if p.SQL.Wake > 0 {
		out = step.Worst(out, step.RetryAfter(p.SQL.Wake, "", ""))
	}
	return out
}

// reportMembers reports every Instance's server.
func reportMembers(g *v1alpha1.TiDBGroup, s snapshot, p groupPlan, now time.Time) []groupstatus.Member {
	return stateless.Report(g, s.Instances, p.Drained, v1alpha1.PortTiDB, now)
}
