package controller

import (
	"fmt"
	"math"
	"time"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/gate"
	"github.com/tidb-groups/tidb-groups/shared/group"
	"github.com/tidb-groups/tidb-groups/shared/lease"
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

// Spare implements group.Component: a server that does not serve. One on a node that
// does not answer may serve all the same, and if more than one is missed so all may:
// their kubelets have lost the API server.
func (c servers) Spare(i *v1alpha1.Instance) bool {
	switch {
	case group.InstanceServes(i):
		return false
	case !group.Unreachable(i):
		return true
	}
	others := int32(0)
	for _, other := range c.seen {
		if other.Name != i.Name && other.DeletionTimestamp == nil && !other.Spec.Retire && group.InstanceServes(other) {
			others++
		}
	}
	return others >= max(c.group.GetReplicas()-1, 1)
}

// Rank implements group.Component. The newest is restarted first, so that a server
// beyond spec.replicas comes before those that stay. Who is removed first is missed
// least: see spareness.
func (servers) Rank(d group.Disruption) int {
	if d.Verb == group.Remove {
		return spareness(d.Instance, d.Revision)
	}
	return -int(d.Instance.Spec.Slot)
}

// spareness orders servers of which some are to be removed, the lowest is first: one
// that has no pod, whose node does not answer, that is not ready; of those that
// serve one that is there for a roll only, and one that would have to be restarted
// for the wanted revision.
func spareness(i *v1alpha1.Instance, wanted string) int {
	serves := group.InstanceServes(i)
	for rank, holds := range []bool{
		!serves && i.Status.PodUID == "",
		!serves && group.Unreachable(i),
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

// Leased implements group.Component.
func (servers) Leased(group.Disruption) bool { return false }

// Safe implements group.Component: without the victim there are as many servers
// as are asked for, or one less if there is to be no surge, and a server that is
// started again finds what it needs. Who has been told to leave is not counted on.
func (c servers) Safe(d group.Disruption) string {
	if !c.open.Open {
		return "a server that starts now would not serve: " + c.open.Message
	}
	serving, needed := 0, int(c.group.GetReplicas())
	for _, i := range c.seen {
		if i.Name != d.Instance.Name && i.DeletionTimestamp == nil && !i.Spec.Retire && group.Settled(i) {
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

// Transient implements group.Component.
func (servers) Transient(group.Disruption) string { return "" }

// Prepare implements group.Component: the database keeps no membership that a
// server would have to leave.
func (servers) Prepare(group.Disruption, time.Time) group.Preparation {
	return group.Preparation{Ready: true}
}

// Recover implements group.Component.
func (servers) Recover(*v1alpha1.Instance, lease.State) group.Preparation {
	return group.Preparation{Ready: true}
}

// Sweep implements group.Component.
func (servers) Sweep(*v1alpha1.Instance) []group.Call { return nil }

// Leaders implements group.Component.
func (servers) Leaders(*v1alpha1.Instance) int { return 0 }

// Refuse implements group.Component: any number of servers is enough, none too.
func (servers) Refuse([]*v1alpha1.Instance) string { return "" }

// RemoveAtOnce implements group.Component: those that stay are enough.
func (servers) RemoveAtOnce() int { return math.MaxInt }

// Restarted implements group.Component: another server takes its place.
func (servers) Restarted(*v1alpha1.Instance) bool { return false }

// Replaced implements group.Component: another server starts while this one
// drains its connections.
func (servers) Replaced(*v1alpha1.Instance) bool { return true }

// Dead implements group.Component: a server that forgets everything is as good
// as before.
func (servers) Dead(*v1alpha1.Instance) string { return "" }
