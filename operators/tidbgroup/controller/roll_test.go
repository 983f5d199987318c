package controller

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// scene is a TiDBGroup in memory, with all that is around it.
type scene struct {
	*grouptest.Simulation
	t   assert.TestingT
	own *v1alpha1.TiDBGroup
	// told is what TiDB was told of upgrades, refuse what it says to it; the operator
	// remembers the answer.
	told   []statusport.Verb
	refuse error
	answer statusport.Answer
	// others are TiDBGroups of the same PDGroup, siblings their Instances.
	others   []v1alpha1.Group
	siblings []*v1alpha1.Instance
}

func play(t assert.TestingT, changes ...func(*v1alpha1.TiDBGroup)) *scene {
	own := stored(changes...)
	return &scene{Simulation: grouptest.New(own), t: t, own: own}
}

// running is play with all servers at work.
func running(t assert.TestingT, changes ...func(*v1alpha1.TiDBGroup)) *scene {
	s := play(t, changes...)
	s.converge()
	return s
}

func (s *scene) edit(change func(*v1alpha1.TiDBGroup)) {
	change(s.own)
	s.own.Generation++
}

func (s *scene) version(v string) { s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Version = v }) }

// step is one reconcile, made from a snapshot that was taken before.
func (s *scene) step(seen observation.Snapshot) groupPlan {
	known := open()
	seen.PDGroup, seen.TiKVGroups = known.PDGroup, known.TiKVGroups
	seen.Groups, seen.Siblings = append(seen.Groups, s.others...), append(seen.Siblings, s.siblings...)
	p, err := makePlan(s.own, snapshot{Snapshot: seen, Answer: s.answer})
	assert.NoError(s.t, err)
	s.ExecutePlan(seen, p.Plan)
	s.Report(seen, p.Plan)
	if s.own.Status.Upgrade = p.Upgrade; p.Order != nil {
		s.told = append(s.told, p.Order.Verb)
		s.answer = statusport.Answer{Order: *p.Order, Done: true, At: s.Now, Err: s.refuse}
	}
	return p
}

// converge lets everybody do what they can, and all of it.
func (s *scene) converge() {
	for range 100 {
		s.Now = s.Now.Add(10 * time.Second)
		p := s.step(s.Snapshot())
		s.Advance()
		if p.Outcome.Kind == step.KindDone && s.step(s.Snapshot()).Outcome.Kind == step.KindDone {
			return
		}
	}
	assert.Fail(s.t, "it does not converge", "%v", s.step(s.Snapshot()).Outcome)
}

func (s *scene) versions() []string {
	var out []string
	for _, i := range s.Instances() {
		out = append(out, i.Name+" "+s.Pod(i.Name).Revision)
	}
	return out
}

func TestDB04ARollAddsAServerFirstAndNamesStay(t *testing.T) {
	s := running(t)
	old := s.Pod("basic-tidb-0").Revision
	s.version("v8.5.8")
	var seen [][]string
	for range 40 {
		s.step(s.Snapshot())
		if names := s.Names(); len(seen) == 0 || !slices.Equal(seen[len(seen)-1], names) {
			seen = append(seen, names)
		}
		if len(s.Names()) == 3 && !s.Pod("basic-tidb-2").Ready {
			assert.Equal(t, old, s.Pod("basic-tidb-0").Revision)
			assert.Equal(t, old, s.Pod("basic-tidb-1").Revision, "no server is stopped before the additional one serves")
		}
		assert.GreaterOrEqual(t, s.CountServing(), 2)
		for _, name := range s.Names() {
			s.Operate(name)
		}
		assert.GreaterOrEqual(t, s.CountServing(), 2)
		for _, name := range s.Names() {
			s.Start(name)
			s.Operate(name)
		}
	}
	two, three := []string{"basic-tidb-0", "basic-tidb-1"}, []string{"basic-tidb-0", "basic-tidb-1", "basic-tidb-2"}
	assert.Equal(t, [][]string{two, three, two}, seen)
	for _, name := range two {
		assert.NotEqual(t, old, s.Pod(name).Revision)
	}
}

