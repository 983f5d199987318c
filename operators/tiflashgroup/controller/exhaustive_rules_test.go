package controller

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/component"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// TestEveryStateOfStoresIsPlannedSafely holds the plan of every state to what must
// be true of all of them.
func TestEveryStateOfStoresIsPlannedSafely(t *testing.T) {
	b := newStateSpace(t)
	untouched := newStateSpace(t)
	info, _ := v1alpha1.LookupCondition(v1alpha1.ConditionReady)
	total := grouptest.CheckPlans(t, v1alpha1.KindTiFlashGroup, spaces(), func(st state) grouptest.Verdict {
		g, s := b.snapshot(st)
		p, err := b.plan(g, s)
		if err != nil {
			t.Fatalf("%s: %v", st, err)
		}
		j := judge(st, s, p)
		return grouptest.Verdict{
			Acts: j.acts(), Wrong: append(j.unsafe(), j.unsaid(info.Reasons)...),
			Plan: fmt.Sprintf("notes %q, calls %v, outcome %s %s %q", p.Notes, p.Calls, p.Outcome.Kind, p.Outcome.Reason, p.Outcome.Message),
		}
	})
	assert.Equal(t, untouched, b, "a plan changed what it looked at")
	assert.Greater(t, total, 20_000)
}

// judgement is what a plan would do to the members of a state, found out without
// the plan's own words.
type judgement struct {
	state
	seen observation.Snapshot
	plan groupPlan
	// made, stopped and fixed are Instances: those that are new, those whose pod is
	// stopped although it serves, and those whose pod is stopped and does not.
	// Those that a user has deleted and that are released are parted.
	made, stopped, fixed, parted []string
	// changed is set by any other change.
	changed bool
}

func judge(st state, s observation.Snapshot, p groupPlan) judgement {
	j := judgement{state: st, seen: s, plan: p}
	for _, c := range p.Instances {
		if c.Live == nil {
			j.made = append(j.made, c.Desired.Name)
			continue
		}
		stops := c.Desired.Spec.Revision != c.Live.Spec.Revision || c.Desired.Spec.StopPod != c.Live.Spec.StopPod || c.Desired.Spec.Suspended && !c.Live.Spec.Suspended || !member.HasMemberFinalizer(c.Desired)
		switch {
		case stops && c.Live.DeletionTimestamp != nil:
			j.parted = append(j.parted, c.Live.Name)
		case stops && j.works(c.Live):
			j.stopped = append(j.stopped, c.Live.Name)
		case stops:
			j.fixed = append(j.fixed, c.Live.Name)
		}
		j.changed = j.changed || c.Desired.Spec.Retire != c.Live.Spec.Retire || c.Desired.Annotations[v1alpha1.AnnotationDisruption] != c.Live.Annotations[v1alpha1.AnnotationDisruption]
	}
	return j
}

// works reports whether anybody may count on a member.
func (j judgement) works(i *v1alpha1.Instance) bool {
	store := j.store(i)
	return store.State == pd.StateUp || member.WasReady(i) && (store.ID != "" || j.lacksPD())
}

// back returns those that are released while they work: they come back with their
// data.
func (j judgement) back() []string {
	return slices.DeleteFunc(slices.Clone(j.parted), func(name string) bool { return j.store(j.seen.Instance(name)).State != pd.StateUp })
}

// lacksPD reports whether nothing is known of PD.
func (j judgement) lacksPD() bool { return j.has("no answer") || j.has("no PD") }

func (j judgement) acts() bool { return j.changes() || j.plan.Lease.Release }

// changes reports whether anything is done but that the Lease is given back, which
// a paused group does for the others.
func (j judgement) changes() bool {
	return len(j.parted)+len(j.made)+len(j.stopped)+len(j.fixed)+len(j.plan.Deletes)+len(j.plan.Calls) > 0 || j.changed || j.plan.Lease.Take != nil || j.plan.EnablePlacementRules
}

// isIdle reports whether a member says that it does not serve.
func (j judgement) isIdle(i *v1alpha1.Instance) bool {
	return j.seen.StatusPorts[i.Name].State == "Idle"
}

// store returns the store of an Instance as PD lists it.
func (j judgement) store(i *v1alpha1.Instance) pd.Store {
	at := slices.IndexFunc(j.seen.PD.Stores, func(s pd.Store) bool { return strings.HasPrefix(s.Address, i.Name+".") })
	if at < 0 {
		return pd.Store{}
	}
	return j.seen.PD.Stores[at]
}

