package disruption

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/names"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/rollout"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// mayWaitLonger records that a disruption is held back by something that passes by itself,
// and reports whether that has not taken too long yet.
func mayWaitLonger(task planner, d component.Disruption) bool {
	task.Unsafe = &d
	return task.Snapshot.Hold.Instance == "" || task.Snapshot.Now.Sub(task.Snapshot.Hold.Since) < transientTimeout
}

// checkStart says why a disruption may not begin, whichever member holds the Lease; Done if it may.
func checkStart(task planner, d component.Disruption) step.Outcome {
	if hold := rollout.CheckUserHolds(task.Group, task.plannedSnapshot(), task.Rendering, d, task.Target.Hash); hold.Kind != step.KindDone {
		return hold
	}
	if may := comesBack(task.Group, task.Snapshot, d); !may.IsAllowed() {
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not disrupted (%s): %s", d.Instance.Name, d.Why, may.Reason()))
	}
	if may := verdict.RequireAll(task.Rendering.Component.Allows(d), task.Rendering.Component.AllowsNow(d)); !may.IsAllowed() {
		if task.Unsafe == nil {
			task.Unsafe = &d
		}
		return step.Wait("PD", unsafeDeadline, v1alpha1.ReasonUnsafe, fmt.Sprintf("Instance %s is not disrupted yet (%s): %s", d.Instance.Name, d.Why, may.Reason()))
	}
	if name := task.Snapshot.UnfinishedBatchMember(d.Instance); name != "" && task.Rendering.Component.NeedsLease(d) {
		return step.Wait("Instance", member.WaitDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for Instance %s, which was restarted together with one that is gone", d.Instance.Name, d.Why, name))
	}
	return step.Done()
}

// comesBack says whether a member would come back from a restart. A claim that is being deleted goes with its pod,
// which the instance operator does not stop, and a node that does not answer stops none: the Lease is left to
// others. Claims of volumes that the spec does not have any more do not count.
func comesBack(g v1alpha1.Group, s observation.Snapshot, d component.Disruption) verdict.Verdict {
	i := d.Instance
	if d.Verb != member.Restart || i.DeletionTimestamp != nil {
		return verdict.Allow()
	}
	if member.IsUnreachable(i) && !member.IsStopPending(i) {
		return verdict.Refusef("the node of Instance %s does not answer, and does not stop its pod: kubectl get node %s", i.Name, i.Status.NodeName)
	}
	claims := s.Claims[i.Name]
	wanted := func(c metav1.ObjectMeta) bool {
		return slices.ContainsFunc(g.GetComponentSpec().Volumes, func(v v1alpha1.Volume) bool { return names.Claim(v.Name, i.Name) == c.Name })
	}
	at := slices.IndexFunc(claims, func(c metav1.ObjectMeta) bool { return c.DeletionTimestamp != nil && wanted(c) })
	if at < 0 {
		return verdict.Allow()
	}
	return verdict.Refusef("claim %s is being deleted, and would go with its pod: replace the member with its data: kubectl delete instance %s -n %s", claims[at].Name, i.Name, i.Namespace)
}

// checkLease says which member a disruption has to wait for; Done if the Lease is free.
func checkLease(g v1alpha1.Group, s observation.Snapshot, d component.Disruption) step.Outcome {
	if s.Lease.IsFree() || s.HolderLost {
		return step.Done()
	}
	return step.Wait("Lease", leaseDeadline, v1alpha1.ReasonWaitingForLease, fmt.Sprintf("Instance %s (%s) waits for %s to be done: kubectl -n %s get lease %s",
		d.Instance.Name, d.Why, s.Lease.Holder, g.GetNamespace(), lease.Name(g.PDGroupName())))
}

// unsafeDeadline is how soon something that was not safe is looked at again: no watch
// reports a region that catches up.
const unsafeDeadline = time.Second

// transientTimeout is how long the Lease is kept for something that passes by itself.
const transientTimeout = 30 * time.Second

// leaseDeadline is how soon a held Lease is looked at again without an event: its holder
// may not exist any more.
const leaseDeadline = 15 * time.Second

// inTurn refuses what would give a member a new revision before its group's turn, while a
// group that comes first waits for the Lease. A member whose
// pod may already be stopped for another revision keeps the Lease until it has been.
func inTurn(g v1alpha1.Group, s observation.Snapshot, r component.Rendering, due ...component.Disruption) verdict.Verdict {
	if r.RollGate.Open || !isEarlierGroupWaiting(g, s) {
		return verdict.Allow()
	}
	for _, d := range due {
		rolls := d.Verb == member.Restart && d.Instance.DeletionTimestamp == nil && d.Instance.Spec.Revision != d.Revision
		if rolls && !member.IsStopPending(d.Instance) && !r.Component.IsNotServing(d.Instance) {
			return verdict.Refuse(r.RollGate.Message)
		}
	}
	return verdict.Allow()
}

// isEarlierGroupWaiting reports whether a group that comes before this one waits for the
// Lease.
func isEarlierGroupWaiting(g v1alpha1.Group, s observation.Snapshot) bool {
	return slices.ContainsFunc(s.Groups, func(other v1alpha1.Group) bool {
		c := meta.FindStatusCondition(other.GetGroupStatus().Conditions, v1alpha1.ConditionUpToDate)
		return rollout.IsBefore(other.GroupKind(), g.GroupKind()) && other.GetDeletionTimestamp() == nil &&
			c != nil && c.Status == metav1.ConditionFalse && c.Reason == v1alpha1.ReasonWaitingForLease
	})
}