func TestDB04WithoutSurgeOneServerAtATimeIsRestartedInPlace(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.MaxSurge, g.Spec.Replicas = ptr.To(int32(0)), ptr.To(int32(3)) })
	s.OnStop = func(_ grouptest.Pod, others int) { assert.Equal(t, 2, others) }
	s.version("v8.5.8")
	s.converge()
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1", "basic-tidb-2"}, s.Names())
}

func TestDB04AWrongImageStopsAtTheAdditionalServerAndIsReverted(t *testing.T) {
	s := running(t)
	before := s.versions()
	s.OnStop = func(p grouptest.Pod, others int) { assert.Equal(t, "basic-tidb-2", p.Name, "%d others serve", others) }
	s.version("v8.5.8-" + grouptest.BadImage)
	for range 30 {
		s.Now = s.Now.Add(time.Minute)
		s.step(s.Snapshot())
		s.Advance()
	}
	p := s.step(s.Snapshot())
	assert.Equal(t, v1alpha1.ReasonImagePullFailed, p.Outcome.Reason)
	assert.Len(t, s.Names(), 3)
	s.version("v8.5.7")
	s.converge()
	assert.Equal(t, before, s.versions())
}

func TestANewSpecSupersedesAHalfDoneRoll(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	stops := map[string]int{}
	s.OnStop = func(p grouptest.Pod, others int) {
		stops[p.Name]++
		assert.GreaterOrEqual(t, others, 3)
	}
	s.version("v8.5.8")
	for s.Pod("basic-tidb-2").Revision == s.Pod("basic-tidb-1").Revision {
		s.step(s.Snapshot())
		s.Advance()
	}
	s.version("v8.5.9")
	s.converge()
	assert.Equal(t, 2, stops["basic-tidb-2"], "it was restarted twice")
	assert.Equal(t, 1, stops["basic-tidb-1"])
	assert.Equal(t, 1, stops["basic-tidb-0"])
}

func TestDB03AScaleInRemovesTheNewestUnlessAnotherIsNamed(t *testing.T) {
	four := func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(4)) }
	s := running(t, four)
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(2)) })
	s.converge()
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1"}, s.Names())

	s = running(t, four)
	s.Annotate("basic-tidb-1", v1alpha1.AnnotationRemoveFirst, "")
	s.Break("basic-tidb-0")
	s.Operate("basic-tidb-0")
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(2)) })
	s.converge()
	assert.Equal(t, []string{"basic-tidb-2", "basic-tidb-3"}, s.Names(), "the one that is named goes, and then the one that does not serve")
}

func TestALeavingServerDoesNotCountWhenAnotherIsRestarted(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	s.OnStop = func(p grouptest.Pod, others int) { assert.Positive(t, others, "%s stops", p.Name) }
	s.Annotate("basic-tidb-0", v1alpha1.AnnotationRemoveFirst, "")
	s.Break("basic-tidb-2")
	s.Operate("basic-tidb-2")
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas, g.Spec.Version = ptr.To(int32(1)), "v8.5.8" })
	for range 4 {
		// The one that broke does not come back for a while.
		s.step(s.Snapshot())
		s.Operate("basic-tidb-0")
		s.Operate("basic-tidb-1")
	}
	assert.True(t, s.Pod("basic-tidb-1").Ready, "it is the only one that serves and stays")
	s.converge()
}

func TestANewVersionReachesASuspendedGroup(t *testing.T) {
	s := running(t)
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended, g.Spec.Version = true, "v8.5.8" })
	s.converge()
	assert.Zero(t, s.CountServing())
	stops := 0
	s.OnStop = func(grouptest.Pod, int) { stops++ }
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = false })
	s.converge()
	assert.Equal(t, 2, s.CountServing())
	assert.Zero(t, stops, "no server starts with the old version first")
}

func TestADeletedServerIsReplacedAtOnceInAnotherSlot(t *testing.T) {
	s := running(t)
	s.Delete("basic-tidb-0")
	p := s.step(s.Snapshot())
	assert.Contains(t, s.Names(), "basic-tidb-2", "%v", p.Notes)
	s.converge()
	assert.Equal(t, []string{"basic-tidb-1", "basic-tidb-2"}, s.Names())
}

