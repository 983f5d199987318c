package componenttest

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
)

// Clean is a component without anything to take back.
type Clean struct{ Removable }

// UndoPreparation implements component.Component.
func (Clean) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

// WhyDead implements component.Component.
func (Clean) WhyDead(*v1alpha1.Instance) string { return "" }

// Needed is a Component whose members are all needed and may be stopped.
type Needed struct{ component.Component }

// NotServing implements component.Component.
func (Needed) NotServing(*v1alpha1.Instance) bool { return false }

// WhyUnsafe implements component.Component.
func (Needed) WhyUnsafe(component.Disruption) string { return "" }

// WhyNotYet implements component.Component.
func (Needed) WhyNotYet(component.Disruption) string { return "" }

// NeedsLease implements component.Component.
func (Needed) NeedsLease(component.Disruption) bool { return true }

// Rank implements component.Component.
func (Needed) Rank(component.Disruption) int { return 0 }

// LeaderCount implements component.Component.
func (Needed) LeaderCount(*v1alpha1.Instance) int { return 7 }

// ReplacedWhenDeleted implements component.Component.
func (Needed) ReplacedWhenDeleted(*v1alpha1.Instance) bool { return false }

// Prepare implements component.Component.
func (Needed) Prepare(component.Disruption, time.Time) component.Preparation {
	return component.Preparation{Ready: true}
}

// Recover implements component.Component.
func (Needed) Recover(*v1alpha1.Instance, lease.State) component.Preparation {
	return component.Preparation{}
}

// ToUndo is a Component that has something to take back of each member.
type ToUndo struct{ Needed }

// UndoPreparation implements component.Component.
func (ToUndo) UndoPreparation(i *v1alpha1.Instance) []component.Call {
	return []component.Call{{Verb: component.RestoreStore, Instance: i.Name}}
}

// Removable lets everything be removed.
type Removable struct{ Needed }

// WhyRefused implements component.Component.
func (Removable) WhyRefused([]*v1alpha1.Instance) string { return "" }

// MaxConcurrentRemovals implements component.Component.
func (Removable) MaxConcurrentRemovals() int { return 1 }

// RestartsWhenDeleted implements component.Component.
func (Removable) RestartsWhenDeleted(*v1alpha1.Instance) bool { return false }
