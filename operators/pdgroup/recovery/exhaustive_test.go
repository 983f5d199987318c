package recovery

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/planning"
)

// What a member knows of the others.
const (
	lost   = iota // its data is gone
	before        // all three
	itself        // no other: it was started with the flag
	joined        // it joined who was started with the flag
)

// seat is one of three members, its Instance and its pod.
type seat struct {
	there     bool // the Instance
	suspended bool
	forced    bool
	deleted   bool
	drained   bool // said in status
	released  bool // without the finalizer
	retired   bool // its claim is marked
	remade    bool // made after the recovery
	seen      bool // its operator has seen its spec
	runs      bool
	flag      bool // what runs was started with
	stuck     bool // its node is down
	knows     int
}

// seats are a small world: a group, its members and PD.
type seats struct {
	m       [3]seat
	request string
	phase   v1alpha1.PDRecoveryPhase // empty without a record
	obeyed  string                   // request of the record
	of      [3]bool                  // survivor of the record
	listed  [3]bool                  // by PD, when it last answered
	recent  bool                     // the quorum has just been lost
	store   int                      // an Instance that PD serves
	late    bool                     // one may still be made
}

// What has become of an Instance that PD serves. Its group was deleted.
const (
	gone = iota
	serves
	waits // it has no pod, but makes one
)

// view is what PD says, and whether two PDs run side by side.
func (w seats) view() (v pd.View, torn bool) {
	old, forked := 0, 0
	for _, m := range w.m {
		if m.runs && m.knows == before {
			old++
		}
		if m.runs && m.knows == itself {
			forked++
		}
	}
	v.ClusterID = "73"
	switch {
	case forked == 1:
		for n, m := range w.m {
			// Another one that has forgotten the others is none of its members.
			if m.knows == joined || m.knows == itself && m.runs {
				v.Members = append(v.Members, pd.Member{Name: name(n), Healthy: m.runs})
			}
			if m.knows == itself && m.runs {
				v.Leader = name(n)
			}
		}
	case old >= 2:
		for n, m := range w.m {
			healthy := m.runs && m.knows == before
			v.Members = append(v.Members, pd.Member{Name: name(n), Healthy: healthy})
			if healthy && v.Leader == "" {
				v.Leader = name(n)
			}
		}
	default:
		v = pd.View{Err: pd.ErrNoLeader}
	}
	return v, forked > 1 || forked > 0 && old > 0
}

func name(n int) string { return fmt.Sprintf("a-%d", n) }

// observe makes of a world what an operator sees of it.
func (w seats) observe(t *testing.T) (*v1alpha1.PDGroup, observation.Snapshot) {
	g := stricken(w.request)
	v, _ := w.view()
	quorum := &g.Status.Conditions[0]
	if v.HasQuorum() {
		quorum.Status = metav1.ConditionTrue
	}
	if w.recent {
		quorum.LastTransitionTime = metav1.NewTime(clock().Add(-time.Second))
	}
	g.Status.Members = nil
	for n := range w.m {
		if w.listed[n] {
			g.Status.Members = append(g.Status.Members, v1alpha1.PDMember{Name: name(n)})
		}
	}
	s := observation.Snapshot{PDGroup: g, Groups: []v1alpha1.Group{g}, Now: clock(), PD: v, Claims: map[string][]metav1.ObjectMeta{}}
	if w.phase != "" {
		g.Status.Recovery = &v1alpha1.PDRecovery{Request: w.obeyed, Phase: w.phase}
	}
	for n, m := range w.m {
		uid := types.UID("uid-" + name(n))
		if r := g.Status.Recovery; r != nil && w.of[n] {
			r.Survivor = v1alpha1.PDRecoveryMember{Name: name(n), UID: uid}
		} else if r != nil {
			r.Discarded = append(r.Discarded, v1alpha1.PDRecoveryMember{Name: name(n), UID: uid})
		}
		if m.there {
			s.Instances = append(s.Instances, w.instance(t, g, n))
		}
		if m.knows != lost {
			claim := metav1.ObjectMeta{Name: "data-" + name(n), UID: types.UID("claim-" + name(n))}
			if m.retired {
				claim.Annotations = map[string]string{v1alpha1.AnnotationRetired: "left"}
			}
			s.Claims[name(n)] = []metav1.ObjectMeta{claim}
		}
	}
	if w.store != gone {
		s.ClusterInstances = []*v1alpha1.Instance{client("TiKVGroup", "b", w.store == serves)}
	}
	return g, s
}

