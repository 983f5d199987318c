package component

import (
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Disruption is the plan to stop or remove a member, and why.
type Disruption struct {
	// Instance of the member.
	Instance *v1alpha1.Instance
	// Verb is what is done to it.
	Verb member.Verb
	// Why it is done.
	Why string
	// Revision that the members of the group are to have.
	Revision string
}

// Preparation is how far a member is on its way to be stopped or removed, or back from it.
type Preparation struct {
	// Calls to make now, in this order. They are repeated until the database shows their
	// effect, so each must be harmless when repeated.
	Calls []Call
	// Ready says that nothing is left to do or to wait for.
	Ready bool
	// Stays says that a member which is ready to be removed stays in the database after
	// all: its Instance may go, and is created again in the same slot with the same
	// claims.
	Stays bool
	// Suspend says that the pod of a member has to stop before it is known that the member
	// has left.
	Suspend bool
	// Wait says what is waited for. When Ready, it says what was given up.
	Wait step.Outcome
}

// Component answers what the planner asks about members of one kind. Everything is pure. What
// may be done is a Verdict, which refuses unless it was judged.
type Component interface {
	// IsNotServing reports that a member does not work and so adds nothing to its database.
	// It may be restarted at any moment and without the Lease, so that every mistake can
	// be undone.
	IsNotServing(i *v1alpha1.Instance) bool
	// Rank orders the members of which one is to be disrupted: the lowest is first.
	Rank(d Disruption) int
	// NeedsLease reports whether a disruption needs the Lease of the cluster.
	NeedsLease(d Disruption) bool
	// Allows says whether a member may be stopped, or its removal may begin. It is asked before the Lease is taken, and again before the pod is stopped.
	Allows(d Disruption) verdict.Verdict
	// AllowsNow says whether this is the moment to stop a member: what is in the way passes by
	// itself, as a rule within seconds. It is asked where Allows is, but not while the
	// member is prepared: the preparation causes some of it.
	AllowsNow(d Disruption) verdict.Verdict
	// Prepare makes a member safe to stop or, for Remove, takes it out of the database.
	// begun is when the Lease was taken, zero without one.
	Prepare(d Disruption, begun time.Time) Preparation
	// Recover gives a restarted member back what was moved away from it. held is the
	// Lease, which is released when the Preparation is Ready.
	Recover(i *v1alpha1.Instance, held lease.State) Preparation
	// UndoPreparation returns the calls that undo what an earlier preparation has left in
	// the database, for a member that is not being disrupted.
	UndoPreparation(i *v1alpha1.Instance) []Call
	// LeaderCount is how many leaders a member has. They are waited for after a restart.
	LeaderCount(i *v1alpha1.Instance) int
	// AllowsRemoval says whether a scale-in can remove members, all of them together. It is
	// asked before the first side effect.
	AllowsRemoval(leaving []*v1alpha1.Instance) verdict.Verdict
	// MaxConcurrentRemovals bounds how many members leave the database at the same time.
	MaxConcurrentRemovals() int
	// RestartsWhenDeleted reports whether a member whose Instance is being deleted serves,
	// and comes back in its slot with its data. It is stopped with the care of a restart.
	RestartsWhenDeleted(i *v1alpha1.Instance) bool
	// IsReplacedWhenDeleted reports whether a member whose Instance is being deleted is
	// replaced by a new one in another slot before it has gone.
	IsReplacedWhenDeleted(i *v1alpha1.Instance) bool
	// ReasonDead says why a member never comes back and is to be replaced now, if that is
	// known.
	ReasonDead(i *v1alpha1.Instance) verdict.Reason
}
