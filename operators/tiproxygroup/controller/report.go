package controller

import (
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

// reportStatus computes the status of a TiProxyGroup. It is pure.
func reportStatus(g *v1alpha1.TiProxyGroup, s snapshot, p groupPlan, outcome step.Outcome, now time.Time) (v1alpha1.TiProxyGroupStatus, *conditions.Set) {
	set := conditions.New(g.Status.Conditions, g.Generation, now)
	p.Dependencies.SetCondition("PDGroup "+g.PDGroupName()+" is Ready", set)
	// One proxy that answers is a service; how many do is for UpToDate.
	serving := slices.ContainsFunc(s.Instances, member.WasReady)
	return v1alpha1.TiProxyGroupStatus{
		GroupStatus: groupstatus.Report(g, s.Snapshot, p.Plan, groupstatus.Work{Acted: outcome, Serving: serving}, set),
		Endpoint:    workload.Endpoint(g, g.Spec.Service, renderPorts()[0], s.Services[g.Name]),
	}, set
}

// reportMembers reports every Instance's proxy.
func reportMembers(g *v1alpha1.TiProxyGroup, s snapshot, p groupPlan, now time.Time) []groupstatus.Member {
	return stateless.Report(g, s.Instances, p.Drained, v1alpha1.PortTiProxy, now)
}