// staysUp counts the TiFlash stores that are Up and that are not to leave,
// without one.
func (j judgement) staysUp(without string) (n int) {
	for _, s := range j.seen.PD.Stores {
		pod, _, _ := strings.Cut(s.Address, ".")
		i := j.seen.Instance(pod)
		going := i != nil && (i.Spec.Retire || i.DeletionTimestamp != nil)
		if s.Labels["engine"] == "tiflash" && s.State == pd.StateUp && s.ID != without && !going {
			n++
		}
	}
	return n
}

// unsafe returns which rules the plan breaks.
func (j judgement) unsafe() []string {
	var out []string
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	rule(!j.has("paused") || !j.changes(), "something is done although it is paused")
	rule(len(j.made) == 0 || !j.has("suspended") && !j.lacksPD() && !j.has("rules off"), "%v are made before they can serve", j.made)
	living := len(j.seen.Instances)
	rule(len(j.made) == 0 || living+len(j.made) <= int(j.replicas)+j.count("deleted off")+j.count("buried")+j.added(), "%v are made beside %d", j.made, living)
	if !j.has("suspended") {
		stopped := slices.Concat(j.stopped, j.back())
		for _, name := range stopped {
			i := j.seen.Instance(name)
			rule(j.seen.Lease.IsHeldBy(i), "%s is stopped without the Lease", name)
			rule(!j.lacksPD() && !j.has("no quorum"), "%s is stopped although nothing is known of the others", name)
			for _, s := range j.seen.PD.Stores {
				rule(s.Labels["engine"] != "tiflash" || s.ID == j.store(i).ID || s.State == pd.StateUp, "%s is stopped while store %s is %s", name, s.ID, s.State)
			}
			for _, other := range j.seen.Instances {
				rule(other == i || !j.isIdle(other) || j.isIdle(i), "%s is stopped while the store of %s does not serve", name, other.Name)
			}
		}
		rule(len(stopped) <= 1, "%v are stopped at once", stopped)
	}
	if take := j.plan.Lease.Take; take != nil {
		keeps := j.seen.Lease.IsHeldBy(take.Instance) // with another word for how it goes on
		rule(j.seen.Lease.IsFree() || j.seen.HolderLost || keeps, "the Lease is taken from %s", j.seen.Lease.Holder)
		rule(len(j.stopped) == 0 || j.has("suspended"), "%v stop and the Lease is taken for another one", j.stopped)
		rule(!j.has("held") || keeps, "the Lease is taken against the user's wish")
	}
	rule(!j.plan.Lease.Release || j.lease == "first" || j.lease == "lost", "another member's Lease is given back")
	rule(!j.plan.EnablePlacementRules || j.has("rules off"), "placement rules are turned on twice")
	return append(out, j.departures()...)
}

func (j judgement) count(is string) (n int) {
	for _, m := range j.slots {
		if m.is == is {
			n++
		}
	}
	return n
}

// isDead reports whether a member that is to stay has been down for too long by the
// spec, and not because of what it is to run.
func (j judgement) isDead(i *v1alpha1.Instance) bool {
	store := j.store(i).State
	if j.failover() == "" || j.lacksPD() || j.has("no quorum") || j.has("suspended") || member.WasReady(i) || store != pd.StateDown && store != pd.StateDisconnected {
		return false
	}
	runs := func(other *v1alpha1.Instance) bool {
		return j.store(other).State == pd.StateUp && other.Spec.Revision == i.Spec.Revision
	}
	return !i.Spec.Retire && i.DeletionTimestamp == nil && (i.Spec.Revision == j.plan.Target.Hash || slices.ContainsFunc(j.seen.Instances, runs))
}

// deaths counts the members that are dead.
func (j judgement) deaths() (n int) {
	for _, i := range j.seen.Instances {
		if j.isDead(i) {
			n++
		}
	}
	return n
}

// added is how many members there are to be more for those that are dead.
func (j judgement) added() int {
	if j.has("add") {
		return j.deaths()
	}
	return 0
}

