package stateless

import (
	"math"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// Members is the component.Component of members that keep nothing which another one
// needs. No Lease is taken for them: it is enough that as many serve as are asked for.
// Connections are drained by the pod itself, before it ends.
type Members struct {
	// Group of the members.
	Group v1alpha1.Group
	// Seen are its Instances.
	Seen []*v1alpha1.Instance
	// MaxSurge is how many members there may be beyond spec.replicas while others are
	// restarted.
	MaxSurge int32
	// Open says that a member which is started now can serve.
	Open gate.Result
}

var _ component.Component = Members{}

// IsNotServing implements component.Component: a member that does not serve. One on a node
// that does not answer may serve all the same, and if more than one is missed so all may:
// their kubelets have lost the API server.
func (c Members) IsNotServing(i *v1alpha1.Instance) bool {
	switch {
	case member.WasReady(i):
		return false
	case !member.IsUnreachable(i):
		return true
	}
	others := int32(0)
	for _, other := range c.Seen {
		if other.Name != i.Name && other.DeletionTimestamp == nil && !other.Spec.Retire && member.WasReady(other) {
			others++
		}
	}
	return others >= max(c.Group.GetReplicas()-1, 1)
}

// Rank implements component.Component. The newest is restarted first, so that a member
// beyond spec.replicas comes before those that stay. The one removed first is missed
// least: see removalRank.
func (Members) Rank(d component.Disruption) int {
	if d.Verb == member.Remove {
		return removalRank(d.Instance, d.Revision)
	}
	return -int(d.Instance.Spec.Slot)
}

// removalRank orders members of which some are to be removed, the lowest is first: one
// that has no pod, whose node does not answer, that is not ready; of those that
// serve one that is there for a roll only, and one that would have to be restarted
// for the wanted revision.
func removalRank(i *v1alpha1.Instance, wanted string) int {
	serves := member.WasReady(i)
	for rank, holds := range []bool{
		!serves && i.Status.PodUID == "",
		!serves && member.IsUnreachable(i),
		!serves,
		i.Annotations[v1alpha1.AnnotationSurge] != "",
		i.Spec.Revision != wanted,
	} {
		if holds {
			return rank
		}
	}
	return 5
}

// NeedsLease implements component.Component.
func (Members) NeedsLease(component.Disruption) bool { return false }

// Allows implements component.Component: without the given one there are as many members
// as are asked for, or one less if there is to be no surge, and a member that is
// started again finds what it needs. One that was ordered to leave is not counted on.
func (c Members) Allows(d component.Disruption) verdict.Verdict {
	if !c.Open.Open {
		return verdict.Refuse("a member that starts now would not serve: " + c.Open.Message)
	}
	serving, needed := 0, int(c.Group.GetReplicas())
	for _, i := range c.Seen {
		if i.Name != d.Instance.Name && i.DeletionTimestamp == nil && !i.Spec.Retire && member.IsSettled(i) {
			serving++
		}
	}
	if c.MaxSurge == 0 {
		needed = max(needed-1, 0)
	}
	if serving < needed {
		return verdict.Refusef("%d other members serve, %d are needed: kubectl -n %s get instances", serving, needed, c.Group.GetNamespace())
	}
	return verdict.Allow()
}

// AllowsNow implements component.Component.
func (Members) AllowsNow(component.Disruption) verdict.Verdict { return verdict.Allow() }

// Prepare implements component.Component: the database keeps no membership that one
// would have to leave.
func (Members) Prepare(component.Disruption, time.Time) component.Preparation {
	return component.Preparation{Ready: true}
}

// Recover implements component.Component.
func (Members) Recover(*v1alpha1.Instance, lease.State) component.Preparation {
	return component.Preparation{Ready: true}
}

// UndoPreparation implements component.Component.
func (Members) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

// LeaderCount implements component.Component.
func (Members) LeaderCount(*v1alpha1.Instance) int { return 0 }

// AllowsRemoval implements component.Component: any number is enough, none too.
func (Members) AllowsRemoval([]*v1alpha1.Instance) verdict.Verdict { return verdict.Allow() }

// MaxConcurrentRemovals implements component.Component: those that stay are enough.
func (Members) MaxConcurrentRemovals() int { return math.MaxInt }

// RestartsWhenDeleted implements component.Component: another member takes its place.
func (Members) RestartsWhenDeleted(*v1alpha1.Instance) bool { return false }

// IsReplacedWhenDeleted implements component.Component: another member starts while this one
// drains its connections.
func (Members) IsReplacedWhenDeleted(*v1alpha1.Instance) bool { return true }

// ReasonDead implements component.Component: a member that forgets everything is as
// good as before.
func (Members) ReasonDead(*v1alpha1.Instance) verdict.Reason { return verdict.Reason{} }