func TestOPS01AnAnnotationRestartsOneServerWithoutLosingCapacity(t *testing.T) {
	s := running(t)
	first, second := s.Pod("basic-tidb-0").UID, s.Pod("basic-tidb-1").UID
	s.OnStop = func(_ grouptest.Pod, others int) { assert.GreaterOrEqual(t, others, 2) }
	s.Annotate("basic-tidb-0", v1alpha1.AnnotationRestart, "now")
	s.converge()
	assert.NotEqual(t, first, s.Pod("basic-tidb-0").UID)
	assert.Equal(t, second, s.Pod("basic-tidb-1").UID)
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1"}, s.Names())
}

func TestACanaryIsOneServerAndTheRollStaysThere(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	old := s.Pod("basic-tidb-0").Revision
	s.edit(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Version, g.Spec.Disruption = "v8.5.8", &v1alpha1.Disruption{UpdateAtMost: ptr.To(int32(1))}
	})
	for range 60 {
		s.Now = s.Now.Add(time.Minute)
		s.step(s.Snapshot())
		s.Advance()
	}
	assert.Equal(t, v1alpha1.ReasonUpdateHeld, s.step(s.Snapshot()).Outcome.Reason)
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1", "basic-tidb-2"}, s.Names())
	assert.Equal(t, old, s.Pod("basic-tidb-0").Revision)
	assert.Equal(t, old, s.Pod("basic-tidb-1").Revision)
	assert.NotEqual(t, old, s.Pod("basic-tidb-2").Revision)
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(4)) })
	for range 10 {
		s.step(s.Snapshot())
		s.Advance()
	}
	assert.Equal(t, old, s.Pod("basic-tidb-3").Revision, "who is added is no canary")
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Disruption = nil })
	s.converge()
	assert.NotEqual(t, old, s.Pod("basic-tidb-0").Revision)
}

func TestDB06AServerThatIsMissedForLongHasASubstituteUntilItIsBack(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) {
		g.Spec.Failover = &v1alpha1.TiDBFailover{Max: 1, After: metav1.Duration{Duration: 5 * time.Minute}}
	})
	s.Break("basic-tidb-0")
	s.Operate("basic-tidb-0")
	p := s.step(s.Snapshot())
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1"}, s.Names())
	assert.Equal(t, time.Minute, p.Outcome.After, "the deadline of the wait for the Instance comes first")
	s.Now = s.Now.Add(4*time.Minute + 50*time.Second)
	assert.Equal(t, 10*time.Second, s.step(s.Snapshot()).Outcome.After, "it looks again when the time has come")
	s.Now = s.Now.Add(10 * time.Second)
	s.step(s.Snapshot())
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1", "basic-tidb-2"}, s.Names())
	s.Operate("basic-tidb-2")
	s.Start("basic-tidb-2")
	s.Operate("basic-tidb-2")
	for range 5 {
		s.step(s.Snapshot())
	}
	assert.Len(t, s.Names(), 3)
	assert.Equal(t, 2, s.CountServing())
	s.converge()
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-1"}, s.Names())
}

func TestDB06ACrashLoopingServerKeepsItsSubstitute(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) {
		g.Spec.Failover = &v1alpha1.TiDBFailover{Max: 1, After: metav1.Duration{Duration: 5 * time.Minute}}
	})
	three := []string{"basic-tidb-0", "basic-tidb-1", "basic-tidb-2"}
	pass := func(d time.Duration) (last groupPlan) {
		for range d / (10 * time.Second) {
			s.Now = s.Now.Add(10 * time.Second)
			last = s.step(s.Snapshot())
			s.Operate("basic-tidb-2")
			s.Start("basic-tidb-2")
			s.Operate("basic-tidb-2")
		}
		return last
	}
	crash := func() { s.Break("basic-tidb-0"); s.Operate("basic-tidb-0") }
	serve := func() { s.Start("basic-tidb-0"); s.Operate("basic-tidb-0") }
	crash()
	pass(6 * time.Minute)
	require.Equal(t, three, s.Names())
	stoodIn := s.Pod("basic-tidb-2").UID
	for range 5 {
		serve()
		p := pass(4 * time.Minute)
		assert.Equal(t, v1alpha1.ReasonRecovering, p.Outcome.Reason)
		assert.Equal(t, time.Minute, p.Outcome.After, "it looks again when the server has served for long enough")
		crash()
		pass(time.Minute)
		require.Equal(t, three, s.Names())
		require.Equal(t, stoodIn, s.Pod("basic-tidb-2").UID)
	}
	serve()
	pass(4 * time.Minute)
	require.Equal(t, three, s.Names())
	s.converge()
	assert.Equal(t, three[:2], s.Names())
	assert.Empty(t, s.Instances()[0].Annotations[v1alpha1.AnnotationFailedOver])
	crash()
	pass(4 * time.Minute)
	assert.Equal(t, three[:2], s.Names(), "it has to be missed again")
}

