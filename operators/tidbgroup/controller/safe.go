package controller

import (
	"fmt"
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/lease"
	"github.com/tidb-groups/tidb-groups/shared/member"
)

// defaultSurge is how many servers there may be beyond spec.replicas by default.
const defaultSurge = 1

// servers is the group.Component of TiDB. A server keeps nothing that another
// one needs, so no Lease is taken for it: it is enough that as many serve as are
// asked for. Connections are drained by the pod itself, before it ends.
type servers struct {
	group *v1alpha1.TiDBGroup
	seen  []*v1alpha1.Instance
	// open says that a server which is started now can serve.
	open gate.Result
}

// maxSurge returns how many servers there may be beyond spec.replicas while
// others are restarted.
func maxSurge(g *v1alpha1.TiDBGroup) int32 { return ptr.Deref(g.Spec.MaxSurge, defaultSurge) }

// NotServing implements group.Component: a server that does not serve. One on a node that
// does not answer may serve all the same, and if more than one is missed so all may:
// their kubelets have lost the API server.
func (c servers) NotServing(i *v1alpha1.Instance) bool {
	switch {
	case member.WasReady(i):
		return false
	case !member.IsUnreachable(i):
		return true
	}
	others := int32(0)
	for _, other := range c.seen {
		if other.Name != i.Name && other.DeletionTimestamp == nil && !other.Spec.Retire && member.WasReady(other) {
			others++
		}
	}
	return others >= max(c.group.GetReplicas()-1, 1)
}

// Rank implements group.Component. The newest is restarted first, so that a server
// beyond spec.replicas comes before those that stay. Who is removed first is missed
// least: see spareness.
func (servers) Rank(d component.Disruption) int {
	if d.Verb == member.Remove {
		return spareness(d.Instance, d.Revision)
	}
	return -int(d.Instance.Spec.Slot)
}

// spareness orders servers of which some are to be removed, the lowest is first: one
// that has no pod, whose node does not answer, that is not ready; of those that
// serve one that is there for a roll only, and one that would have to be restarted
// for the wanted revision.
func spareness(i *v1alpha1.Instance, wanted string) int {
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

// NeedsLease implements group.Component.
func (servers) NeedsLease(component.Disruption) bool { return false }

// WhyUnsafe implements group.Component: without the victim there are as many servers
// as are asked for, or one less if there is to be no surge, and a server that is
// started again finds what it needs. Who has been told to leave is not counted on.
func (c servers) WhyUnsafe(d component.Disruption) string {
	if !c.open.Open {
		return "a server that starts now would not serve: " + c.open.Message
	}
	serving, needed := 0, int(c.group.GetReplicas())
	for _, i := range c.seen {
		if i.Name != d.Instance.Name && i.DeletionTimestamp == nil && !i.Spec.Retire && member.IsSettled(i) {
			serving++
		}
	}
	if maxSurge(c.group) == 0 {
		needed = max(needed-1, 0)
	}
	if serving < needed {
		return fmt.Sprintf("%d other servers serve, %d have to: kubectl -n %s get instances", serving, needed, c.group.Namespace)
	}
	return ""
}

// WhyNotYet implements group.Component.
func (servers) WhyNotYet(component.Disruption) string { return "" }

// Prepare implements group.Component: the database keeps no membership that a
// server would have to leave.
func (servers) Prepare(component.Disruption, time.Time) component.Preparation {
	return component.Preparation{Ready: true}
}

// Recover implements group.Component.
func (servers) Recover(*v1alpha1.Instance, lease.State) component.Preparation {
	return component.Preparation{Ready: true}
}

// UndoPreparation implements group.Component.
func (servers) UndoPreparation(*v1alpha1.Instance) []component.Call { return nil }

// LeaderCount implements group.Component.
func (servers) LeaderCount(*v1alpha1.Instance) int { return 0 }

// WhyRefused implements group.Component: any number of servers is enough, none too.
func (servers) WhyRefused([]*v1alpha1.Instance) string { return "" }

// MaxConcurrentRemovals implements group.Component: those that stay are enough.
func (servers) MaxConcurrentRemovals() int { return math.MaxInt }

// RestartsWhenDeleted implements group.Component: another server takes its place.
func (servers) RestartsWhenDeleted(*v1alpha1.Instance) bool { return false }

// ReplacedWhenDeleted implements group.Component: another server starts while this one
// drains its connections.
func (servers) ReplacedWhenDeleted(*v1alpha1.Instance) bool { return true }

// WhyDead implements group.Component: a server that forgets everything is as good
// as before.
func (servers) WhyDead(*v1alpha1.Instance) string { return "" }
