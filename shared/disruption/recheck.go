package disruption

import (
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// irreversibleVerbs lists the orders to PD that cannot be undone.
func irreversibleVerbs() []component.CallVerb {
	return []component.CallVerb{component.DeleteMember, component.DeleteStore}
}

// addRecheck records what a step about an Instance rests on: still says, by the component
// as PD answers right before, whether the step may still be done. A component that
// does not depend on PD is not asked again.
func addRecheck(task planner, instance string, still func(now component.Component) verdict.Verdict) {
	if task.Rendering.ComponentFor == nil {
		return
	}
	task.Rechecks = append(task.Rechecks, planning.Recheck{Instance: instance, Still: func(now pd.View) verdict.Verdict { return still(task.Rendering.ComponentFor(now)) }})
}

// recheckPreparation records what a preparation rests on, if what follows from it cannot
// be undone: the permission to stop, the report that a member has left, or an order to
// remove it.
func recheckPreparation(task planner, d component.Disruption, begun time.Time, planned component.Preparation) {
	stops := planned.Suspend || planned.Ready && (d.Verb == member.Restart || !planned.Stays && !member.IsDrained(d.Instance))
	removes := slices.ContainsFunc(planned.Calls, func(c component.Call) bool { return slices.Contains(irreversibleVerbs(), c.Verb) })
	if !stops && !removes {
		return
	}
	addRecheck(task, d.Instance.Name, func(now component.Component) verdict.Verdict {
		if may := verdict.RequireAll(now.Allows(d), now.AllowsNow(d)); !may.IsAllowed() && now.NeedsLease(d) {
			return may
		}
		if again := now.Prepare(d, begun); again.Ready != planned.Ready || !slices.Equal(again.Calls, planned.Calls) {
			return verdict.Refuse("PD's state has changed")
		}
		return verdict.Allow()
	})
}

// recheckRecovery records that a member has recovered: the next disruption depends on it.
func recheckRecovery(task planner, i *v1alpha1.Instance, held lease.State) {
	addRecheck(task, i.Name, func(now component.Component) verdict.Verdict {
		if !now.Recover(i, held).Ready {
			return verdict.Refuse("it has not recovered yet")
		}
		return verdict.Allow()
	})
}

// recheckWithdrawnRemoval records that nothing is left to undo of a removal that was
// withdrawn.
func recheckWithdrawnRemoval(task planner, i *v1alpha1.Instance) {
	addRecheck(task, i.Name, func(now component.Component) verdict.Verdict {
		if HasLeftovers(now, i) {
			return verdict.Refuse("its removal is still to be taken back")
		}
		return verdict.Allow()
	})
}

// RecheckUndone has PD say again that nothing is left of what was prepared for a member. Its
// annotation goes, and the last answer of PD may be older than the last order to it.
func RecheckUndone(in planning.Inputs, i *v1alpha1.Instance) []planning.Recheck {
	if in.Rendering.ComponentFor == nil || in.Group.GroupKind() == v1alpha1.KindPDGroup {
		return nil // PD leaves nothing of a member, and is not to be waited for
	}
	return []planning.Recheck{{Instance: i.Name, Still: func(now pd.View) verdict.Verdict {
		if now.Err != nil || HasLeftovers(in.Rendering.ComponentFor(now), i) {
			return verdict.Refuse("what was begun with it is still to be taken back")
		}
		return verdict.Allow()
	}}}
}

// recheckNotServing records that a member does not serve and is stopped for that alone: it
// may have come back since.
func recheckNotServing(task planner, i *v1alpha1.Instance) {
	addRecheck(task, i.Name, func(now component.Component) verdict.Verdict {
		if !now.IsNotServing(i) {
			return verdict.Refuse("it works again")
		}
		return verdict.Allow()
	})
}

// recheckDead records that a member never comes back.
func recheckDead(task planner, i *v1alpha1.Instance) {
	addRecheck(task, i.Name, func(now component.Component) verdict.Verdict {
		if !now.ReasonDead(i).IsGiven() {
			return verdict.Refuse("it is not dead after all")
		}
		return verdict.Allow()
	})
}

// HasLeftovers reports whether something that was prepared for a member is still to be
// undone, or cannot be any more.
func HasLeftovers(c component.Component, i *v1alpha1.Instance) bool {
	return len(c.UndoPreparation(i)) > 0 || c.ReasonDead(i).IsGiven()
}

// recheckBatch records what the permission for a batch to stop rests on.
func recheckBatch(task planner, all []*v1alpha1.Instance, due []component.Disruption, begun time.Time) {
	addRecheck(task, all[0].Name, func(now component.Component) verdict.Verdict {
		t, able := now.(component.BatchRestarter)
		if !able {
			return verdict.Refuse("it is not restarted with others")
		}
		if may := verdict.RequireAll(t.AllowsBatch(all), t.AllowsBatchNow(all)); !may.IsAllowed() {
			return may
		}
		for _, d := range due {
			if !now.IsNotServing(d.Instance) && !now.Prepare(d, begun).Ready {
				return verdict.Refuse("PD's state has changed")
			}
		}
		return verdict.Allow()
	})
}
