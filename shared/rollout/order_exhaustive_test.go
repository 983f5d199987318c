package rollout

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// turn is what the order of a cluster's groups depends on, of one of them.
type turn struct {
	// absent says that there is no such group, deleting that it goes.
	absent, deleting bool
	// suspend is what its spec wants, running whether its pods run, and old
	// whether they have, or would get, another revision than its spec's.
	suspend, running, old bool
	// told says that its status is about its spec of now. If not, it is about an
	// earlier one, and says that all was well.
	told bool
}

func (s turn) String() string {
	switch {
	case s.absent:
		return "absent"
	case s.deleting:
		return "deleting"
	}
	word := func(is bool, yes, no string) string {
		if is {
			return yes
		}
		return no
	}
	return strings.Join([]string{word(s.suspend, "to stop", "to run"), word(s.running, "runs", "stands"), word(s.old, "old", "new"), word(s.told, "told", "untold")}, " ")
}

func (s turn) lives() bool { return !s.absent && !s.deleting }

// isAtTarget says that a group is what its spec wants.
func (s turn) isAtTarget() bool { return s.running != s.suspend && !s.old }

// distance is how much is left to be done.
func (s turn) distance() int {
	n := 0
	for _, left := range []bool{s.running == s.suspend, s.old, !s.told} {
		if left {
			n++
		}
	}
	return n
}

// turns are all that a group may be.
func turns() []turn {
	out := []turn{{absent: true}, {deleting: true}}
	for bits := range 16 {
		out = append(out, turn{suspend: bits&1 != 0, running: bits&2 != 0, old: bits&4 != 0, told: bits&8 != 0})
	}
	return out
}

// stage has one object for everything that each of some groups may be.
type stage struct {
	kinds []string
	made  []map[turn]v1alpha1.Group
}

func newStage(kinds ...string) stage {
	st := stage{kinds: kinds}
	for at, kind := range kinds {
		made := map[turn]v1alpha1.Group{}
		for _, s := range turns() {
			if !s.absent {
				made[s] = s.object(kind, fmt.Sprintf("%s-%d", strings.ToLower(kind), at))
			}
		}
		st.made = append(st.made, made)
	}
	return st
}

func (s turn) object(kind, name string) v1alpha1.Group {
	made := map[string]v1alpha1.Group{
		v1alpha1.KindPDGroup: &v1alpha1.PDGroup{}, v1alpha1.KindTiKVGroup: &v1alpha1.TiKVGroup{},
		v1alpha1.KindTiDBGroup: &v1alpha1.TiDBGroup{}, v1alpha1.KindTiFlashGroup: &v1alpha1.TiFlashGroup{},
	}
	g := made[kind]
	g.SetName(name)
	g.SetNamespace("ns")
	g.SetGeneration(2)
	if s.deleting {
		g.SetDeletionTimestamp(ptr.To(metav1.Now()))
	}
	g.GetComponentSpec().Suspended = s.suspend
	c := metav1.Condition{Type: v1alpha1.ConditionUpToDate, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonUpToDate, ObservedGeneration: 1}
	if s.told {
		c.ObservedGeneration = 2
		switch {
		case s.suspend && s.running:
			c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonSuspended
		case !s.isAtTarget():
			c.Status, c.Reason = metav1.ConditionFalse, v1alpha1.ReasonRestarting
		}
	}
	g.GetGroupStatus().Conditions = []metav1.Condition{c}
	return g
}

// snapshot is what an operator sees of a cluster.
func (st stage) snapshot(now []turn) observation.Snapshot {
	var s observation.Snapshot
	for at, is := range now {
		if !is.absent {
			s.Groups = append(s.Groups, st.made[at][is])
		}
	}
	return s
}

// reconcile is what the operator of one group does next, and which rule of the
// order it breaks by that.
func (st stage) reconcile(now []turn, at int) (turn, string) {
	is, s := now[at], st.snapshot(now)
	g := st.made[at][is]
	next := is
	next.told = true
	rank := func(kind string) int { return slices.Index(Order(), kind) }
	before := func(wrong func(turn) bool) string {
		for other, o := range now {
			if o.lives() && rank(st.kinds[other]) < rank(st.kinds[at]) && wrong(o) {
				return fmt.Sprintf("%s %d (%s)", st.kinds[other], other, o)
			}
		}
		return ""
	}
	switch {
	case is.suspend && is.running:
		if !MaySuspend(g, s).IsAllowed() {
			break
		}
		next.running = false
		for other, o := range now {
			if o.lives() && rank(st.kinds[other]) > rank(st.kinds[at]) && o.suspend && o.running {
				return next, fmt.Sprintf("stops while %s %d runs, which is to stop before", st.kinds[other], other)
			}
		}
	case is.suspend || !is.running: // at rest no group waits for a new revision
		next.old, next.running = false, !is.suspend
	case is.old:
		gate := RollGate(g, s)
		if !gate.Open {
			if before(func(o turn) bool { return !o.told || !o.isAtTarget() }) == "" {
				return next, "waits for no group: " + gate.Message
			}
			if !strings.Contains(gate.Message, "kubectl -n ns describe ") {
				return next, "does not say what to type: " + gate.Message
			}
			break
		}
		next.old = false
		if first := before(func(o turn) bool { return o.old && !o.suspend && o.running }); first != "" {
			return next, "rolls before " + first
		}
	}
	return next, ""
}

// Every cluster of a few groups is followed on every way that its operators may
// take, one reconcile of one of them at a time, to where nothing is left to do.
func TestGroupsRollAndStopInOrderFromEveryState(t *testing.T) {
	for _, kinds := range [][]string{
		{v1alpha1.KindPDGroup, v1alpha1.KindTiFlashGroup, v1alpha1.KindTiKVGroup, v1alpha1.KindTiDBGroup},
		{v1alpha1.KindPDGroup, v1alpha1.KindTiKVGroup, v1alpha1.KindTiKVGroup, v1alpha1.KindTiDBGroup},
	} {
		st := newStage(kinds...)
		all := turns()
		states, steps, ends, broken := 0, 0, 0, 0
		now := make([]turn, len(kinds))
		complain := func(at int, what string) {
			if broken++; broken <= 10 {
				t.Errorf("%v: %s %d %s", now, kinds[at], at, what)
			}
		}
		// A step leads nearer, never back, and to another state that is visited:
		// so all ways are walked without walking any to its end.
		var visit func(at int)
		visit = func(at int) {
			if at < len(kinds) {
				for _, s := range all {
					now[at] = s
					visit(at + 1)
				}
				return
			}
			states++
			moves, arrived := 0, true
			for at, is := range now {
				if !is.lives() {
					continue
				}
				next, wrong := st.reconcile(now, at)
				steps++
				if wrong != "" {
					complain(at, wrong)
				}
				if next != is {
					moves++
				}
				if next != is && next.distance() >= is.distance() {
					complain(at, "does what leads nowhere")
				}
				arrived = arrived && is.isAtTarget() && is.told
			}
			switch {
			case arrived:
				ends++
			case moves == 0:
				complain(0, "and all others wait for each other")
			}
		}
		visit(0)
		assert.Zero(t, broken)
		assert.Positive(t, ends)
		t.Logf("exhaustive: order of %v: %d states, %d reconciles, %d where all have arrived, %d against a rule", kinds, states, steps, ends, broken)
	}
}
