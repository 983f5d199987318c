package leaders

import (
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/departure"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
)

// KeepAway says how far a member's store is that leads nothing for as long as an
// annotation on its Instance stands, and goes on running (OPS-01). PD keeps the
// leaders away, as before a restart. An annotation is written before PD is ordered to, and only
// where it stands PD is ordered later to let the store lead again: what a user has ordered of PD
// carries none.
func KeepAway(c storestate.State, i *v1alpha1.Instance) component.Eviction {
	m := storestate.StoreOf(c, i)
	if !isEvictionRequested(c, i) {
		return awaitRestored(c, m)
	}
	out := component.Eviction{Marked: storestate.MarkOf(i) != ""}
	wait := func(after time.Duration, format string, args ...any) {
		out.Wait = storestate.WaitForPD(v1alpha1.ReasonEvictingLeaders, format, args...).Wait
		out.Wait.After = after
	}
	leaderless := otherLeaderlessStores(c, m)
	switch {
	case i.DeletionTimestamp != nil:
		// It stays as it is until its Instance goes.
	case !c.TrustPD.IsAllowed():
		wait(storestate.LookLater, "Instance %s must have no leaders (annotation %s): %s", i.Name, v1alpha1.AnnotationEvictLeaders, c.TrustPD.Reason())
	case !m.Own.IsAllowed():
		wait(storestate.LookLater, "Instance %s must have no leaders (annotation %s): %s", i.Name, v1alpha1.AnnotationEvictLeaders, m.Own.Reason())
	case m.Store == nil:
		wait(storestate.LookLater, "Instance %s must have no leaders (annotation %s): PD lists no store at %s", i.Name, v1alpha1.AnnotationEvictLeaders, m.Address)
	case c.Snapshot.HolderLost && c.Snapshot.Lease.NamesInstance(i.Name):
		// PD is ordered to drop all that was begun with its predecessor of the same name.
		wait(storestate.LookLater, "store %s of Instance %s must have no leaders (annotation %s) once the preparation of its previous Instance has been undone", m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders)
	case HaveLeft(c, i):
		out.Done = true
	case m.Store.State != pd.StateUp:
		wait(storestate.LookLater, "store %s of Instance %s is %s, and must have no leaders when it is Up (annotation %s)", m.Store.ID, i.Name, m.Store.State, v1alpha1.AnnotationEvictLeaders)
	case c.Snapshot.PD.EvictsLeaders(m.Store.ID):
		wait(storestate.LookSoon, "store %s of Instance %s gives its leaders away (annotation %s) and has %s left", m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders, storestate.RoundCount(m.Store.Leaders))
	case c.Snapshot.PD.EvictionsUnknown:
		wait(storestate.LookSoon, "store %s of Instance %s must have no leaders (annotation %s): a new leader of PD loads its schedulers first, which takes up to five minutes", m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders)
	case !isAnotherLeader(c, m):
		out.Blocked = true
		wait(storestate.LookLater, "store %s of Instance %s keeps its leaders (annotation %s): no other TiKV store that is Up may lead; let another store lead, or cancel: %s",
			m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders, withdrawCommand(i))
	case len(leaderless) > 0:
		out.Blocked = true
		wait(storestate.LookLater, "store %s of Instance %s keeps its leaders (annotation %s): PD keeps %d replicas of a region, and too many stores are leaderless already (%s); let one of them lead, or cancel: %s",
			m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders, c.Snapshot.PD.MaxReplicas, storestate.ListIDs(leaderless), withdrawCommand(i))
	default:
		out.Marked = true
		out.Calls = []component.Call{{Verb: component.EvictLeaders, Target: m.Store.ID, Instance: i.Name}}
		wait(storestate.LookSoon, "store %s of Instance %s must give its leaders away (annotation %s)", m.Store.ID, i.Name, v1alpha1.AnnotationEvictLeaders)
	}
	return out
}

// awaitRestored says how far a store is that led nothing because a user asked, and that is
// to lead again. UndoPreparation tells PD so.
func awaitRestored(c storestate.State, m storestate.Match) (out component.Eviction) {
	i := m.Instance
	if !c.HasLeaders || storestate.MarkOf(i) != member.Evict || i.DeletionTimestamp != nil || c.TrustPD.IsAllowed() && len(StopEvicting(c, i)) == 0 {
		return out
	}
	why := ""
	if !c.TrustPD.IsAllowed() {
		why = ": " + c.TrustPD.Reason()
	}
	out.Wait = storestate.WaitForPD(v1alpha1.ReasonEvictingLeaders, "the store of Instance %s will lead again (annotation %s is gone)%s", i.Name, v1alpha1.AnnotationEvictLeaders, why).Wait
	return out
}

// isEvictionRequested reports whether a user wants a member's store to lead nothing. One
// that was deleted and is to be restarted keeps its leaders away until its turn comes;
// its replacement leads.
func isEvictionRequested(c storestate.State, i *v1alpha1.Instance) bool {
	_, asked := member.EvictionRequest(i)
	return c.HasLeaders && asked && (i.DeletionTimestamp == nil || departure.MustLeave(c, i) || departure.RestartsWhenDeleted(c, i))
}

// isAnotherLeader reports whether another store leads what a member's is not to lead. Of several
// that are to lead nothing, the last by name has to if no other one does.
func isAnotherLeader(c storestate.State, m storestate.Match) bool {
	for _, other := range storestate.OtherStores(c, m) {
		if !canLead(c, m, other) {
			continue
		}
		i := c.Snapshot.Find(other.PodName())
		if i == nil {
			return true
		}
		if _, asked := member.EvictionRequest(i); storestate.MarkOf(i) == "" && !c.Snapshot.Lease.NamesInstance(i.Name) && (!asked || i.Name > m.Instance.Name) {
			return true
		}
	}
	return false
}

// otherLeaderlessStores returns the other stores that are to lead nothing for good, or already do so,
// if with one more of them and one that restarts a region might have no store left to
// be led by; nil if none could. Of several that are asked at once, the first by name
// come first.
func otherLeaderlessStores(c storestate.State, m storestate.Match) []pd.Store {
	var out []pd.Store
	for _, other := range storestate.OtherStores(c, m) {
		i := c.Snapshot.Find(other.PodName())
		evicts := c.Snapshot.PD.EvictsLeaders(other.ID)
		switch {
		case i == nil && evicts, i != nil && evicts && (storestate.MarkOf(i) == "" || storestate.MarkOf(i) == member.Evict):
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

// withdrawCommand is the command that takes the request off an Instance.
func withdrawCommand(i *v1alpha1.Instance) string {
	return fmt.Sprintf("kubectl -n %s annotate instance %s %s-", i.Namespace, i.Name, v1alpha1.AnnotationEvictLeaders)
}
