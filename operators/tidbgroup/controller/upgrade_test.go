package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// oneUpgrade is what TiDB is told of one upgrade.
var oneUpgrade = []statusport.Verb{statusport.Start, statusport.Finish}

// move is a reconcile, and what the world does meanwhile.
func (s *scene) move() groupPlan {
	s.Now = s.Now.Add(10 * time.Second)
	p := s.step(s.Snapshot())
	s.Advance()
	return p
}

// have counts the pods of a revision.
func (s *scene) have(revision string) (n int) {
	for _, name := range s.Names() {
		if s.Pod(name).Revision == revision {
			n++
		}
	}
	return n
}

// until moves until something holds.
func (s *scene) until(holds func() bool) {
	for range 60 {
		if holds() {
			return
		}
		s.move()
	}
	assert.Fail(s.t, "it does not come to that")
}

func TestDB08TiDBIsToldBeforeTheFirstServerIsRestartedAndAfterTheLast(t *testing.T) {
	for name, surge := range map[string]int32{"with a server more": 1, "in place": 0} {
		t.Run(name, func(t *testing.T) {
			s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.MaxSurge = &surge })
			old := s.Pod("basic-tidb-0").Revision
			assert.Empty(t, s.told, "the first start is no upgrade")
			s.version("v8.5.8")
			p := s.move()
			assert.Equal(t, v1alpha1.ReasonAnnouncingUpgrade, p.Outcome.Reason)
			assert.Empty(t, s.told, "it is recorded first")
			assert.Equal(t, v1alpha1.UpgradeStarting, s.own.Status.Upgrade.State)
			assert.Equal(t, "v8.5.7", s.own.Status.Upgrade.From)
			for range 60 {
				if u := s.own.Status.Upgrade; u != nil && u.State == v1alpha1.UpgradeStarting {
					assert.Equal(t, len(s.Names()), s.have(old), "what TiDB has taken is recorded before anything follows from it")
				}
				if len(s.told) == 1 {
					assert.NotNil(t, s.own.Status.Upgrade)
				}
				s.move()
				if len(s.told) == 2 {
					assert.Zero(t, s.have(old), "it is over when none has the old version")
				}
			}
			assert.Equal(t, oneUpgrade, s.told)
			assert.Nil(t, s.own.Status.Upgrade)
			assert.Equal(t, step.KindDone, s.move().Outcome.Kind)
		})
	}
}

func TestDB08ARevertInTheMiddleEndsTheUpgradeToo(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	old := s.Pod("basic-tidb-0").Revision
	s.version("v8.5.8")
	s.until(func() bool { return s.have(old) < 3 })
	s.version("v8.5.7")
	s.converge()
	assert.Equal(t, oneUpgrade, s.told)
	assert.Nil(t, s.own.Status.Upgrade)
	assert.Equal(t, 3, s.have(old))
}

func TestDB08AnUpgradeThatIsWantedAgainAsItsEndIsToldIsAnnouncedAgain(t *testing.T) {
	for name, done := range map[string]bool{"TiDB has taken it": true, "it is under way": false} {
		t.Run(name, func(t *testing.T) {
			s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
			old := s.Pod("basic-tidb-0").Revision
			s.version("v8.5.8")
			s.until(func() bool { return s.have(old) < 3 })
			s.version("v8.5.7")
			s.until(func() bool { return len(s.told) == 2 })
			require.NotNil(t, s.own.Status.Upgrade, "that it is over is not recorded yet")
			s.answer.Done = done
			s.version("v8.5.8")
			s.converge()
			assert.Equal(t, append(oneUpgrade, oneUpgrade...), s.told)
			assert.Nil(t, s.own.Status.Upgrade)
		})
	}
}

func TestDB08ARevertBeforeTheFirstServerEndsTheUpgradeToo(t *testing.T) {
	s := running(t)
	s.version("v8.5.8")
	s.until(func() bool { return s.own.Status.Upgrade != nil })
	s.version("v8.5.7")
	s.converge()
	assert.Equal(t, []statusport.Verb{statusport.Finish}, s.told, "it is unknown whether it was told to begin")
	assert.Nil(t, s.own.Status.Upgrade)
}

func TestDB08TiDBIsToldOfAnotherVersionDuringAnUpgrade(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	old := s.Pod("basic-tidb-0").Revision
	s.version("v8.5.8-" + grouptest.BadImage)
	s.until(func() bool { return len(s.told) > 0 })
	s.version("v8.5.9")
	s.converge()
	assert.Equal(t, []statusport.Verb{statusport.Start, statusport.Start, statusport.Finish}, s.told)
	assert.Zero(t, s.have(old))
	assert.Nil(t, s.own.Status.Upgrade)
}

// What an operator remembers is forgotten before every reconcile.
func TestDB08AnOperatorThatIsKilledAtAnyPointGoesOn(t *testing.T) {
	s := running(t)
	old := s.Pod("basic-tidb-0").Revision
	s.version("v8.5.8")
	for n := range 100 {
		if n%3 > 0 {
			s.answer = statusport.Answer{}
		}
		s.move()
	}
	assert.Zero(t, s.have(old))
	assert.Nil(t, s.own.Status.Upgrade)
	assert.Equal(t, statusport.Start, s.told[0])
	assert.Equal(t, statusport.Finish, s.told[len(s.told)-1])
}

