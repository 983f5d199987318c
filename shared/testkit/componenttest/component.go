package componenttest

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// Clean is a component without anything to take back.
type Clean struct{ Removable }

func (Clean) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

func (Clean) WhyDead(*v1alpha1.Instance) string { return "" }

// Needed is a Component whose members are all needed and may be stopped.
type Needed struct{ component.Component }

func (Needed) NotServing(*v1alpha1.Instance) bool { return false }

func (Needed) WhyUnsafe(component.Disruption) string { return "" }

func (Needed) WhyNotYet(component.Disruption) string { return "" }

func (Needed) NeedsLease(component.Disruption) bool { return true }

func (Needed) Rank(component.Disruption) int { return 0 }

func (Needed) LeaderCount(*v1alpha1.Instance) int { return 7 }

func (Needed) ReplacedWhenDeleted(*v1alpha1.Instance) bool { return false }

func (Needed) Prepare(component.Disruption, time.Time) component.Preparation {
	return component.Preparation{Ready: true}
}

func (Needed) Recover(*v1alpha1.Instance, lease.State) component.Preparation {
	return component.Preparation{}
}

// ToUndo is a Component that has something to take back of each member.
type ToUndo struct{ Needed }

func (ToUndo) UndoPreparation(i *v1alpha1.Instance) []component.Call {
	return []component.Call{{Verb: component.RestoreStore, Instance: i.Name}}
}

// NothingToUndo is one that has nothing to take back.
type NothingToUndo struct{ Needed }

func (NothingToUndo) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

func (NothingToUndo) WhyDead(*v1alpha1.Instance) string { return "" }

// Removable lets everything be removed.
type Removable struct{ Needed }

func (Removable) WhyRefused([]*v1alpha1.Instance) string { return "" }

func (Removable) MaxConcurrentRemovals() int { return 1 }

func (Removable) RestartsWhenDeleted(*v1alpha1.Instance) bool { return false }
