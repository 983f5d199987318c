package store

import (
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// Shun says how far a member's store is that leads nothing for as long as an
// annotation on its Instance stands, and goes on running (OPS-01). PD keeps the
// leaders away, as before a restart. The mark is written before PD is told, and by it
// alone PD is told that the store may lead again: what a person has told PD himself
// carries none.
func (c Component) Shun(i *v1alpha1.Instance) component.Eviction {
	m := c.of(i)
	if !c.leadsNothing(i) {
		return c.leadsAgain(m)
	}
	out := component.Eviction{Marked: mark(i) != ""}
	wait := func(after time.Duration, format string, args ...any) {
		out.Wait = waiting(v1alpha1.ReasonEvictingLeaders, format, args...).Wait
		out.Wait.After = after
	}
	crowd := c.crowd(m)
	switch {
	case i.DeletionTimestamp != nil:
		// It stays as it is until its Instance goes.
	case c.Silence != "":
		wait(poll, "Instance %s is to lead nothing (annotation %s): %s", i.Name, v1alpha1.AnnotationEvictLeaders, c.Silence)
	case m.Problem != "":
		wait(poll, "Instance %s is to lead nothing (annotation %s): %s", i.Name, v1alpha1.AnnotationEvictLeaders, m.Problem)
	case m.Store == nil:
		wait(poll, "Instance %s is to lead nothing (annotation %s): PD lists no store at %s", i.Name, v1alpha1.AnnotationEvictLeaders, m.Address)
	case c.Snapshot.HolderLost && c.Snapshot.Lease.Names(i.Name):
		// PD is told to forget all that was begun with the one that had its name.
		wait(poll, "store %s of Instance %s is to lead nothing (annotation %s) when what was begun with the one before it has been taken back", m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders)
	case c.Vacated(i):
		out.Done = true
	case m.Store.State != pd.StateUp:
		wait(poll, "store %s of Instance %s is %s, and is to lead nothing when it is Up (annotation %s)", m.Store.ID, i.Name, m.Store.State, v1alpha1.AnnotationEvictLeaders)
	case c.Snapshot.PD.Evicts(m.Store.ID):
		wait(look, "store %s of Instance %s gives its leaders away (annotation %s) and has %s left", m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders, about(m.Store.Leaders))
	case !c.spared(m):
		out.Blocked = true
		wait(poll, "store %s of Instance %s goes on leading (annotation %s): no other TiKV store that is Up may lead; let another one, or this one: %s",
			m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders, takeAway(i))
	case len(crowd) > 0:
		out.Blocked = true
		wait(poll, "store %s of Instance %s goes on leading (annotation %s): PD keeps %d replicas of a region, and all that could lead one while another store restarts may be among those that lead nothing already (%s); let one of those, or this one: %s",
			m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders, c.Snapshot.PD.MaxReplicas, ids(crowd), takeAway(i))
	default:
		out.Marked = true
		out.Calls = []component.Call{{Verb: component.EvictLeaders, Target: m.Store.ID, Instance: i.Name}}
		wait(look, "store %s of Instance %s is to give its leaders away (annotation %s)", m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders)
	}
	return out
}

// leadsAgain says how far a store is on its way back that led nothing because a person
// asked. Sweep has PD let it.
func (c Component) leadsAgain(m Match) (out component.Eviction) {
	i := m.Instance
	if !c.HasLeaders || mark(i) != member.Evict || i.DeletionTimestamp != nil || c.Silence == "" && len(c.readmission(i)) == 0 {
		return out
	}
	why := ""
	if c.Silence != "" {
		why = ": " + c.Silence
	}
	out.Wait = waiting(v1alpha1.ReasonEvictingLeaders, "the store of Instance %s is to lead again (annotation %s is gone)%s", i.Name, v1alpha1.AnnotationEvictLeaders, why).Wait
	return out
}

// leadsNothing reports whether a person wants a member's store to lead nothing. One
// that was deleted and is to be restarted keeps its leaders away until its turn comes;
// who comes in its place leads.
func (c Component) leadsNothing(i *v1alpha1.Instance) bool {
	_, asked := member.EvictionRequest(i)
	return c.HasLeaders && asked && (i.DeletionTimestamp == nil || c.departs(i) || c.RestartsWhenDeleted(i))
}

// spared reports whether another store leads what a member's is not to lead. Of several
// that are to lead nothing, the last by name has to if nobody else does.
func (c Component) spared(m Match) bool {
	for _, other := range c.peers(m) {
		if !c.leads(m, other) {
			continue
		}
		i := c.Snapshot.Find(podName(other))
		if i == nil {
			return true
		}
		if _, asked := member.EvictionRequest(i); mark(i) == "" && !c.Snapshot.Lease.Names(i.Name) && (!asked || i.Name > m.Instance.Name) {
			return true
		}
	}
	return false
}

// crowd returns the other stores that are to lead nothing for good, or already do so,
// if with one more of them and one that restarts a region might have no store left to
// be led by; nil if none could. Of several that are asked at once, the first by name
// come first.
func (c Component) crowd(m Match) []pd.Store {
	var out []pd.Store
	for _, other := range c.peers(m) {
		i := c.Snapshot.Find(podName(other))
		evicts := c.Snapshot.PD.Evicts(other.ID)
		switch {
		case i == nil && evicts, i != nil && evicts && (mark(i) == "" || mark(i) == member.Evict):
			out = append(out, other)
		case i != nil && !evicts && i.Name < m.Instance.Name:
			if _, asked := member.EvictionRequest(i); asked && i.DeletionTimestamp == nil {
				out = append(out, other)
			}
		}
	}
	if len(out) < max(c.Snapshot.PD.MaxReplicas-2, 1) {
		return nil
	}
	return out
}

// takeAway is the command that takes the request off an Instance.
func takeAway(i *v1alpha1.Instance) string {
	return fmt.Sprintf("kubectl -n %s annotate instance %s %s-", i.Namespace, i.Name, v1alpha1.AnnotationEvictLeaders)
}
