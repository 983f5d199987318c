package controller

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/planning"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// TestEveryStateOfServersIsPlannedSafely holds the plan of every state to what
// must be true of all of them.
func TestEveryStateOfServersIsPlannedSafely(t *testing.T) {
	b := newStateSpace(t)
	untouched := newStateSpace(t)
	info, _ := v1alpha1.LookupCondition(v1alpha1.ConditionReady)
	total := grouptest.CheckPlans(t, v1alpha1.KindTiDBGroup, spaces(), func(st state) grouptest.Verdict {
		g, s := b.snapshot(st)
		p, err := b.plan(g, s)
		if err != nil {
			t.Fatalf("%s: %v", st, err)
		}
		j := judge(st, s, p)
		return grouptest.Verdict{
			Acts: j.acts(), Wrong: append(j.unsafe(), j.unsaid(info.Reasons)...),
			Plan: fmt.Sprintf("notes %q, outcome %s %q", p.Notes, p.Outcome.Reason, p.Outcome.Message),
		}
	})
	assert.Equal(t, untouched, b, "a plan changed what it looked at")
	assert.Greater(t, total, 35_000)
}

// judgement is what a plan would do to the servers of a state, found out without
// the plan's own words.
type judgement struct {
	state
	seen snapshot
	plan groupPlan
	// made, stopped and leaving are Instances: those that are new, those whose pod
	// is stopped although it serves, and those that serve and are taken away.
	made, stopped, leaving []string
	// changed is set by any other change, fixed by the stop of a pod that does not
	// serve.
	changed, fixed bool
}

func judge(st state, s snapshot, p groupPlan) judgement {
	j := judgement{state: st, seen: s, plan: p}
	for _, c := range p.Instances {
		if c.Live == nil {
			j.made = append(j.made, c.Desired.Name)
			continue
		}
		stops := c.Desired.Spec.Revision != c.Live.Spec.Revision || c.Desired.Spec.StopPod != c.Live.Spec.StopPod || c.Desired.Spec.Suspended && !c.Live.Spec.Suspended
		switch {
		case stops && member.WasReady(c.Live):
			j.stopped = append(j.stopped, c.Live.Name)
		case stops:
			j.fixed = true
		}
		if c.Desired.Spec.Retire && member.WasReady(c.Live) {
			j.leaving = append(j.leaving, c.Live.Name)
		}
		j.changed = j.changed || c.Desired.Spec.Retire != c.Live.Spec.Retire || !member.HasMemberFinalizer(c.Desired)
	}
	return j
}

func (j judgement) acts() bool { return j.changes() || j.plan.Lease.Release }

// changes reports whether anything is done but that the Lease is given back, which
// a paused group does for the others.
func (j judgement) changes() bool {
	return len(j.made)+len(j.stopped)+len(j.leaving)+len(j.plan.Deletes) > 0 || j.changed || j.fixed || j.plan.Lease.Take != nil
}

// serving counts the servers that serve and are not to leave.
func (j judgement) serving() (n int) {
	for _, i := range j.seen.Instances {
		if member.IsSettled(i) && i.DeletionTimestamp == nil && !i.Spec.Retire {
			n++
		}
	}
	return n
}

