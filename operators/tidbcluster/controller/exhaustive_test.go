package controller

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// states of what there is under a group's name: nothing, a group of this cluster
// and what it says of itself, or another owner's.
func words() []string {
	return []string{"absent", "ours, arrived", "ours, waits", "ours, stalled", "ours, overdue", "ours, deleting", "orphan", "of another cluster", "without owner and labels"}
}

// wishes are what a cluster asks of all its groups.
func wishes() []string { return []string{"none", "paused", "suspended"} }

// restless are the words for groups that only differ in what they say of
// themselves from those that have arrived.
func restless() []string {
	return []string{"ours, waits", "ours, stalled", "ours, overdue"}
}

// entries are the kinds that a spec may name or leave out, in the order in which
// the groups of a cluster are looked at. It always names PD.
func entries() []string {
	return []string{v1alpha1.KindPDGroup, v1alpha1.KindTiKVGroup, v1alpha1.KindTiDBGroup, v1alpha1.KindTiFlashGroup}
}

// state is one state of the enumeration.
type state struct {
	named             map[string]bool   // by kind
	there             map[string]string // by kind
	paused, suspended bool
}

func (s state) String() string {
	var parts []string
	for _, kind := range entries() {
		parts = append(parts, fmt.Sprintf("%s named %v %s", kind, s.named[kind], s.there[kind]))
	}
	return fmt.Sprintf("%s; paused %v suspended %v", strings.Join(parts, ", "), s.paused, s.suspended)
}

// stateSpace makes snapshots of states.
type stateSpace struct {
	clusters map[string]*v1alpha1.TidbCluster
	groups   map[string]v1alpha1.Group // by kind and word
}

func newStateSpace(t *testing.T) *stateSpace {
	t.Helper()
	b := &stateSpace{map[string]*v1alpha1.TidbCluster{}, map[string]v1alpha1.Group{}}
	for _, g := range renderGroups(stored(t)) {
		for _, word := range words()[1:] {
			made, _ := g.DeepCopyObject().(v1alpha1.Group)
			made.SetGeneration(1)
			made.SetUID(types.UID("uid-" + g.GetName()))
			end := step.Done()
			switch word {
			case "ours, waits":
				end = step.Wait("PD", time.Minute, v1alpha1.ReasonRestarting, "it is being restarted")
			case "ours, stalled":
				end = step.Stall(v1alpha1.ReasonInvalidSpec, "correct it")
			case "ours, deleting":
				made.SetDeletionTimestamp(ptr.To(metav1.NewTime(clock())))
				end = step.Wait("Instance", time.Minute, v1alpha1.ReasonDeleting, "it is being deleted")
			case "orphan":
				made.SetOwnerReferences(nil)
			case "of another cluster":
				made.SetOwnerReferences([]metav1.OwnerReference{{Kind: v1alpha1.KindTidbCluster, Name: "other", UID: "other", Controller: ptr.To(true)}})
			case "without owner and labels":
				made.SetOwnerReferences(nil)
				made.SetLabels(nil)
			}
			if word != "ours, overdue" {
				tell(made, end)
			}
			b.groups[g.GroupKind()+word] = made
		}
	}
	return b
}

func (b *stateSpace) snapshot(t *testing.T, st state) (*v1alpha1.TidbCluster, snapshot) {
	key := fmt.Sprint(st.named, st.paused, st.suspended)
	if b.clusters[key] == nil {
		b.clusters[key] = stored(t, func(c *v1alpha1.TidbCluster) {
			c.Spec.Paused, c.Spec.Suspended = st.paused, st.suspended
			if !st.named[v1alpha1.KindTiKVGroup] {
				c.Spec.TiKV = nil
			}
			if !st.named[v1alpha1.KindTiDBGroup] {
				c.Spec.TiDB = nil
			}
			if !st.named[v1alpha1.KindTiFlashGroup] {
				c.Spec.TiFlash = nil
			}
		})
	}
	s := snapshot{groups: map[groupKey]v1alpha1.Group{}}
	for kind, word := range st.there {
		if g := b.groups[kind+word]; g != nil {
			s.groups[keyOf(g)] = g
		}
	}
	return b.clusters[key], s
}

// each calls visit with every state, and returns how many there are.
func each(visit func(state)) int {
	n := 0
	for set := range 1 << 3 {
		named := map[string]bool{v1alpha1.KindPDGroup: true}
		for at, kind := range entries()[1:] {
			named[kind] = set&(1<<at) != 0
		}
		for code := range len(words()) * len(words()) * len(words()) * len(words()) {
			there := map[string]string{}
			for _, kind := range entries() {
				there[kind] = words()[code%len(words())]
				code /= len(words())
			}
			for _, wish := range wishes() {
				n++
				visit(state{named, there, wish == "paused", wish == "suspended"})
			}
		}
	}
	return n
}

