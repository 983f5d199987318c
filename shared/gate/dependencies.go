package gate

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
)

// Dependencies is what a group waits for before its first pod starts.
type Dependencies struct {
	Result
	// Reason of the wait.
	Reason string
}

// CheckDependencies opens when the PDGroup of a group is Ready and, if its component needs TiKV, one of the
// PDGroup's TiKVGroups.
func CheckDependencies(g v1alpha1.Group, pd *v1alpha1.PDGroup, tikv []*v1alpha1.TiKVGroup) Dependencies {
	first := Dependencies{PDGroup(g.PDGroupName(), pd), v1alpha1.ReasonWaitingForPDGroup}
	if info, _ := v1alpha1.LookupComponent(g.GroupKind()); !first.Open || !info.NeedsTiKV {
		return first
	}
	return Dependencies{AnyTiKVGroup(g.PDGroupName(), tikv), v1alpha1.ReasonWaitingForTiKVGroup}
}

// SetCondition sets DependenciesReady: whether the groups that this one waits for are Ready. ready
// is the message when they are.
func (d Dependencies) SetCondition(ready string, set *conditions.Set) {
	if d.Open || d.Lagging && set.Was(v1alpha1.ConditionDependenciesReady) {
		set.MarkTrue(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonDependenciesReady, ready)
		return
	}
	set.MarkFalse(v1alpha1.ConditionDependenciesReady, d.Reason, d.Message)
}
