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

// OnPD opens when the PDGroup of a group is Ready.
func OnPD(name string, pd *v1alpha1.PDGroup) Dependencies {
	return Dependencies{PDGroup(name, pd), v1alpha1.ReasonWaitingForPDGroup}
}

// OnTiKV opens when the PDGroup of a group is Ready and one of its TiKVGroups.
func OnTiKV(name string, pd *v1alpha1.PDGroup, groups []*v1alpha1.TiKVGroup) Dependencies {
	if first := OnPD(name, pd); !first.Open {
		return first
	}
	return Dependencies{AnyTiKVGroup(name, groups), v1alpha1.ReasonWaitingForTiKVGroup}
}

// Put sets DependenciesReady: whether the groups that this one waits for are Ready. ready
// is the message when they are.
func (d Dependencies) Put(ready string, set *conditions.Set) {
	if d.Open || d.Lagging && set.Was(v1alpha1.ConditionDependenciesReady) {
		set.True(v1alpha1.ConditionDependenciesReady, v1alpha1.ReasonDependenciesReady, ready)
		return
	}
	set.False(v1alpha1.ConditionDependenciesReady, d.Reason, d.Message)
}