// The pods and the instance operator do nothing between the permission to stop
// a server and the scale-in: then those that leave go first, and it stops last.
func TestDB04AScaleInLeavesEnoughBesideAServerThatMayStop(t *testing.T) {
	cases := map[string]struct {
		from, to, surge int32
		granted         string // may stop when the group is scaled in; empty for none
		down            string // does not serve then
	}{
		"the last of a roll":        {from: 3, to: 2, surge: 1, granted: "basic-tidb-0"},
		"the last of a larger one":  {from: 4, to: 2, surge: 2, granted: "basic-tidb-0"},
		"the first of a roll":       {from: 4, to: 1, surge: 1, granted: "basic-tidb-3"},
		"an edit of both":           {from: 4, to: 1, surge: 1},
		"an edit of both, one down": {from: 4, to: 2, surge: 1, down: "basic-tidb-2"},
		"no surge":                  {from: 4, to: 2, surge: 0, down: "basic-tidb-1"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas, g.Spec.MaxSurge = &c.from, &c.surge })
			s.version("v8.5.8")
			for range 40 {
				if i := slices.Index(s.Names(), c.granted); i < 0 || s.Instances()[i].Spec.Revision != s.Pod(c.granted).Revision {
					break
				}
				s.Advance()
				s.step(s.Snapshot())
			}
			if c.down != "" {
				s.Break(c.down)
				s.Operate(c.down)
			}
			least := int(c.to)
			if c.surge == 0 {
				least--
			}
			s.OnStop = func(p grouptest.Pod, others int) {
				if s.Instances()[slices.Index(s.Names(), p.Name)].DeletionTimestamp == nil {
					assert.GreaterOrEqual(t, others, least, "%s stops", p.Name)
				}
			}
			s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = &c.to })
			for range 40 {
				for range 5 {
					s.step(s.Snapshot())
				}
				newest := s.Names()
				slices.Reverse(newest)
				s.AdvanceIn(newest)
			}
			s.converge()
			assert.Len(t, s.Names(), int(c.to))
		})
	}
}

func TestDB04ALeavingServerDoesNotCountAsAvailable(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(4)) })
	stopped := func(p groupPlan) (names []string) {
		for _, c := range p.Instances {
			if c.Stops {
				names = append(names, c.Desired.Name)
			}
		}
		return names
	}
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas, g.Spec.Version = ptr.To(int32(1)), "v8.5.8" })
	assert.Empty(t, stopped(s.step(s.Snapshot())), "it is said first who leaves")
	s.Break("basic-tidb-1")
	for _, name := range s.Names() {
		s.Operate(name)
	}
	assert.Empty(t, stopped(s.step(s.Snapshot())), "only basic-tidb-0 serves and stays")
	s.converge()
}

