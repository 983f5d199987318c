package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/ticdcgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/member"
	"github.com/tidb-groups/tidb-groups/shared/observation"
	"github.com/tidb-groups/tidb-groups/shared/stateless"
	"github.com/tidb-groups/tidb-groups/shared/step"
	"github.com/tidb-groups/tidb-groups/shared/testkit/stage"
)

// clock is a time of whole seconds, as the API keeps it.
func clock() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }

// pdGroup is the PDGroup of the sample. It is Ready.
func pdGroup() *v1alpha1.PDGroup {
	pd := stage.PDGroup("shop")
	pd.Generation = 1
	set := conditions.New(nil, 1, clock())
	set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "it serves")
	pd.Status.Conditions = set.List()
	return pd
}

// tikvGroup is a TiKVGroup of the PDGroup. It is Ready.
func tikvGroup() *v1alpha1.TiKVGroup {
	tikv := stage.TiKVGroup("shop")
	tikv.Generation = 1
	set := conditions.New(nil, 1, clock())
	set.MarkTrue(v1alpha1.ConditionReady, v1alpha1.ReasonReady, "it serves")
	tikv.Status.Conditions = set.List()
	return tikv
}

// scene is a TiCDCGroup in memory, with all that is around it.
type scene struct {
	*grouptest.Simulation
	t   *testing.T
	own *v1alpha1.TiCDCGroup
	pd  *v1alpha1.PDGroup
	// owner is the capture that owns.
	owner string
	// fewest is how many captures have served at least since the scene came to rest.
	fewest int
}

// running is a scene with all captures at work.
func running(t *testing.T, changes ...func(*v1alpha1.TiCDCGroup)) *scene {
	t.Helper()
	own := sample(changes...)
	s := &scene{Simulation: grouptest.New(own), t: t, own: own, pd: pdGroup()}
	s.converge()
	s.fewest = s.CountServing()
	return s
}

func (s *scene) edit(change func(*v1alpha1.TiCDCGroup)) {
	change(s.own)
	s.own.Generation++
}

// step is one reconcile.
func (s *scene) step() groupPlan {
	seen := s.Snapshot()
	seen.PDGroup, seen.Image = s.pd, ownImage
	seen.TiKVGroups, seen.StatusPorts = []*v1alpha1.TiKVGroup{tikvGroup()}, s.says()
	p, err := makePlan(s.own, seen)
	require.NoError(s.t, err)
	s.ExecutePlan(seen, p.Plan)
	s.Report(seen, p.Plan)
	return p
}

// converge reconciles until nothing is left to do, and returns the last outcome.
func (s *scene) converge() step.Outcome {
	s.t.Helper()
	var out step.Outcome
	for range 80 {
		s.Now = s.Now.Add(10 * time.Second)
		out = s.step().Outcome
		s.fewest = min(s.fewest, s.CountServing())
		for _, name := range s.Names() {
			s.Operate(name)
			s.fewest = min(s.fewest, s.CountServing())
		}
		s.Advance()
	}
	return out
}

// says is what the captures say of themselves.
func (s *scene) says() map[string]member.StatusPortAnswer {
	out := map[string]member.StatusPortAnswer{}
	for _, name := range s.Names() {
		out[name] = member.StatusPortAnswer{State: statusport.Capture}
		if name == s.owner {
			out[name] = member.StatusPortAnswer{State: statusport.Owner}
		}
	}
	return out
}

func TestCapturesWaitForPDAndAStore(t *testing.T) {
	for name, c := range map[string]struct {
		seen  observation.Snapshot
		count int
		says  string
	}{
		"no PDGroup":      {observation.Snapshot{}, 0, "PDGroup basic-pd does not exist"},
		"no TiKVGroup":    {observation.Snapshot{PDGroup: pdGroup()}, 0, "no TiKVGroup names PDGroup basic-pd"},
		"both, and Ready": {observation.Snapshot{PDGroup: pdGroup(), TiKVGroups: []*v1alpha1.TiKVGroup{tikvGroup()}}, 3, "PDGroup basic-pd and a TiKVGroup of it are Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			c.seen.Now = clock()
			p, err := makePlan(sample(), c.seen)
			require.NoError(t, err)
			assert.Len(t, p.Instances, c.count)
			status, _ := reportStatus(sample(), c.seen, p, step.Done(), clock())
			at := slices.IndexFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionDependenciesReady })
			require.GreaterOrEqual(t, at, 0)
			assert.Contains(t, status.Conditions[at].Message, c.says)
		})
	}
}

func TestCDC01OneCaptureAtATimeIsRestartedInPlace(t *testing.T) {
	s := running(t)
	s.edit(func(g *v1alpha1.TiCDCGroup) { g.Spec.Version = "v8.5.8" })
	s.converge()
	assert.Equal(t, []string{"basic-ticdc-0", "basic-ticdc-1", "basic-ticdc-2"}, s.Names())
	assert.Equal(t, 2, s.fewest)
}

func TestCDC02TheOwnerIsRestartedLast(t *testing.T) {
	for _, owner := range []string{"basic-ticdc-0", "basic-ticdc-1", "basic-ticdc-2"} {
		s := running(t)
		s.owner = owner
		var stopped []string
		s.OnStop = func(p grouptest.Pod, _ int) { stopped = append(stopped, p.Name) }
		s.edit(func(g *v1alpha1.TiCDCGroup) { g.Spec.Version = "v8.5.8" })
		s.converge()
		require.Len(t, stopped, 3)
		assert.Equal(t, owner, stopped[2])
	}
}