// left counts the servers that would still serve if all that the plan takes away
// were gone.
func (j judgement) left() (n int) {
	for _, i := range j.seen.Instances {
		if member.IsSettled(i) && i.DeletionTimestamp == nil && !slices.Contains(j.stopped, i.Name) && !slices.Contains(j.leaving, i.Name) {
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
	needed := int(j.replicas)
	if j.surge == 0 {
		needed--
	}
	rule(!j.has("paused") || !j.changes(), "something is done although it is paused")
	rule(len(j.made) == 0 || !j.has("no PD"), "%v are made although PD is not Ready", j.made)
	rule(len(j.made) == 0 || !j.has("suspended"), "%v are made although the group is suspended", j.made)
	rule(j.plan.Lease.Take == nil, "a server takes the Lease")
	rule(len(j.plan.Calls) == 0, "PD is told something")
	// What holds the Lease has begun; no server ever takes it.
	begun := j.lease == "ours"
	if !j.has("suspended") && !begun {
		rule(len(j.stopped) <= 1, "%v are stopped at once", j.stopped)
		rule(len(j.stopped) == 0 || j.left() >= needed, "%v is stopped, %v leave and %d others serve: %d have to", j.stopped, j.leaving, j.left(), needed)
		rule(len(j.stopped) == 0 || !j.has("no PD"), "%v is stopped, which would not come back without PD", j.stopped)
		rule(len(j.stopped) == 0 || !j.has("held"), "%v is stopped against the user's wish", j.stopped)
		rule(len(j.stopped) == 0 || !j.has("not its turn"), "%v is rolled before TiKV", j.stopped)
	}
	updated := 0
	for _, i := range j.seen.Instances {
		if i.DeletionTimestamp == nil && i.Spec.Revision == j.plan.Target.Hash {
			updated++
		}
	}
	back := j.version == "old" // what all had before is not tried out
	rule(len(j.stopped) == 0 || begun || back || !j.has("canary") || updated == 0, "%v is rolled although %d canaries are enough", j.stopped, updated)
	return append(out, j.announced()...)
}

// announced: TiDB is told before the first server gets the new version, and that it
// is over only when none has the old one.
func (j judgement) announced() []string {
	out := j.removals()
	serve, have, old := false, false, false
	for _, i := range j.seen.Instances {
		has := i.Spec.Revision == j.plan.Target.Hash
		serve = serve || i.DeletionTimestamp == nil && member.WasReady(i)
		have, old = have || has, old || !has
	}
	brings := slices.ContainsFunc(j.plan.Instances, func(c planning.InstanceChange) bool {
		return c.Desired.Spec.Revision == j.plan.Target.Hash && (c.Live == nil || c.Live.Spec.Revision != j.plan.Target.Hash)
	})
	if brings && serve && !have && j.has("known") && !j.has("told") {
		out = append(out, "a server gets the new version, and TiDB was not told of it")
	}
	order := j.plan.Order
	if order != nil && (j.has("paused") || !j.has("told") || order.Verb != statusport.Finish || old) {
		out = append(out, fmt.Sprintf("TiDB is told to %s the upgrade", order.Verb))
	}
	if serve && !old && j.has("told") && !j.has("paused") && order == nil {
		out = append(out, "TiDB is not told that the upgrade is over")
	}
	return out
}

// removals: who goes is one too many, does so once it is told that it may, and no
// more of them than are too many.
func (j judgement) removals() []string {
	var out []string
	staying, going := 0, 0
	for _, c := range j.plan.Instances {
		i := c.Desired
		if c.Live != nil && c.Live.DeletionTimestamp != nil {
			if drained := slices.ContainsFunc(c.Live.Status.Conditions, func(x metav1.Condition) bool { return x.Type == v1alpha1.ConditionDrained && x.Status == "True" }); !member.HasMemberFinalizer(i) && !drained {
				out = append(out, fmt.Sprintf("%s is released before its permission was visible", i.Name))
			}
			continue
		}
		staying++
		if i.Spec.Retire {
			going++
		}
	}
	if staying-going < int(j.replicas) && going > 0 {
		out = append(out, fmt.Sprintf("%d of %d servers leave, %d are wanted", going, staying, j.replicas))
	}
	if most := int(j.replicas+j.surge) + 1; len(j.made) > 0 && staying > most {
		out = append(out, fmt.Sprintf("%d servers are made, and %d would be more than %d", len(j.made), staying, most))
	}
	needed := min(int(j.replicas), j.serving())
	if len(j.stopped) > 0 && j.surge == 0 {
		needed--
	}
	if len(j.leaving) > 0 && !j.has("remove the first") && j.lease != "ours" && j.left() < needed {
		out = append(out, fmt.Sprintf("%v serve and leave, while %d of %d others serve", j.leaving, j.left(), j.replicas))
	}
	for _, i := range j.plan.Deletes {
		if !i.Spec.Retire || !slices.ContainsFunc(i.Status.Conditions, func(x metav1.Condition) bool { return x.Type == v1alpha1.ConditionDrained && x.Status == "True" }) {
			out = append(out, fmt.Sprintf("%s is deleted, and was not told to go", i.Name))
		}
	}
	return out
}

// hasArrived reports whether the servers are what is asked for.
func (j judgement) hasArrived() bool {
	if j.has("suspended") {
		return !slices.ContainsFunc(j.seen.Instances, func(i *v1alpha1.Instance) bool { return i.Status.PodUID != "" })
	}
	for _, i := range j.seen.Instances {
		if !member.IsSettled(i) || i.DeletionTimestamp != nil || i.Spec.Retire || i.Spec.Revision != j.plan.Target.Hash {
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
	out := grouptest.CheckOutcome(o, known)
	if j.hasArrived() && !j.acts() && !j.has("paused") && o.Reason != v1alpha1.ReasonAnnouncingUpgrade {
		out = append(out, "it has arrived, and says that it has not")
	}
	return append(out, j.untrue(o)...)
}

// untrue returns whether a reason is given that does not hold.
func (j judgement) untrue(o step.Outcome) []string {
	any := func(is ...string) bool {
		return slices.ContainsFunc(j.slots, func(v server) bool { return slices.Contains(is, v.is) })
	}
	holds := true
	switch o.Reason {
	case v1alpha1.ReasonPaused:
		holds = j.has("paused")
	case v1alpha1.ReasonUpdateHeld:
		holds = j.has("held") || j.has("canary")
	case v1alpha1.ReasonWaitingForGroups:
		holds = j.has("not its turn")
	case v1alpha1.ReasonWaitingForPDGroup:
		holds = j.has("no PD")
	case v1alpha1.ReasonWaitingForTiKVGroup, v1alpha1.ReasonWaitingForLease:
		holds = false
	case v1alpha1.ReasonImagePullFailed:
		holds = any("broken")
	case v1alpha1.ReasonPodNotReady:
		holds = any("starts")
	case v1alpha1.ReasonDeleting:
		holds = any("deleted")
	case v1alpha1.ReasonSuspended:
		holds = j.has("suspended")
	case v1alpha1.ReasonAnnouncingUpgrade:
		holds = j.plan.Order != nil || j.has("known") && !j.has("told")
	case v1alpha1.ReasonUnsafe:
		holds = j.has("no PD") || any("starts", "broken", "deleted", "retired", "") || j.surge > 0
	}
	if !holds {
		return []string{fmt.Sprintf("the reason %s is not true", o.Reason)}
	}
	return nil
}
