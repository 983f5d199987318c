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
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/observation"
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

// scene is a TiProxyGroup in memory, with all that is around it.
type scene struct {
	*grouptest.Simulation
	t   *testing.T
	own *v1alpha1.TiProxyGroup
	pd  *v1alpha1.PDGroup
	// others are groups of the same PDGroup.
	others []v1alpha1.Group
	// fewest is how many proxies have served at least since the scene came to rest.
	fewest int
}

// running is a scene with all proxies at work.
func running(t *testing.T, changes ...func(*v1alpha1.TiProxyGroup)) *scene {
	t.Helper()
	own := sample(changes...)
	s := &scene{Simulation: grouptest.New(own), t: t, own: own, pd: pdGroup()}
	s.converge()
	s.fewest = s.CountServing()
	return s
}

func (s *scene) edit(change func(*v1alpha1.TiProxyGroup)) {
	change(s.own)
	s.own.Generation++
}

// step is one reconcile.
func (s *scene) step() groupPlan {
	seen := s.Snapshot()
	seen.PDGroup, seen.Image = s.pd, ownImage
	seen.Groups = append(seen.Groups, s.others...)
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
	for range 60 {
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

func TestProxiesWaitForPDAndForNothingElse(t *testing.T) {
	for name, c := range map[string]struct {
		pd    *v1alpha1.PDGroup
		count int
		says  string
	}{
		"no PDGroup":            {nil, 0, "PDGroup basic-pd does not exist"},
		"one that is not Ready": {&v1alpha1.PDGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-pd", Generation: 1}}, 0, "PDGroup basic-pd"},
		"one that is":           {pdGroup(), 2, "PDGroup basic-pd is Ready"},
	} {
		t.Run(name, func(t *testing.T) {
			s := observation.Snapshot{PDGroup: c.pd, Now: clock()}
			p, err := makePlan(sample(), s)
			require.NoError(t, err)
			assert.Len(t, p.Instances, c.count)
			status, _ := reportStatus(sample(), s, p, step.Done(), clock())
			at := slices.IndexFunc(status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionDependenciesReady })
			require.GreaterOrEqual(t, at, 0)
			assert.Contains(t, status.Conditions[at].Message, c.says)
		})
	}
}

func TestProxiesAreAddedWhilePDDoesNotAnswer(t *testing.T) {
	s := running(t)
	s.pd.Status.Conditions[0].Status = metav1.ConditionFalse
	s.edit(func(g *v1alpha1.TiProxyGroup) { g.Spec.Replicas = ptr.To[int32](3) })
	s.converge()
	assert.Len(t, s.Names(), 3)
}

func TestPX02ARollAddsAProxyFirst(t *testing.T) {
	s := running(t)
	s.edit(func(g *v1alpha1.TiProxyGroup) { g.Spec.Version = "v1.3.1" })
	s.converge()
	assert.Equal(t, []string{"basic-tiproxy-0", "basic-tiproxy-1"}, s.Names())
	assert.Equal(t, 2, s.fewest, "as many as spec.replicas serve at every moment")
}

func TestPX02WithoutSurgeOneProxyAtATimeIsRestarted(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiProxyGroup) { g.Spec.Replicas, g.Spec.MaxSurge = ptr.To[int32](3), ptr.To[int32](0) })
	s.edit(func(g *v1alpha1.TiProxyGroup) { g.Spec.Version = "v1.3.1" })
	s.converge()
	assert.Len(t, s.Names(), 3)
	assert.Equal(t, 2, s.fewest)
}

func TestProxiesHaveNoPlaceInTheOrderOfAnUpgrade(t *testing.T) {
	s := running(t)
	tidb := &v1alpha1.TiDBGroup{ObjectMeta: metav1.ObjectMeta{Name: "basic-tidb", Namespace: "shop", Generation: 2}}
	tidb.Spec.PDGroup.Name, tidb.Spec.Suspended = "basic-pd", true
	s.others = []v1alpha1.Group{tidb} // it has not looked at its spec yet
	s.edit(func(g *v1alpha1.TiProxyGroup) { g.Spec.Version = "v1.3.1" })
	assert.Equal(t, step.KindDone, s.converge().Kind)
	s.edit(func(g *v1alpha1.TiProxyGroup) { g.Spec.Suspended = true })
	s.converge()
	assert.Zero(t, s.CountServing(), "nor do they wait for others to stop")
}

func TestPX03OnlyItemsThatTiProxyChangesOnlineNeedNoRestart(t *testing.T) {
	online := func(g *v1alpha1.TiProxyGroup) {
		g.Spec.ConfigUpdate, g.Spec.Config = v1alpha1.ConfigOnline, "[log]\nlevel = \"info\"\n"
	}
	s := running(t, online)
	before := s.Pod("basic-tiproxy-0").Revision
	s.edit(func(g *v1alpha1.TiProxyGroup) { g.Spec.Config = "[log]\nlevel = \"warn\"\n" })
	p := s.step()
	assert.Equal(t, before, s.Pod("basic-tiproxy-0").Revision)
	assert.NotEqual(t, step.KindStall, p.Outcome.Kind)
	s.edit(func(g *v1alpha1.TiProxyGroup) { g.Spec.Config = "[ha]\ninterface = \"eth0\"\n" })
	s.converge()
	assert.NotEqual(t, before, s.Pod("basic-tiproxy-0").Revision)
}