func TestCDC01AScaleInRemovesOneCaptureAtATime(t *testing.T) {
	s := running(t)
	s.edit(func(g *v1alpha1.TiCDCGroup) { g.Spec.Replicas = ptr.To[int32](1) })
	for n := range 20 {
		before := len(s.Names())
		s.owner = []string{"basic-ticdc-1", "basic-ticdc-2", "basic-ticdc-0"}[n%3]
		s.step()
		deleted := 0
		for _, i := range s.Instances() {
			if i.DeletionTimestamp != nil {
				deleted++
			}
		}
		assert.LessOrEqual(t, deleted, 1)
		s.Advance()
		assert.LessOrEqual(t, before-len(s.Names()), 1)
	}
	assert.Equal(t, []string{"basic-ticdc-0"}, s.Names())
}

// The pod of one that was released hands over for as long as spec.drainSeconds says.
func TestCDC01AScaleInWaitsForACaptureThatStillHandsOver(t *testing.T) {
	s := running(t)
	s.edit(func(g *v1alpha1.TiCDCGroup) { g.Spec.Replicas = ptr.To[int32](1) })
	leaving := func() (out []string) {
		for _, i := range s.Instances() {
			if i.DeletionTimestamp != nil || i.Spec.Retire {
				out = append(out, i.Name)
			}
		}
		return out
	}
	var last step.Outcome
	for range 20 {
		s.Now = s.Now.Add(10 * time.Second)
		last = s.step().Outcome
		s.AdvanceIn(slices.DeleteFunc(s.Names(), func(name string) bool { return slices.Contains(leaving(), name) }))
		require.LessOrEqual(t, len(leaving()), 1)
	}
	assert.Equal(t, []string{"basic-ticdc-2"}, leaving())
	assert.Equal(t, v1alpha1.ReasonDraining, last.Reason)
	assert.Equal(t, "Instance basic-ticdc-1 (spec.replicas is 1) leaves when the pod of the one before it has stopped: kubectl -n shop get pods", last.Message)
	s.converge()
	assert.Equal(t, []string{"basic-ticdc-0"}, s.Names())
}

func TestCDC01ARestartWaitsForACaptureThatStillHandsOver(t *testing.T) {
	s := running(t)
	var stopped []string
	s.OnStop = func(p grouptest.Pod, _ int) { stopped = append(stopped, p.Name) }
	s.edit(func(g *v1alpha1.TiCDCGroup) { g.Spec.Replicas, g.Spec.Version = ptr.To[int32](2), "v8.5.8" })
	var last step.Outcome
	for range 20 {
		s.Now = s.Now.Add(10 * time.Second)
		last = s.step().Outcome
		s.AdvanceIn([]string{"basic-ticdc-0", "basic-ticdc-1"})
	}
	assert.Empty(t, stopped)
	assert.Contains(t, last.Message, "Instance basic-ticdc-2 hands over and leaves first: kubectl -n shop get pods")
	s.converge()
	assert.ElementsMatch(t, []string{"basic-ticdc-2", "basic-ticdc-1", "basic-ticdc-0"}, stopped)
}

// TiCDC drains one capture at a time: of two that stop together one is refused until its grace is over.
func TestCDC01ACaptureThatIsBeingRestartedStopsAlone(t *testing.T) {
	for name, replicas := range map[string]int32{"one more is to leave": 2, "two more are to leave": 1, "no other one has to stay": 0} {
		t.Run(name, func(t *testing.T) {
			s := running(t)
			stopping := func() (out []string) {
				for _, i := range s.Instances() {
					if s.HasToStop(i) || i.Spec.Retire {
						out = append(out, i.Name)
					}
				}
				return out
			}
			s.StopsLate = func(string) bool { return true }
			s.edit(func(g *v1alpha1.TiCDCGroup) { g.Spec.Version = "v8.5.8" })
			s.step()
			require.Equal(t, []string{"basic-ticdc-2"}, stopping())
			s.edit(func(g *v1alpha1.TiCDCGroup) { g.Spec.Replicas = &replicas })
			for range 10 {
				s.Now = s.Now.Add(10 * time.Second)
				s.Advance()
				o := s.step().Outcome
				require.Equal(t, []string{"basic-ticdc-2"}, stopping())
				assert.NotEmpty(t, o.Message)
			}
			s.StopsLate = nil
			s.converge()
			assert.Len(t, s.Names(), int(replicas))
		})
	}
}

// It may never stop, and hands over nothing that it could be waited for.
func TestCDC01AScaleInDoesNotWaitForALostCapture(t *testing.T) {
	lost := &v1alpha1.Instance{}
	lost.DeletionTimestamp, lost.Status.PodUID = &metav1.Time{Time: clock()}, "pod"
	c := captures{Members: stateless.Members{Seen: []*v1alpha1.Instance{lost}}}
	assert.Equal(t, 0, c.MaxConcurrentRemovals())
	lost.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeUnreachable}}
	assert.Equal(t, 1, c.MaxConcurrentRemovals())
	lost.Status.Conditions, lost.Status.PodUID = nil, ""
	assert.Equal(t, 1, c.MaxConcurrentRemovals())
	lost.Status.PodUID, lost.Finalizers = "pod", []string{v1alpha1.FinalizerMember}
	assert.Equal(t, 1, c.MaxConcurrentRemovals(), "it is counted as one that leaves")
	lost.DeletionTimestamp, lost.Spec.Revision = nil, "new"
	assert.Equal(t, 0, c.MaxConcurrentRemovals(), "it is being restarted")
	lost.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionPodReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNodeUnreachable}}
	assert.Equal(t, 1, c.MaxConcurrentRemovals(), "its node does not answer")
}