func TestDB08ARefusedOrderDelaysTheRollByTwoMinutesAtMost(t *testing.T) {
	s := running(t)
	s.refuse = errors.New("post to http://10.0.0.1:10080/upgrade/start: 400 Bad Request: no owner")
	s.version("v8.5.8")
	began := s.Now
	s.until(func() bool {
		return s.own.Status.Upgrade != nil && s.own.Status.Upgrade.State == v1alpha1.UpgradeUnannounced
	})
	held := s.Now.Sub(began)
	assert.GreaterOrEqual(t, held, announceTimeout)
	assert.Less(t, held, announceTimeout+time.Minute)
	assert.Equal(t, 2, s.have(s.own.Status.CurrentRevision))
	s.until(func() bool { return s.own.Status.Version == "v8.5.8" && len(s.Names()) == 2 })
	p := s.move()
	assert.Equal(t, v1alpha1.ReasonAnnouncingUpgrade, p.Outcome.Reason, "that it is over is told all the same")
	assert.Contains(t, p.Outcome.Message, "400 Bad Request: no owner")
	assert.Positive(t, p.Outcome.After, "until TiDB takes it")
	s.refuse = nil
	s.converge()
	assert.Nil(t, s.own.Status.Upgrade)
}

func TestDB08AnOrderThatIsUnderWayIsNotPlannedAgain(t *testing.T) {
	s := running(t)
	s.version("v8.5.8")
	s.until(func() bool { return len(s.told) == 1 })
	s.answer.Done = false
	p := s.move()
	assert.Nil(t, p.Order)
	assert.Equal(t, v1alpha1.ReasonAnnouncingUpgrade, p.Outcome.Reason)
	assert.Len(t, s.told, 1)
	s.answer.Done = true
	s.converge()
	assert.Equal(t, oneUpgrade, s.told)
}

func TestDB08OnlyAChangeOfTheVersionIsAnUpgrade(t *testing.T) {
	for name, edit := range map[string]func(*scene){
		"a new configuration": func(s *scene) {
			s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Config = "[log]\nlevel = \"warn\"\n" })
		},
		"a version that is no number": func(s *scene) { s.version("nightly") },
		"a step backwards":            func(s *scene) { s.version("v8.5.6") },
		"more servers":                func(s *scene) { s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(4)) }) },
		"a version of stopped servers": func(s *scene) {
			s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended, g.Spec.Version = true, "v8.5.8" })
		},
		"a version while none serves": func(s *scene) { s.fail(); s.version("v8.5.8") },
		"a version that is held before": func(s *scene) {
			s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Disruption = &v1alpha1.Disruption{Paused: true} })
			s.version("v8.5.8")
		},
		"a version of a paused group": func(s *scene) { s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true }); s.version("v8.5.8") },
	} {
		t.Run(name, func(t *testing.T) {
			s := running(t)
			edit(s)
			for range 30 {
				s.move()
			}
			assert.Empty(t, s.told)
			assert.Nil(t, s.own.Status.Upgrade)
		})
	}
}

// fail makes every server fail.
func (s *scene) fail() {
	for _, name := range s.Names() {
		s.Break(name)
		s.Operate(name)
	}
}

func TestDB08AnUpgradeIsOverWhenNoGroupOfThePDGroupIsUpgrading(t *testing.T) {
	s := running(t)
	other := stored()
	other.Name, other.UID = "other-tidb", "other-uid"
	other.Status.Replicas, other.Status.UpdatedReplicas, other.Status.ObservedGeneration = 2, 1, other.Generation
	other.Status.Upgrade = &v1alpha1.TiDBUpgrade{From: "v8.5.7", To: "v8.5.8", State: v1alpha1.UpgradeStarted}
	s.others = []v1alpha1.Group{other}
	s.version("v8.5.8")
	for range 40 {
		s.move()
	}
	assert.Equal(t, []statusport.Verb{statusport.Start}, s.told)
	require.NotNil(t, s.own.Status.Upgrade, "it is remembered")
	assert.Equal(t, step.KindDone, s.move().Outcome.Kind, "its own servers are what they are to be")
	other.Status.UpdatedReplicas, other.Status.UpdateRevision = 2, "new"
	stops := &v1alpha1.Instance{}
	stops.Spec.Group.Kind, stops.Spec.Group.Name, stops.Spec.Revision = v1alpha1.KindTiDBGroup, other.Name, "new"
	stops.Status.PodUID, stops.Status.Revision = "its-pod", "old"
	s.siblings = []*v1alpha1.Instance{stops}
	s.converge()
	assert.Equal(t, []statusport.Verb{statusport.Start}, s.told, "its last server still runs the old version")
	stops.Status.Revision = "new"
	s.converge()
	assert.Equal(t, oneUpgrade, s.told, "though the other one has not told yet that it is over")
	assert.Nil(t, s.own.Status.Upgrade)
}
