package controller

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/logbackup"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/budget"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/placement"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// groupPlan is a group.Plan and what TiKV alone adds to it.
type groupPlan struct {
	planning.Plan
	// Start is what the first pod, and each that is added, waits for.
	Start gate.Dependencies
	// Labels to set in PD.
	Labels []placement.LabelChange
	// Flushes are the stores that are to write their log backups out.
	Flushes []logbackup.Order
	// Hold is for how long a restart has not been safe.
	Hold observation.Hold
	// Orders to running stores, to take a changed configuration.
	Orders []settings.Order
}

// makePlan decides what to do about a TiKVGroup. It is pure.
func makePlan(g *v1alpha1.TiKVGroup, s observation.Snapshot) (groupPlan, error) {
	template, files, problems := buildTemplate(g, s.Image)
	members := storesOf(g, s)
	start := gate.CheckDependencies(g, s.PDGroup, s.TiKVGroups)
	judge := settings.Judge{Table: statusport.SettingsTable(), Group: g, Policy: g.Spec.ConfigUpdate, Running: s.Running, Now: s.Now}
	children, err := group.MakePlan(g, s, component.Rendering{
		Template: template, Problems: problems, Files: files,
		Inputs:         collectInputs(g),
		Services:       renderServices(g),
		Gate:           start.Result,
		GateReason:     start.Reason,
		ReadinessGates: []string{v1alpha1.ConditionJoined, v1alpha1.ConditionHealthy},
		ClaimLoss:      v1alpha1.HoldOnClaimLoss,
		OnlineConfig:   judge,
		Component:      members,
		ComponentFor: func(now pd.View) component.Component {
			later := s
			later.PD = now
			return storesOf(g, later)
		},
		DatabaseUnknown: !members.TrustPD.IsAllowed(),
		RollGate:        rollout.RollGate(g, s), MaySuspend: rollout.MaySuspend(g, s), Budget: budget.SharedBudget(g, s),
		Extra: members.ExtraMembers(), AwaitedSlots: storestate.SlotsWithoutInstance(members.State), Spread: members.Spread(&template, g.Spec.StoreLabels),
	})
	p := groupPlan{Plan: children, Start: start}
	p.Calls, p.Flushes = splitFlushes(g, s, p.Calls)
	undoOrphaned(g, members, &p.Plan)
	if err != nil || g.DeletionTimestamp != nil {
		return p, err
	}
	p.Outcome = members.ReportFailover(step.Worst(p.Outcome, storestate.StallOnMismatch(members.Stores)))
	if !g.Spec.Paused && p.Outcome.Kind != step.KindStall {
		p.Labels = placement.LabelChanges(s, members.Stores, g.Spec.StoreLabels, placement.OperatorLabels(g))
		p.Outcome = step.Worst(p.Outcome, placement.LabelsPending(p.Labels))
	}
	p.Orders = judge.Orders(p.ConfigUpdates)
	p.Outcome = members.StallIfOverdue(p.Unsafe, step.Worst(p.Outcome, p.ConfigOutcome, p.EvictionOutcome))
	if p.Unsafe != nil {
		p.Hold = s.Hold.Next(s.Now, p.Unsafe.Instance.Name, members.RegionsAtRisk(p.Unsafe.Instance))
	}
	return p, nil
}

// undoOrphaned has PD forget what was begun with a member that is gone. The Lease stays as it
// is until PD has, also while the group is paused: a user may do it meanwhile.
func undoOrphaned(g *v1alpha1.TiKVGroup, members stores, p *planning.Plan) {
	calls, unknown := members.UndoOrphaned()
	if g.DeletionTimestamp != nil || len(calls) == 0 && !unknown {
		return
	}
	p.Lease = planning.LeaseChange{}
	if g.Spec.Paused {
		return
	}
	p.Calls = append(p.Calls, calls...)
	if len(calls) > 0 {
		p.Outcome = step.Worst(p.Outcome, step.Wait("PD", pdDeadline, v1alpha1.ReasonRecovering, fmt.Sprintf("store %s (%s), whose Instance is gone, will lead again", calls[0].Target, calls[0].Instance)))
	}
}

// splitFlushes takes the orders to stores out of those to PD.
func splitFlushes(g *v1alpha1.TiKVGroup, s observation.Snapshot, calls []component.Call) ([]component.Call, []logbackup.Order) {
	var rest []component.Call
	var out []logbackup.Order
	for _, c := range calls {
		if c.Verb != flushLogBackups {
			rest = append(rest, c)
			continue
		}
		i := s.Instance(c.Instance)
		out = append(out, logbackup.Order{
			Group: g, Instance: i.Name, StoreID: c.Target, Pod: i.Status.PodUID, Since: s.Lease.Since, Host: i.Status.PodIP, Within: flushTimeout,
		})
	}
	return rest, out
}