// holds reports whether a kind's groups hold data.
func holds(kind string) bool { return kind != v1alpha1.KindTiDBGroup }

// mayTouch says whether what there is belongs to the cluster, and mayTake whether
// it was left behind by one of its name.
func mayTouch(word string) bool { return strings.HasPrefix(word, "ours") }
func mayTake(word string) bool  { return mayTouch(word) || word == "orphan" }

// wrong returns which rules a plan breaks.
func wrong(st state, p clusterPlan, known []string) []string {
	var out []string
	rule := func(holds bool, format string, args ...any) {
		if !holds {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	applied := map[string]int{}
	for _, c := range p.Apply {
		kind := c.desired.GroupKind()
		applied[kind]++
		rule(st.named[kind], "%s is applied, which the spec does not name", kind)
		rule(c.live != nil || st.there[kind] == "absent", "%s is made a second time", kind)
		rule(c.live == nil || mayTake(st.there[kind]), "%s is applied, which is %s", kind, st.there[kind])
		rule(c.desired.GetComponentSpec().Paused == st.paused && c.desired.GetComponentSpec().Suspended == st.suspended, "%s is not told the cluster's wishes", kind)
	}
	for kind, n := range applied {
		rule(n == 1, "%s is applied %d times", kind, n)
	}
	for _, kind := range entries() {
		word := st.there[kind]
		joins := hasForeignPD(st) && kind != v1alpha1.KindPDGroup && word == "absent"
		rule(!joins || applied[kind] == 0, "%s is made, and would join another owner's PD", kind)
		rule(!st.named[kind] || applied[kind] == 1 || joins || !mayTake(word) && word != "absent", "%s is not applied", kind)
	}
	for _, g := range p.Prune {
		kind, word := g.GroupKind(), st.there[g.GroupKind()]
		rule(!st.named[kind], "%s is deleted, which the spec names", kind)
		rule(mayTouch(word), "%s is deleted, which is %s", kind, word)
		rule(word != "ours, deleting", "%s is deleted twice", kind)
		rule(!st.paused, "%s is deleted although the cluster is paused", kind)
		rule(kind == v1alpha1.KindTiDBGroup, "%s is deleted, and may hold data", kind)
	}
	return append(out, unsaid(st, p, known)...)
}

// unsaid: a plan that has not arrived says what it waits for, names who is in its
// way, and puts what a user must fix first.
func unsaid(st state, p clusterPlan, known []string) []string {
	o := p.Outcome
	blocked, stuck, kept := []string{}, []string{}, false
	for _, kind := range entries() {
		word := st.there[kind]
		switch {
		case !st.named[kind] && word == "ours, deleting":
			blocked = append(blocked, kind)
		case !st.named[kind] && mayTouch(word):
			kept = kept || st.paused
			if holds(kind) && !st.paused {
				stuck = append(stuck, kind)
			}
		case !st.named[kind]:
		case !mayTake(word) && word != "absent", word == "ours, stalled":
			stuck = append(stuck, kind)
		case word != "ours, arrived" && word != "orphan":
			blocked = append(blocked, kind)
		}
	}
	names := func(kinds []string) bool {
		return slices.ContainsFunc(kinds, func(kind string) bool { return strings.Contains(o.Message, kind) })
	}
	switch {
	case len(stuck) > 0 && (o.Kind != step.KindStall || !names(stuck)):
		return []string{fmt.Sprintf("%v need a user, and it says %q", stuck, o.Message)}
	case len(stuck) > 0:
	case kept:
		if o.Reason != v1alpha1.ReasonPaused {
			return []string{"groups are kept by the pause, and it does not say so"}
		}
	case len(blocked) > 0 && (o.Kind != step.KindWait || !names(blocked)):
		return []string{fmt.Sprintf("%v have not arrived, and it says %q", blocked, o.Message)}
	case len(blocked) == 0 && o.Kind != step.KindDone:
		return []string{fmt.Sprintf("it has arrived, and says %q", o.Message)}
	}
	switch {
	case o.Kind == step.KindDone:
		return nil
	case !slices.Contains(known, o.Reason):
		return []string{fmt.Sprintf("reason %q is none of Ready's", o.Reason)}
	case o.Message == "" || strings.ContainsAny(o.Message, "\r\n"):
		return []string{"the message is not one line"}
	case o.Kind == step.KindWait && (o.After <= 0 || o.Source == ""):
		return []string{fmt.Sprintf("a bare wait: %+v", o)}
	}
	return nil
}

// carryOut returns what there is after a plan, and after those that it deleted, or
// that were being deleted, have gone.
func carryOut(s snapshot, p clusterPlan) snapshot {
	next := snapshot{groups: maps.Clone(s.groups)}
	for key, g := range s.groups {
		if g.GetDeletionTimestamp() != nil {
			delete(next.groups, key)
		}
	}
	for _, g := range p.Prune {
		delete(next.groups, keyOf(g))
	}
	for _, c := range p.Apply {
		if c.live == nil || c.live.GetDeletionTimestamp() == nil {
			g, _ := c.desired.DeepCopyObject().(v1alpha1.Group)
			g.SetGeneration(1)
			tell(g, step.Done())
			next.groups[keyOf(g)] = g
		}
	}
	return next
}

// TestEveryStateOfACluster holds the plan of every state to what must be true of
// all of them, and carries each out until nothing is left to do.
func TestEveryStateOfACluster(t *testing.T) {
	b := newStateSpace(t)
	untouched := newStateSpace(t)
	info, _ := v1alpha1.LookupCondition(v1alpha1.ConditionReady)
	bad, acting, followed, ends := 0, 0, 0, map[string]int{}
	total := each(func(st state) {
		c, s := b.snapshot(t, st)
		p := makePlan(c, s)
		faults := wrong(st, p, info.Reasons)
		if len(p.Apply)+len(p.Prune) > 0 {
			acting++
		}
		if !st.suspended && !slices.ContainsFunc(entries(), func(kind string) bool { return slices.Contains(restless(), st.there[kind]) }) {
			followed++
			const enough = 2
			for range enough {
				s = carryOut(s, p)
				p = makePlan(c, s)
			}
			ends[p.Outcome.Reason]++
			faults = append(faults, unarrived(c, st, s, p)...)
		}
		if len(faults) == 0 {
			return
		}
		if bad++; bad <= 12 {
			t.Errorf("%s:\n  %s\n  outcome %s %q", st, strings.Join(faults, "\n  "), p.Outcome.Reason, p.Outcome.Message)
		}
	})
	assert.Zero(t, bad)
	assert.Equal(t, untouched.groups, b.groups, "a plan changed what it looked at")
	size := 1 << 3 * len(words()) * len(words()) * len(words()) * len(words()) * len(wishes())
	assert.Equal(t, size, total)
	assert.NotZero(t, acting)
	assert.NotZero(t, ends[""])
	t.Logf("exhaustive: TidbCluster: %d states planned: 8 sets of entries × %d states of each of %d groups × %d wishes; something is applied or deleted in %d, %d against a rule; %d followed to their end: %v",
		total, len(words()), len(entries()), len(wishes()), acting, bad, followed, ends)
}

// hasForeignPD reports whether the cluster's PDGroup is another owner's: nothing is made
// that would join it.
func hasForeignPD(st state) bool {
	there := st.there[v1alpha1.KindPDGroup]
	return st.named[v1alpha1.KindPDGroup] && !mayTake(there) && there != "absent"
}

// unarrived says what is wrong with the end of a state: every group that is named
// exists and every other one of ours is gone, unless another owner's group has its name.
func unarrived(c *v1alpha1.TidbCluster, st state, s snapshot, p clusterPlan) []string {
	var out []string
	conflict := false
	for _, g := range renderGroups(c) {
		live := s.groups[keyOf(g)]
		strange := !mayTake(st.there[g.GroupKind()]) && st.there[g.GroupKind()] != "absent"
		conflict = conflict || strange
		if unmade := live == nil && g.GroupKind() != v1alpha1.KindPDGroup && hasForeignPD(st); unmade {
			continue
		}
		if live == nil || ownsGroup(c, live) == strange {
			out = append(out, g.GetName()+" is not what it should be at the end")
		}
	}
	for _, g := range s.groups {
		if owner := metav1.GetControllerOf(g); !st.named[g.GroupKind()] && owner != nil && owner.UID == c.UID && !st.paused && !holds(g.GroupKind()) {
			out = append(out, g.GetName()+" is still there at the end")
		}
	}
	switch {
	case conflict && p.Outcome.Reason != v1alpha1.ReasonNameConflict:
		out = append(out, "a conflict is not told at the end")
	case !conflict && p.Outcome.Kind != step.KindDone && p.Outcome.Reason != v1alpha1.ReasonPaused && p.Outcome.Reason != v1alpha1.ReasonEntryRemoved:
		out = append(out, "it does not arrive")
	}
	return out
}
