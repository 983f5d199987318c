package componenttest

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Clean is a component without anything to take back.
type Clean struct{ Removable }

// UndoPreparation implements component.Component.
func (Clean) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

// ReasonDead implements component.Component.
func (Clean) ReasonDead(*v1alpha1.Instance) verdict.Reason { return verdict.Reason{} }

// Needed is a Component whose members are all needed and may be stopped.
type Needed struct{ component.Component }

// IsNotServing implements component.Component.
func (Needed) IsNotServing(*v1alpha1.Instance) bool { return false }

// Allows implements component.Component.
func (Needed) Allows(component.Disruption) verdict.Verdict { return verdict.Allow() }

// AllowsNow implements component.Component.
func (Needed) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

// NeedsLease implements component.Component.
func (Needed) NeedsLease(component.Disruption) bool { return true }

// Rank implements component.Component.
func (Needed) Rank(component.Disruption) int { return 0 }

// LeaderCount implements component.Component.
func (Needed) LeaderCount(*v1alpha1.Instance) int { return 7 }

// IsReplacedWhenDeleted implements component.Component.
func (Needed) IsReplacedWhenDeleted(*v1alpha1.Instance) bool { return false }

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

// AllowsRemoval implements component.Component.
func (Removable) AllowsRemoval([]*v1alpha1.Instance) verdict.Verdict { return verdict.Allow() }

// MaxConcurrentRemovals implements component.Component.
func (Removable) MaxConcurrentRemovals() int { return 1 }

// RestartsWhenDeleted implements component.Component.
func (Removable) RestartsWhenDeleted(*v1alpha1.Instance) bool { return false }