func (w seats) instance(t *testing.T, g *v1alpha1.PDGroup, n int) *v1alpha1.Instance {
	m := w.m[n]
	i := instance(t, g, int32(n), m.runs) //nolint:gosec // three
	if m.remade {
		i.UID = "remade"
	}
	i.Spec.Suspended = m.suspended
	require.NoError(t, setForced(i, m.forced))
	if m.runs && m.flag {
		i.Status.Revision = "r1" + suffix
	}
	if !m.runs && !m.stuck {
		i.Status.Conditions[0].Reason = v1alpha1.ReasonPodMissing
	}
	i.Generation, i.Status.ObservedGeneration = 2, 1
	if m.seen {
		i.Status.ObservedGeneration = 2
	}
	if m.deleted {
		i.DeletionTimestamp = ptr.To(metav1.NewTime(clock()))
	}
	if m.released {
		i.Finalizers = []string{v1alpha1.FinalizerInstance}
	}
	if m.drained {
		i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue})
	}
	if v, _ := w.view(); m.runs && v.HasQuorum() {
		if member, listed := v.Member(i.Name); listed && member.Healthy {
			i.Status.Conditions = append(i.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, ObservedGeneration: 2})
		}
	}
	return i
}

// act returns the worlds that the operator can leave behind: it may be killed
// after each of its writes.
func (w seats) act(t *testing.T) []seats {
	g, s := w.observe(t)
	next, _ := NextRecord(g, s)
	now := w
	var out []seats
	step := func(change func(*seats)) {
		before := now
		if change(&now); now != before {
			out = append(out, now)
		}
	}
	drained := map[string]bool{}
	if IsActive(g) {
		p, err := MakePlan(g, s)
		require.NoError(t, err)
		drained = p.Drained
		for _, c := range p.Instances {
			step(func(w *seats) { w.apply(c) })
		}
		for _, i := range p.Deletes {
			step(func(w *seats) { w.m[i.Spec.Slot].deleted, w.m[i.Spec.Slot].seen = true, false })
		}
	} else {
		w.ordinary(step)
	}
	step(func(w *seats) {
		for n := range w.m {
			w.m[n].drained = w.m[n].drained || drained[name(n)]
		}
	})
	step(func(w *seats) {
		w.phase, w.obeyed, w.of = "", "", [3]bool{}
		if next != nil {
			w.phase, w.obeyed = next.Phase, next.Request
			for n := range w.m {
				w.of[n] = next.Survivor.Name == name(n)
			}
		}
		if s.PD.Err == nil {
			w.listed = [3]bool{}
			for n := range w.m {
				_, w.listed[n] = s.PD.Member(name(n))
			}
		}
	})
	return out
}

func (w *seats) apply(c planning.InstanceChange) {
	m := &w.m[c.Desired.Spec.Slot]
	after := *m
	after.suspended, after.forced = c.Desired.Spec.Suspended, IsForced(c.Desired)
	after.released = !member.HasMemberFinalizer(c.Desired)
	if after != *m {
		after.seen = false
		*m = after
	}
}

