package component

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// Disruption is a member that is to be stopped on purpose, and why.
type Disruption struct {
	// Instance of the member.
	Instance *v1alpha1.Instance
	// Verb is what is to be done.
	Verb member.Verb
	// Why it is to be done.
	Why string
	// Revision that the members of the group are to have.
	Revision string
}

// Preparation is how far a member is on its way to be stopped, or back.
type Preparation struct {
	// Calls to make now, in this order. They are made again until the database
	// says that they have had their effect: each must be harmless when repeated.
	Calls []Call
	// Ready says that nothing is left to be done or waited for.
	Ready bool
	// Stays says, of a member that is Ready to be removed, that it does not leave
	// the database after all: its Instance is let go, and made anew in the same
	// slot with the same claims.
	Stays bool
	// Suspend says that the pod of a member that is to be removed has to stop
	// before it is known that it has left.
	Suspend bool
	// Wait says what is waited for while it is not Ready; if it is, what was given
	// up.
	Wait step.Outcome
}

// Component is what the planner of disruptions asks about members of one kind.
// All of it is pure.
type Component interface {
	// NotServing reports that a member adds nothing to its database now, because it
	// does not work: it may be restarted at any moment, without the Lease, so
	// that every mistake can be undone.
	NotServing(i *v1alpha1.Instance) bool
	// Rank orders members of which one is to be disrupted; the lowest is first.
	Rank(d Disruption) int
	// NeedsLease reports whether a disruption needs the cluster's Lease.
	NeedsLease(d Disruption) bool
	// WhyUnsafe says why a member must not be stopped now, or why its removal must not
	// begin; empty if it may. It is asked before the Lease is taken and again
	// before the pod is stopped.
	WhyUnsafe(d Disruption) string
	// WhyNotYet says why a member must not be stopped at this moment by what passes by
	// itself, as a rule within seconds; empty if it may. It is asked where Safe is, but
	// for the time in which the member is prepared: what is done then causes some of it.
	WhyNotYet(d Disruption) string
	// Prepare makes a member safe to stop or, for Remove, takes it out of the
	// database. begun is when the Lease was taken, zero without one.
	Prepare(d Disruption, begun time.Time) Preparation
	// Recover gives a restarted member back what was moved away from it. held is
	// the Lease, which is given back when it is Ready.
	Recover(i *v1alpha1.Instance, held lease.State) Preparation
	// UndoPreparation returns the calls that take back what an earlier preparation has
	// left for a member that is not being disrupted.
	UndoPreparation(i *v1alpha1.Instance) []Call
	// LeaderCount is how many leaders a member has, to be waited for afterwards.
	LeaderCount(i *v1alpha1.Instance) int
	// WhyRefused says why members cannot be removed by a scale-in, all of them
	// together; empty if they can. It is asked before the first side effect.
	WhyRefused(victims []*v1alpha1.Instance) string
	// MaxConcurrentRemovals bounds how many members leave the database at the same time.
	MaxConcurrentRemovals() int
	// RestartsWhenDeleted reports whether a member that is being deleted comes back in its
	// slot with its data and serves until then, so that it is stopped with the care
	// of a restart.
	RestartsWhenDeleted(i *v1alpha1.Instance) bool
	// ReplacedWhenDeleted reports whether a member that is being deleted is replaced by a
	// new one in another slot before it has gone.
	ReplacedWhenDeleted(i *v1alpha1.Instance) bool
	// WhyDead says why a member will never come back and is to be replaced now;
	// empty if it is not to be.
	WhyDead(i *v1alpha1.Instance) string
}
