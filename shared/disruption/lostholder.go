package disruption

import (
	"fmt"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// undoForLostHolder has PD undo what was prepared for a store that leads regions and whose Instance is gone,
// before a member of another kind takes the Lease: the Lease alone reports that it was the operators that keep
// leaders off that store, and off those of its batch (KV-15). A group of its kind does so by itself, if one is
// left and not paused. PD may take the Lease while PD does not answer: it may be what has to be repaired.
func undoForLostHolder(task planner, d component.Disruption) step.Outcome {
	held := task.Snapshot.Lease
	if !task.Snapshot.HolderLost || !v1alpha1.LeadsRegions(held.Holder.Kind) || held.Holder.Kind == task.Group.GroupKind() {
		return step.Done()
	}
	if task.Snapshot.PD.Err != nil && task.Group.GroupKind() != v1alpha1.KindPDGroup {
		return step.Wait("PD", member.WaitDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for PD to say whether it keeps leaders away from the store of %s, which is gone: %v", d.Instance.Name, d.Why, held.Holder, task.Snapshot.PD.Err))
	}
	calls := StopEvictingCalls(task.Snapshot.PD, held)
	if len(calls) == 0 {
		recheckLostHolder(task)
		return step.Done()
	}
	task.Calls = append(task.Calls, calls...)
	return step.Wait("PD", member.WaitDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for store %s (%s) to be allowed leaders again: %s, which was disrupted, is gone", d.Instance.Name, d.Why, calls[0].Target, calls[0].Instance, held.Holder))
}

// recheckLostHolder records that PD keeps leaders off no store of a Lease whose holder is
// gone: the last order may be younger than the last poll. If PD is known to, it is ordered to
// stop, and that must not wait.
func recheckLostHolder(task planner) {
	held := task.Snapshot.Lease
	if !v1alpha1.LeadsRegions(held.Holder.Kind) || task.Snapshot.PD.Err != nil || len(StopEvictingCalls(task.Snapshot.PD, held)) > 0 {
		return
	}
	task.Rechecks = append(task.Rechecks, planning.Recheck{Instance: held.Holder.Instance, Still: func(now pd.View) verdict.Verdict {
		if now.Err != nil {
			return verdict.Refusef("PD does not say whether it keeps leaders away from its store: %v", now.Err)
		}
		if calls := StopEvictingCalls(now, held); len(calls) > 0 {
			return verdict.Refusef("PD keeps leaders away from store %s (%s)", calls[0].Target, calls[0].Instance)
		}
		return verdict.Allow()
	}})
}

// StopEvictingCalls are the calls that let the stores of a Lease's holder and its batch lead
// again.
func StopEvictingCalls(view pd.View, held lease.State) (calls []component.Call) {
	for _, store := range view.Stores {
		if pod := store.PodName(); held.NamesInstance(pod) && view.MayEvictLeaders(store.ID) {
			calls = append(calls, component.Call{Verb: component.StopEvictingLeaders, Target: store.ID, Instance: pod})
		}
	}
	return calls
}
