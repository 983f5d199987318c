package component

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// A person may have a member lead nothing although it goes on running, by an
// annotation on its Instance. It is no disruption: no pod is stopped, no Lease is
// needed, and it stands while the member is restarted for something else. What is
// left in PD of it is known by the mark Evict, as of any disruption.

// LeaderEvictor is implemented by a Component whose members lead, and can do without. All of
// it is pure.
type LeaderEvictor interface {
	// PlanEviction says how far a member is on its way to lead nothing because a person asks,
	// or to lead again because he does not any more.
	PlanEviction(i *v1alpha1.Instance) Eviction
}

// Eviction is how far a member is on its way to lead nothing, or back.
type Eviction struct {
	// Calls to make now, unless something else is done to the member. Each is harmless
	// when repeated. Sweep has those that take it back.
	Calls []Call
	// Marked says that the Instance carries the mark, because something of this is or
	// will be left in the database.
	Marked bool
	// Done says that the member leads nothing.
	Done bool
	// Blocked says that it leads although it is not to, for nobody else can: a person
	// has to help.
	Blocked bool
	// Wait says what is waited for while it is not Done.
	Wait step.Outcome
}
