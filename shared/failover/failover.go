package failover

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/storestate"
	"github.com/tidb-groups/tidb-groups/shared/verdict"
	"github.com/tidb-groups/tidb-groups/shared/workload"
)

const (
	// failoverAfter is spec.failover.after where it is not set; TiDB Operator waits
	// as long.
	failoverAfter = 5 * time.Minute
	// failoverMax is spec.failover.max where it is not set, likewise.
	failoverMax = 3
)

// failoverPolicy returns what is to be done about dead stores.
func failoverPolicy(c storestate.State) v1alpha1.FailoverPolicy {
	if f := c.Group.GetStoreSpec().Failover; f != nil {
		return cmp.Or(f.Policy, v1alpha1.NoFailover)
	}
	return v1alpha1.NoFailover
}

// downFor returns for how long a member has been without a ready pod and its store
// not Up, both without a break; zero if it is not dead by any measure. A pod that is not
// ready may run all the same, on a node that is cut off, and after a change of PD's
// leader every store is Disconnected for a moment. Another member has to run what it
// is to run: otherwise it is the spec that keeps it from working, and a new member would
// not work either. In a group that is suspended no member is dead.
func downFor(c storestate.State, i *v1alpha1.Instance) time.Duration {
	since, m := notReadySince(c, i), storestate.StoreOf(c, i)
	if since.IsZero() || m.Store.NotUpSince.IsZero() || member.IsStoppedOnPurpose(i) || !hasWorkingRevision(c, i) {
		return 0
	}
	// Ready is False since a member was resumed, and its pod was stopped before.
	if ready := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionReady); ready != nil && ready.LastTransitionTime.After(since) {
		since = ready.LastTransitionTime.Time
	}
	return max(min(c.Snapshot.Now.Sub(since), c.Snapshot.Now.Sub(m.Store.NotUpSince)), 0)
}

// notReadySince is since when a member whose store PD lists has been without a ready pod; zero
// if it is not, or is not to have one.
func notReadySince(c storestate.State, i *v1alpha1.Instance) time.Time {
	m := storestate.StoreOf(c, i)
	pod := meta.FindStatusCondition(i.Status.Conditions, v1alpha1.ConditionPodReady)
	switch {
	case !storestate.PDKnown(c).IsAllowed() || c.Group.GetComponentSpec().Suspended:
		return time.Time{}
	case !m.Own.IsAllowed() || m.Store == nil:
		return time.Time{}
	case pod == nil || pod.Status == metav1.ConditionTrue || i.Spec.Suspended || i.Spec.Retire:
		return time.Time{}
	}
	return pod.LastTransitionTime.Time
}

// hasWorkingRevision reports whether what an Instance is to run works, or what its pod runs
// still: on a node that does not answer that pod stays, whatever is asked for since, which
// is then not why it stopped. A store that is Up runs it. A group of TiFlash is often one
// store, of which nothing is missing elsewhere, so that a new one helps although no other is
// left: there it is enough that all members have run it once (FL-07).
func hasWorkingRevision(c storestate.State, i *v1alpha1.Instance) bool {
	works := func(revision string) bool {
		return !c.HasLeaders && revision == c.Group.GetGroupStatus().CurrentRevision || slices.ContainsFunc(c.Stores, func(m storestate.Match) bool {
			return m.Store != nil && m.Store.State == pd.StateUp && m.Instance.Status.Revision == revision
		})
	}
	return works(i.Spec.Revision) || i.Status.Revision != "" && works(i.Status.Revision)
}

// isDead reports whether a member has been down for as long as spec.failover says.
func isDead(c storestate.State, i *v1alpha1.Instance) bool {
	down := downFor(c, i)
	return failoverPolicy(c) != v1alpha1.NoFailover && down > 0 && down >= FailoverDelay(c) // which may be 0
}

// FailoverDelay returns spec.failover.after.
func FailoverDelay(c storestate.State) time.Duration {
	if f := c.Group.GetStoreSpec().Failover; f != nil && f.After != nil {
		return f.After.Duration
	}
	return failoverAfter
}

// deadStores returns the members that are dead, and whether there are no more of
// them than spec.failover.max.
func deadStores(c storestate.State) ([]*v1alpha1.Instance, bool) {
	out := ownMembers(c, isDead)
	return out, len(out) <= failoverLimit(c)
}

// ownMembers returns the members of the group of which something holds, such as isDead.
func ownMembers(c storestate.State, holds func(storestate.State, *v1alpha1.Instance) bool) []*v1alpha1.Instance {
	var out []*v1alpha1.Instance
	for _, m := range c.Stores {
		if workload.IsOwned(c.Group, m.Instance) && holds(c, m.Instance) {
			out = append(out, m.Instance)
		}
	}
	return out
}

// failoverLimit returns spec.failover.max.
func failoverLimit(c storestate.State) int {
	if f := c.Group.GetStoreSpec().Failover; f != nil {
		return int(ptr.Deref(f.Max, failoverMax))
	}
	return failoverMax
}