// ordinary is the group's ordinary plan, as far as it counts here: no member is
// suspended, and members join a PD that has a quorum where no claim is left.
func (w seats) ordinary(step func(func(*seats))) {
	v, _ := w.view()
	for n := range w.m {
		step(func(w *seats) {
			switch m := &w.m[n]; {
			case m.there && (m.suspended || m.forced):
				m.suspended, m.forced, m.seen = false, false, false
			case !m.there && v.HasQuorum() && !w.listed[n] && m.knows == lost:
				*m = seat{there: true, remade: true, knows: joined}
			case !m.there && v.HasQuorum() && !w.listed[n] && !m.retired:
				m.there, m.remade = true, true // on the claim that is left
			}
		})
	}
}

// run returns the world after an instance operator has looked at a member, once.
func (w seats) run(n int) seats {
	m := &w.m[n]
	m.seen = true
	switch {
	case !m.there:
	case m.deleted && m.released && m.runs, m.suspended && m.runs:
		m.runs, m.flag = false, false
	case m.deleted && m.released:
		*m = seat{knows: m.knows, retired: m.drained, stuck: m.stuck}
	case m.suspended, m.knows == lost:
	case m.runs && m.flag != m.forced:
		m.runs, m.flag = false, false
	case !m.runs && !m.stuck:
		m.runs, m.flag = true, m.forced
		if m.flag && m.knows == before {
			m.knows = itself
		}
	}
	return w
}

// follow returns all worlds that may come next.
func (w seats) follow(t *testing.T) []seats {
	out := w.act(t)
	for n := range w.m {
		out = append(out, w.run(n))
		if w.m[n].stuck {
			back := w
			back.m[n].stuck = false // a node that was given up comes back
			out = append(out, back)
		}
	}
	for n, m := range w.m {
		if m.runs {
			crashed := w
			crashed.m[n].runs, crashed.m[n].flag = false, false
			out = append(out, crashed)
		}
	}
	out = append(out, w.change()...)
	if w.recent {
		later := w
		later.recent = false
		out = append(out, later)
	}
	if w.request == right {
		for _, request := range []string{"", "a-1/73"} {
			changed := w
			changed.request = request
			out = append(out, changed)
		}
	}
	return out
}

// change returns what may become of what PD serves, and of a survivor that has been
// started: its node is lost, or its Instance is taken away by force.
func (w seats) change() (out []seats) {
	step := func(change func(*seats)) {
		next := w
		change(&next)
		out = append(out, next)
	}
	none, marked := true, w.phase == v1alpha1.RecoveryRetiring
	for n, m := range w.m {
		none = none && (!m.forced || m.suspended) && !m.flag
		if w.of[n] && (w.phase == v1alpha1.RecoveryForcing || w.phase == v1alpha1.RecoveryRestarting) && w.late {
			step(func(w *seats) { w.m[n].runs, w.m[n].flag, w.m[n].stuck, w.late = false, false, true, false })
			step(func(w *seats) { w.m[n], w.late = seat{knows: m.knows}, false })
		}
		if marked && !m.there && m.knows != lost && !m.retired {
			step(func(w *seats) { w.m[n].retired = true })
		}
	}
	switch {
	case w.store != gone:
		step(func(w *seats) { w.store = gone })
		step(func(w *seats) { w.store = serves + waits - w.store })
	case w.late && none && (w.phase == v1alpha1.RecoveryStopping || w.phase == v1alpha1.RecoveryForcing):
		step(func(w *seats) { w.store, w.late = serves, false })
	}
	return out
}

// broken says what must not be in a world.
func (w seats) broken() string {
	flags, forced := 0, 0
	for n, m := range w.m {
		if m.runs && m.flag {
			flags++
			forced = n
		}
		if m.remade && m.retired {
			return "a new member has the claim of an old one"
		}
	}
	_, torn := w.view()
	switch {
	case torn:
		return "two PDs run side by side"
	case flags > 1:
		return "two members run with the flag"
	case flags > 0 && w.store == serves:
		return "a store runs beside a member with the flag"
	}
	for n, m := range w.m {
		if flags > 0 && n != forced && (m.runs || m.remade) {
			return "a member runs or joins beside one with the flag"
		}
		if m.remade && w.m[0].forced {
			return "a member joins one that the next start makes forget it"
		}
	}
	if w.phase == "" && flags > 0 {
		return "a member runs with the flag, and nothing records why"
	}
	return ""
}

