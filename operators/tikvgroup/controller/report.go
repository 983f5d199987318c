package controller

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/groupstatus"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/store"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// reportStatus computes the status of a TiKVGroup and how the reconcile ends. It is
// pure.
func reportStatus(g *v1alpha1.TiKVGroup, s observation.Snapshot, p groupPlan, outcome step.Outcome, now time.Time) (v1alpha1.TiKVGroupStatus, *conditions.Set, step.Outcome) {
	set := conditions.New(g.Status.Conditions, g.Generation, now)
	status := v1alpha1.TiKVGroupStatus{}
	p.Start.SetCondition("PDGroup "+g.PDGroupName()+" is Ready", set)
	matches := storesOf(g, s).Stores
	store.PutHealth(g, s, matches, p.Start, set)
	store.PutHolding(g, s, matches, set)
	status.Stores = g.Status.Stores
	if storestate.TrustPD(g, s).IsAllowed() || len(s.Instances) == 0 {
		status.Stores = storestate.Statuses(matches)
	}
	serving, unsure := store.IsServing(g, s, set, now)
	p.Outcome = step.Worst(groupstatus.WithDeadline(g, p.Outcome, unsure), storestate.WaitForMajority(g, s))
	status.GroupStatus = groupstatus.Report(g, s, p.Plan, groupstatus.Work{Acted: outcome, Serving: serving}, set)
	end := step.Worst(outcome, p.Outcome)
	if s.CatchesUp(g) { // nothing tells when it is over
		end = step.Worst(end, step.RetryAfter(pdDeadline, v1alpha1.ReasonRecovering, "a store that was away catches up"))
	}
	return status, set, end
}

// reportMembers reports every Instance's store as PD lists it. While PD cannot be
// asked nothing new is known, and what was reported last is left standing.
func reportMembers(g *v1alpha1.TiKVGroup, s observation.Snapshot, p groupPlan, now time.Time) []groupstatus.Member {
	return storestate.Members(storesOf(g, s).Stores, p.Drained, p.Waiting, now)
}
