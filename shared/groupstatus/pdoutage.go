package groupstatus

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// pdOutageLimit is how long PD may fail to answer before a group that was Ready is
// not any more: a change of PD's leader takes some seconds.
const pdOutageLimit = 30 * time.Second

// ToleratesPDOutage reports whether a group of which PD says nothing may still be depended
// on, and when to look again. condition is the one that is Unknown because of
// it.
func ToleratesPDOutage(set *conditions.Set, condition string, now time.Time) (bool, step.Outcome) {
	unknown := set.Get(condition)
	if set.Was(v1alpha1.ConditionReady) {
		if left := pdOutageLimit - now.Sub(unknown.LastTransitionTime.Time); left > 0 {
			return true, step.RetryAfter(left, unknown.Reason, unknown.Message)
		}
	}
	return false, step.Wait("PD", member.WaitDeadline, unknown.Reason, unknown.Message)
}

// WithDeadline is how a reconcile ends whose plan ended with planned, when the group
// may stop serving unless PD speaks: what is unsure is looked at in time, whatever
// else is waited for.
func WithDeadline(g v1alpha1.Group, planned, unsure step.Outcome) step.Outcome {
	if g.GetComponentSpec().Suspended || g.GetDeletionTimestamp() != nil {
		return planned
	}
	if planned.Kind == step.KindDone {
		return unsure
	}
	if unsure.After > 0 && (planned.After == 0 || unsure.After < planned.After) {
		planned.After = unsure.After
	}
	return planned
}