// However the moves fall, a roll never leaves fewer servers than are asked for,
// and comes to its end.
func TestDB04ARollNeverStopsMoreServersThanAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		surge, replicas := rapid.Int32Range(0, 3).Draw(t, "surge"), rapid.Int32Range(0, 4).Draw(t, "replicas")
		s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.MaxSurge, g.Spec.Replicas = &surge, ptr.To(replicas) })
		least := replicas // of what was asked for while anything moved
		s.OnStop = func(pod grouptest.Pod, others int) {
			i := s.Instances()[slices.Index(s.Names(), pod.Name)]
			if i.DeletionTimestamp != nil {
				return // it is not restarted
			}
			if surge > 0 {
				assert.GreaterOrEqual(t, others, int(least), "%s stops", pod.Name)
			} else {
				assert.GreaterOrEqual(t, others, int(least)-1, "%s stops", pod.Name)
			}
		}
		outdated := s.Snapshot()
		t.Repeat(map[string]func(*rapid.T){
			"reconcile":                 func(*rapid.T) { s.step(s.Snapshot()) },
			"look":                      func(*rapid.T) { outdated = s.Snapshot() },
			"reconcile what was so":     func(*rapid.T) { s.step(outdated) },
			"reconcile again and again": func(*rapid.T) { s.step(s.Snapshot()); s.step(s.Snapshot()); s.step(s.Snapshot()) },
			"all advance":               func(t *rapid.T) { s.AdvanceIn(s.shuffled(t)) },
			"all advance and reconcile": func(t *rapid.T) { s.AdvanceIn(s.shuffled(t)); s.step(s.Snapshot()) },
			"operate":                   func(t *rapid.T) { s.Operate(s.any(t)) },
			"start":                     func(t *rapid.T) { s.Start(s.any(t)) },
			"time passes":               func(*rapid.T) { s.Now = s.Now.Add(time.Minute) },
			"restart one by annotation": func(t *rapid.T) { s.Annotate(s.any(t), v1alpha1.AnnotationRestart, fmt.Sprint(s.Now)) },
			"edit": func(t *rapid.T) {
				s.version(rapid.SampledFrom([]string{"v8.5.7", "v8.5.8", "v8.5.9", "v8.6.0", "v8.5.8-" + grouptest.BadImage}).Draw(t, "version"))
			},
			"scale": func(t *rapid.T) {
				n := rapid.Int32Range(0, 4).Draw(t, "to")
				s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = &n })
				least = min(least, n)
			},
			"pause disruptions": func(t *rapid.T) {
				p := rapid.Bool().Draw(t, "paused")
				s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Disruption = &v1alpha1.Disruption{Paused: p} })
			},
			"canary": func(t *rapid.T) {
				n := rapid.Int32Range(0, 3).Draw(t, "at most")
				s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Disruption = &v1alpha1.Disruption{UpdateAtMost: &n} })
			},
			"": func(t *rapid.T) {
				assert.LessOrEqual(t, len(s.Names()), 4+3+4, "Instances")
			},
		})
		s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Disruption, g.Spec.Version = nil, "v8.6.1" })
		s.converge()
		require.Len(t, s.Names(), int(s.own.GetReplicas()))
		for _, i := range s.Instances() {
			assert.Empty(t, i.Annotations[v1alpha1.AnnotationSurge])
			assert.Equal(t, i.Spec.Revision, s.own.Status.CurrentRevision)
			assert.True(t, s.Pod(i.Name).Ready)
		}
		if len(s.Names()) > 0 {
			assert.Nil(t, s.own.Status.Upgrade, "no upgrade is left behind")
		}
		if n := len(s.told); n > 0 && s.own.Status.Upgrade == nil {
			assert.Equal(t, statusport.Finish, s.told[n-1])
		}
	})
}

// any draws the name of an Instance; one that does not exist if there is none.
func (s *scene) any(t *rapid.T) string {
	return rapid.SampledFrom(append(s.Names(), "none")).Draw(t, "instance")
}

// shuffled draws an order of the Instances.
func (s *scene) shuffled(t *rapid.T) []string {
	return rapid.Permutation(s.Names()).Draw(t, "order")
}

// A server may drain for as long as spec.shutdown says, which is no time to wait for another.
func TestDB04AServerIsAddedWhileOneThatLeavesStillDrains(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	move := func() {
		s.Now = s.Now.Add(10 * time.Second)
		seen := s.Snapshot()
		p := s.step(seen)
		for _, m := range reportMembers(s.own, snapshot{Snapshot: seen}, p, s.Now) {
			s.WriteMemberStatus(m)
		}
		s.AdvanceIn(slices.DeleteFunc(s.Names(), func(name string) bool { return name == "basic-tidb-2" }))
	}
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(2)) })
	for range 10 {
		move()
	}
	require.NotEmpty(t, s.Pod("basic-tidb-2").UID, "it drains")
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	for range 3 {
		move()
	}
	assert.Contains(t, s.Names(), "basic-tidb-3")
}
