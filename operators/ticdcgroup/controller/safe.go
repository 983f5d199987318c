package controller

import (
	"slices"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
)

// captures answers what the planner asks about the captures of a group. They are stopped
// one at a time, in place: what one copies goes to the others, and twice if there were a
// capture more for a while.
type captures struct {
	stateless.Members
	snapshot observation.Snapshot
}

var _ component.Component = captures{}

// capturesOf returns the captures of a group. open says that one which is started now can
// serve.
func capturesOf(g *v1alpha1.TiCDCGroup, s observation.Snapshot, open gate.Result) captures {
	return captures{stateless.Members{Group: g, Seen: s.Instances, Open: open}, s}
}

// afterAll is behind every rank of stateless.Members.
const afterAll = 1 << 20

// Rank implements component.Component: the owner is restarted last, so that the one that
// takes over is updated already (CDC-02). Which one is removed must not depend on it: what
// captures say changes by itself, and two looks at one state of the cache would remove two.
func (c captures) Rank(d component.Disruption) int {
	rank := c.Members.Rank(d)
	if d.Verb != member.Remove && c.snapshot.StatusPorts[d.Instance.Name].State == statusport.Owner {
		return rank + afterAll
	}
	return rank
}

// Allows implements component.Component: a capture is not restarted while another one hands over,
// or leaves.
func (c captures) Allows(d component.Disruption) verdict.Verdict {
	for _, i := range c.Seen {
		switch {
		case i.Name == d.Instance.Name || !mayHandOver(i):
		case i.Spec.Retire || i.DeletionTimestamp != nil:
			return verdict.Refusef("Instance %s hands over and leaves first: kubectl -n %s get pods", i.Name, i.Namespace)
		case member.IsStopPending(i):
			return verdict.Refusef("Instance %s hands over and is restarted first: kubectl -n %s get pods", i.Name, i.Namespace)
		}
	}
	return c.Members.Allows(d)
}

// MaxConcurrentRemovals implements component.Component: TiCDC drains one capture at a time. One
// that was released or is being restarted is no candidate, and its pod drains it until that has
// stopped.
func (c captures) MaxConcurrentRemovals() int {
	if slices.ContainsFunc(c.Seen, func(i *v1alpha1.Instance) bool {
		released := i.DeletionTimestamp != nil && !member.HasMemberFinalizer(i)
		return (released || member.IsStopPending(i)) && mayHandOver(i)
	}) {
		return 0
	}
	return 1
}

// mayHandOver reports whether there is a pod that hands over what its capture has when it
// stops. On a node that does not answer it may never stop.
func mayHandOver(i *v1alpha1.Instance) bool {
	return i.Status.PodUID != "" && !member.IsUnreachable(i)
}
