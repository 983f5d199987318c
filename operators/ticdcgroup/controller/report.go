package controller

import (
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// reportStatus computes the status of a TiCDCGroup. It is pure.
func reportStatus(g *v1alpha1.TiCDCGroup, s observation.Snapshot, p groupPlan, outcome step.Outcome, now time.Time) (v1alpha1.TiCDCGroupStatus, *conditions.Set) {
	set := conditions.New(g.Status.Conditions, g.Generation, now)
	p.Dependencies.SetCondition("PDGroup "+g.PDGroupName()+" and a TiKVGroup of it are Ready", set)
	// One capture copies what all would; how many do is for UpToDate.
	serving := slices.ContainsFunc(s.Instances, member.WasReady)
	return v1alpha1.TiCDCGroupStatus{GroupStatus: groupstatus.Report(g, s, p.Plan, groupstatus.Work{Acted: outcome, Serving: serving}, set)}, set
}

// reportMembers reports every Instance's capture.
func reportMembers(g *v1alpha1.TiCDCGroup, s observation.Snapshot, p groupPlan, now time.Time) []groupstatus.Member {
	return stateless.Report(g, s.Instances, p.Drained, v1alpha1.PortTiCDC, now)
}