// beginnings are all small worlds that a recovery may be asked for in.
func beginnings() []seats {
	var out []seats
	states := []seat{
		{there: true, seen: true, runs: true, knows: before},
		{there: true, seen: true, stuck: true, knows: before},
		{there: true, seen: true, knows: lost},
		{there: true, seen: true, knows: lost, deleted: true},
		{there: true, seen: true, runs: true, knows: before, deleted: true},
	}
	for _, a := range states[:4] {
		for _, b := range states {
			for _, c := range states[:3] {
				for _, request := range []string{"", right, "a-1/73", "a-0/74", "a-0"} {
					for _, recent := range []bool{false, true} {
						w := seats{m: [3]seat{a, b, c}, listed: [3]bool{true, true, true}, request: request, recent: recent}
						out = append(out, w)
						if request == right && !recent {
							w.late = true
							out = append(out, w)
							w.store = serves
							out = append(out, w)
						}
					}
				}
			}
		}
	}
	return out
}

// P2, PD-22: from every beginning, whatever is killed, whenever: nothing is done for
// a request that does not match, never do two PDs run side by side, the flag is gone
// before anybody joins, and what has begun comes to its end.
func TestNoOrderOfEventsMakesTwoPDsOfOne(t *testing.T) {
	known := map[seats]bool{}
	var queue []seats
	for _, w := range beginnings() {
		known[w] = true
		queue = append(queue, w)
	}
	begun, finished, ends := 0, 0, map[seats]bool{}
	for len(queue) > 0 {
		w := queue[0]
		queue = queue[1:]
		require.Empty(t, w.broken(), "%+v", w)
		if w.phase != "" {
			begun++
			require.NotContains(t, []string{"a-0/74", "a-0"}, w.request, "%+v", w)
		}
		if w.phase == v1alpha1.RecoveryFinished {
			finished++
		}
		for _, next := range w.follow(t) {
			if !known[next] {
				known[next] = true
				queue = append(queue, next)
			}
		}
	}
	for w := range known {
		if w.phase != "" {
			require.NoError(t, w.ends(t, ends), "%+v", w)
		}
	}
	require.Positive(t, finished)
	fmt.Printf("recovery: %d worlds from %d beginnings, %d of them in a recovery (%d finished), each of which ends\n", len(known), len(beginnings()), begun, finished)
}

// ends is content when what has begun comes to an end without a user, if the
// survivor can run. known are worlds of which that is known.
func (w seats) ends(t *testing.T, known map[seats]bool) error {
	const enough = 60
	for range enough {
		if known[w] {
			return nil
		}
		known[w] = true // or the test ends with one before it
		before := w
		w.recent, w.store, w.late = false, gone, false
		for n := range w.m {
			w.m[n].retired = w.m[n].retired || !w.m[n].there // as its person is told to
		}
		if all := w.act(t); len(all) > 0 {
			w = all[len(all)-1]
		}
		for n := range w.m {
			w = w.run(n)
		}
		if w == before {
			break
		}
	}
	g, s := w.observe(t)
	next, o := NextRecord(g, s)
	switch {
	case next == nil, next.Phase == v1alpha1.RecoveryFinished:
		return nil
	}
	survivor := s.Instance(next.Survivor.Name)
	if (survivor == nil || !meta.IsStatusConditionTrue(survivor.Status.Conditions, v1alpha1.ConditionPodReady)) && o.Message != "" {
		return nil // it is named, and waits for what keeps its pod from running
	}
	return fmt.Errorf("it stands still in %s: %s: %+v", next.Phase, o.Message, w)
}
