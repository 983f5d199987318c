package group

import (
	"fmt"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// forgets has PD forget what was begun with a store whose Instance is gone before a
// member of another kind takes the Lease from it: the Lease alone tells that it was
// the operators who keep leaders away from it, and from its companions (KV-15). Its
// own kind does so by itself, if any of its groups is left and is not paused. PD
// itself may take the Lease when it does not speak: it may have to be mended.
func forgets(plan *Plan, g v1alpha1.Group, s Snapshot, d Disruption) step.Outcome {
	held := s.Lease
	if !s.HolderLost || held.Holder.Kind != v1alpha1.KindTiKVGroup || held.Holder.Kind == g.GroupKind() {
		return step.Done()
	}
	if s.PD.Err != nil && g.GroupKind() != v1alpha1.KindPDGroup {
		return step.Wait("PD", waitDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for PD to say whether it keeps leaders away from the store of %s, which is gone: %v", d.Instance.Name, d.Why, held.Holder, s.PD.Err))
	}
	calls := Leftovers(s.PD, held)
	if len(calls) == 0 {
		plan.recheckForgotten(s)
		return step.Done()
	}
	plan.Calls = append(plan.Calls, calls...)
	return step.Wait("PD", waitDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for store %s (%s) to be let lead again: %s, which was disrupted, is gone", d.Instance.Name, d.Why, calls[0].Target, calls[0].Instance, held.Holder))
}

// recheckForgotten notes that PD keeps leaders away from no store whose Lease is
// given on, its holder being gone: what was ordered last may be younger than the poll.
// While PD is known to, it is told not to, and that must not wait.
func (p *Plan) recheckForgotten(s Snapshot) {
	held := s.Lease
	if held.Holder.Kind != v1alpha1.KindTiKVGroup || s.PD.Err != nil || len(Leftovers(s.PD, held)) > 0 {
		return
	}
	p.rechecks = append(p.rechecks, recheck{held.Holder.Instance, func(now pd.View) string {
		if now.Err != nil {
			return fmt.Sprintf("PD does not say whether it keeps leaders away from its store: %v", now.Err)
		}
		if calls := Leftovers(now, held); len(calls) > 0 {
			return fmt.Sprintf("PD keeps leaders away from store %s (%s)", calls[0].Target, calls[0].Instance)
		}
		return ""
	}})
}

// Leftovers are the calls that let the stores of a Lease's holder and of its
// companions lead again, from which PD takes their leaders.
func Leftovers(view pd.View, held lease.State) (calls []Call) {
	for _, store := range view.Stores {
		if pod, _, _ := strings.Cut(store.Address, "."); held.Names(pod) && view.Evicts(store.ID) {
			calls = append(calls, Call{Verb: StopEvictingLeaders, Target: store.ID, Instance: pod})
		}
	}
	return calls
}