// ExtraMembers is how many members there are to be beyond spec.replicas (KV-20): one for
// each dead one that is to come back. When it does there is one too many, and that
// leaves like any other (KV-21), dead ones first. While there are more dead ones than
// spec.failover.max nothing is added, and nothing that has been added leaves. Nor does it
// while a member is away that does not count as dead any more: see isAway.
func ExtraMembers(c storestate.State) int32 {
	if failoverPolicy(c) != v1alpha1.AddOnFailover {
		return 0
	}
	lost, few := deadStores(c)
	extra, kept := countAwaited(c, lost), countAwaited(c, ownMembers(c, isAway))
	if !few {
		extra, kept = 0, failoverLimit(c)
	}
	kept = min(kept, failoverLimit(c), CountMembers(c)-int(c.Group.GetReplicas()))
	return int32(max(extra, kept, 0)) //nolint:gosec // no more than spec.failover.max
}

// countAwaited counts those of some members that are to come back.
func countAwaited(c storestate.State, members []*v1alpha1.Instance) int {
	return len(slices.DeleteFunc(ExcludeDeleted(members), func(i *v1alpha1.Instance) bool { return member.ReplacementReason(c.Group, i).IsGiven() }))
}

// isAway reports whether a member has had no ready pod for as long as spec.failover says and
// its store is not Up now. A dead one is away, and stays so when it does not count as dead any
// more: after a restart of the operator, which has forgotten since when PD says so, or after
// an edit, when no other member runs what it is to run.
func isAway(c storestate.State, i *v1alpha1.Instance) bool {
	since := notReadySince(c, i)
	return !since.IsZero() && storestate.StoreOf(c, i).Store.IsUnreachable() && c.Snapshot.Now.Sub(since) >= FailoverDelay(c)
}

// CountMembers counts the members of the group that are not being deleted.
func CountMembers(c storestate.State) int {
	n := 0
	for _, i := range c.Snapshot.Instances {
		if i.DeletionTimestamp == nil && workload.IsOwned(c.Group, i) {
			n++
		}
	}
	return n
}

// ExcludeDeleted returns the members that are not being deleted.
func ExcludeDeleted(members []*v1alpha1.Instance) []*v1alpha1.Instance {
	return slices.DeleteFunc(slices.Clone(members), func(i *v1alpha1.Instance) bool { return i.DeletionTimestamp != nil })
}

// IsReplaceable reports whether a member is dead and is to be replaced for good
// (KV-22).
func IsReplaceable(c storestate.State, i *v1alpha1.Instance) bool {
	if failoverPolicy(c) != v1alpha1.ReplaceOnFailover || !isDead(c, i) || findMajorityDoubt(c).IsGiven() {
		return false
	}
	_, few := deadStores(c)
	return few
}

// findMajorityDoubt says that regions have no majority without stores that are down, or may have
// none. PD cannot move them, and only these stores bring them back as they were.
func findMajorityDoubt(c storestate.State) verdict.Reason {
	switch view := c.Snapshot.PD; {
	case !c.HasLeaders:
	case view.MajorityLost:
		return verdict.NewReason("regions have lost their majority with the stores that are down: bring them back")
	case view.MajorityUnknown:
		return verdict.NewReason("PD has not answered yet whether regions have lost their majority with the stores that are down")
	}
	return verdict.Reason{}
}

// Explain adds what is done about dead stores to what a plan waits for, and has
// the operator look again when the next one counts as dead.
func Explain(c storestate.State, o step.Outcome) step.Outcome {
	if failoverPolicy(c) == v1alpha1.NoFailover || c.Group.GetComponentSpec().Paused {
		return o
	}
	if due := nextDeath(c); due > 0 && o.Kind == step.KindWait {
		o.After = min(o.After, due)
	}
	lost, few := deadStores(c)
	living := ExcludeDeleted(lost)
	if len(living) == 0 {
		return o // the progress of a replacement is reported elsewhere
	}
	what := "another store replaces it for good"
	switch doubt := findMajorityDoubt(c); {
	case !few:
		what = fmt.Sprintf("nothing is added or removed, because %d stores are down, more than spec.failover.max: find out what they have in common: kubectl -n %s get instances", len(lost), c.Group.GetNamespace())
	case failoverPolicy(c) == v1alpha1.AddOnFailover:
		what = "another store replaces it until it is back"
	case doubt.IsGiven():
		what = "nothing is replaced, because " + doubt.Text()
	}
	i := living[0]
	return step.Worst(step.Wait("PD", time.Minute, v1alpha1.ReasonReplacing,
		fmt.Sprintf("store %s of Instance %s has been down for spec.failover.after (%s): %s", storestate.StoreOf(c, i).Store.ID, i.Name, FailoverDelay(c), what)), o)
}

// nextDeath is after how long a member that is down now counts as dead; zero if none
// ever will.
func nextDeath(c storestate.State) time.Duration {
	next := time.Duration(0)
	for _, m := range c.Stores {
		down := downFor(c, m.Instance)
		// A second more, because the API keeps whole ones.
		if left := FailoverDelay(c) - down + time.Second; down > 0 && left > time.Second && (next == 0 || left < next) {
			next = left
		}
	}
	return next
}
