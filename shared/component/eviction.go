package component

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// LeaderEvictor is implemented by a Component whose members lead, and can do without.
// Everything is pure.
//
// A user may keep leaders off a member that goes on running, by an annotation on its
// Instance. No pod is stopped and no Lease is needed, and it stays in force while the
// member is restarted for another reason. The annotation with the verb Evict reports what is
// left of it in PD.
type LeaderEvictor interface {
	// PlanEviction says how far a member is on its way to lead nothing, because a user
	// asks, or to lead again, because he does not ask any more.
	PlanEviction(i *v1alpha1.Instance) Eviction
}

// Eviction is how far a member is on its way to lead nothing, or to lead again.
type Eviction struct {
	// Calls to make now, unless something else is done to the member. Each is harmless
	// when repeated. UndoPreparation returns those that undo them.
	Calls []Call
	// Marked says that the Instance carries the annotation, because something of this is
	// or will be left in the database.
	Marked bool
	// Done says that the member leads nothing.
	Done bool
	// Blocked says that the member leads because no other one can: a user has to help.
	Blocked bool
	// Wait says what is waited for while it is not Done.
	Wait step.Outcome
}