// departures: a store leaves with the Lease, if the tables can do without it, and
// its Instance only when PD has let it go and everybody has been told.
func (j judgement) departures() []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	removed := 0
	for _, c := range j.plan.Calls {
		i := j.seen.Instance(c.Instance)
		store := j.store(i)
		unwanted := i.Spec.Retire || i.DeletionTimestamp != nil || len(j.seen.Instances) > int(j.replicas)+j.added()
		switch {
		case j.lacksPD():
			say("PD is told %v while it does not speak", c)
		case store.ID != c.Target:
			say("PD is told %v, which is not the store of the Instance", c)
		case c.Verb == component.RestoreStore && (store.State != pd.StateOffline || i.Spec.Retire && j.isStillLeaving(c.Instance)):
			say("store %s is taken back, which is %s", c.Target, store.State)
		case c.Verb == component.RestoreStore:
		case c.Verb != component.DeleteStore:
			say("PD is told %v, and a TiFlash leads nothing", c)
		case !unwanted:
			say("store %s is told to leave, which is wanted", c.Target)
		case j.has("no quorum"):
			say("store %s is told to leave without a quorum", c.Target)
		case !j.seen.Lease.IsHeldBy(i):
			say("store %s is told to leave without the Lease", c.Target)
		case store.State == pd.StateUp && j.staysUp(store.ID) < j.table:
			say("store %s is told to leave, a table wants %d replicas and %d stores stay Up", c.Target, j.table, j.staysUp(store.ID))
		}
		if c.Verb == component.DeleteStore {
			removed++
		}
	}
	if removed > 1 {
		say("%d stores are told to leave at once", removed)
	}
	for name, yes := range j.plan.Drained {
		i := j.seen.Instance(name)
		joins := i.Status.Member == nil && i.Status.PodUID == ""
		if yes && (j.lacksPD() || j.store(i).ID != "" || i.Status.Member == nil && !joins) {
			say("%s is called drained", name)
		}
	}
	for _, i := range j.plan.Deletes {
		if j.has("replace") && j.isDead(i) {
			continue
		}
		told := meta.IsStatusConditionTrue(i.Status.Conditions, v1alpha1.ConditionDrained)
		if j.store(i).ID != "" || i.Annotations[v1alpha1.AnnotationDisruption] != string(member.Remove) || j.isStillLeaving(i.Name) && !told {
			say("Instance %s is deleted", i.Name)
		}
	}
	for _, c := range j.plan.Instances {
		if c.Live == nil || c.Live.DeletionTimestamp == nil || member.HasMemberFinalizer(c.Desired) {
			continue
		}
		if store := j.store(c.Live); store.State == pd.StateOffline {
			say("Instance %s is released while its store is Offline", c.Live.Name)
		}
	}
	return out
}

// isStillLeaving reports whether an Instance goes on leaving by the plan.
func (j judgement) isStillLeaving(name string) bool {
	return slices.ContainsFunc(j.plan.Instances, func(c planning.InstanceChange) bool { return c.Desired.Name == name && c.Desired.Spec.Retire })
}

// hasArrived reports whether the members are what is asked for.
func (j judgement) hasArrived() bool {
	if j.has("suspended") {
		return !slices.ContainsFunc(j.seen.Instances, func(i *v1alpha1.Instance) bool { return i.Status.PodUID != "" })
	}
	for _, i := range j.seen.Instances {
		if !member.IsSettled(i) || i.DeletionTimestamp != nil || i.Spec.Retire || i.Spec.Revision != j.plan.Target.Hash || j.store(i).State == pd.StateOffline {
			return false
		}
	}
	return len(j.seen.Instances) == int(j.replicas)
}

// unsaid: whatever is not as the spec says has a reason that is true, a line for a
// user, and a time to look again.
func (j judgement) unsaid(known []string) []string {
	o := j.plan.Outcome
	if o.Kind == step.KindDone {
		if !j.acts() && !j.hasArrived() {
			return []string{"nothing is done and nothing is said"}
		}
		return nil
	}
	return append(grouptest.CheckOutcome(o, known), j.untrue(o)...)
}

// untrue returns whether a reason is given that does not hold.
func (j judgement) untrue(o step.Outcome) []string {
	holds := true
	switch o.Reason {
	case v1alpha1.ReasonPaused:
		holds = j.has("paused")
	case v1alpha1.ReasonUpdateHeld:
		holds = j.has("held")
	case v1alpha1.ReasonWaitingForGroups:
		holds = j.has("not its turn")
	case v1alpha1.ReasonWaitingForPDGroup:
		holds = j.has("no PD")
	case v1alpha1.ReasonPDUnreachable:
		holds = j.lacksPD()
	case v1alpha1.ReasonScaleInRefused:
		holds = j.table > 0
	case v1alpha1.ReasonWaitingForLease:
		holds = j.lease != "free"
	case v1alpha1.ReasonContainerCrashing:
		holds = j.count("broken") > 0
	case v1alpha1.ReasonSuspended:
		holds = j.has("suspended")
	case v1alpha1.ReasonReplacing:
		holds = j.count("left") > 0 || j.deaths() > 0
	case v1alpha1.ReasonWaitingForTiKVGroup, v1alpha1.ReasonStoreMismatch:
		holds = false
	}
	if !holds {
		return []string{fmt.Sprintf("the reason %s is not true", o.Reason)}
	}
	return nil
}
