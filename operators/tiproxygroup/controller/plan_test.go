package controller

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/group/grouptest"
	"github.com/tidb-groups/tidb-groups/shared/labelling"
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
	p, err := makePlan(s.own, snapshot{Snapshot: seen})
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
			s := snapshot{Snapshot: observation.Snapshot{PDGroup: c.pd, Now: clock()}}
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

func TestDB14AProxyHasTheZoneOfItsNodeUnlessItsUserSaysOtherwise(t *testing.T) {
	for name, c := range map[string]struct {
		config string
		node   map[string]string
		want   map[string]string
	}{
		"the zone of its node":                   {"", map[string]string{corev1.LabelTopologyZone: "a"}, map[string]string{"zone": "a"}},
		"beside other labels of the user":        {"[labels]\nteam = \"x\"\n", map[string]string{corev1.LabelTopologyZone: "a"}, map[string]string{"zone": "a"}},
		"not where the user has set it":          {"labels.zone = \"x\"\n", map[string]string{corev1.LabelTopologyZone: "a"}, nil},
		"nor where the user has set it to none":  {"[labels]\nzone = \"\"\n", map[string]string{corev1.LabelTopologyZone: "a"}, nil},
		"TiProxy reads its tables in any case":   {"[Labels]\nzone = \"x\"\n", map[string]string{corev1.LabelTopologyZone: "a"}, nil},
		"not while the configuration is no TOML": {"[labels\n", map[string]string{corev1.LabelTopologyZone: "a"}, nil},
		"not where its node has none":            {"", map[string]string{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := running(t)
			s.own.Spec.Config = c.config
			seen := s.seen("basic-tiproxy-0", c.node)
			p, err := makePlan(s.own, seen)
			require.NoError(t, err)
			if c.want == nil {
				assert.Empty(t, p.Labels)
				return
			}
			require.Len(t, p.Labels, 1)
			assert.Equal(t, "basic-tiproxy-0", p.Labels[0].Instance)
			assert.Equal(t, c.want, p.Labels[0].Labels)
		})
	}
}

// seen is a snapshot in which one proxy runs on a node of its own.
func (s *scene) seen(instance string, node map[string]string) snapshot {
	seen := snapshot{Snapshot: s.Snapshot()}
	seen.PDGroup, seen.Image = s.pd, ownImage
	seen.Nodes = map[string]map[string]string{"own": node}
	at := slices.IndexFunc(seen.Instances, func(i *v1alpha1.Instance) bool { return i.Name == instance })
	require.GreaterOrEqual(s.t, at, 0)
	seen.Instances[at].Status.NodeName = "own"
	return seen
}

// A proxy keeps its labels for as long as it runs, whatever else it is given.
func TestDB14AProxyIsLabelledOncePerProcess(t *testing.T) {
	s := running(t)
	seen := s.seen("basic-tiproxy-0", map[string]string{corev1.LabelTopologyZone: "a"})
	first, err := makePlan(s.own, seen)
	require.NoError(t, err)
	require.Len(t, first.Labels, 1)
	given := map[string]labelling.Labelling{"basic-tiproxy-0": first.Labels[0]}
	for name, c := range map[string]struct {
		change func(*v1alpha1.TiProxyGroup, *snapshot)
		again  bool
	}{
		"not again while nothing changed":        {func(*v1alpha1.TiProxyGroup, *snapshot) {}, false},
		"not for other configuration":            {func(g *v1alpha1.TiProxyGroup, _ *snapshot) { g.Spec.Config = "[log]\nlevel = \"warn\"\n" }, false},
		"again for another pod":                  {func(_ *v1alpha1.TiProxyGroup, s *snapshot) { s.Instances[0].Status.PodUID = "new" }, true},
		"again when the zone of its node is new": {func(_ *v1alpha1.TiProxyGroup, s *snapshot) { s.Nodes["own"][corev1.LabelTopologyZone] = "b" }, true},
		"not while the group is paused": {func(g *v1alpha1.TiProxyGroup, s *snapshot) {
			g.Spec.Paused, s.Labelled = true, nil
		}, false},
		"not while the group is deleted": {func(g *v1alpha1.TiProxyGroup, s *snapshot) {
			g.DeletionTimestamp, s.Labelled = ptr.To(metav1.NewTime(clock())), nil
		}, false},
		"also while PD is away, of which TiProxy asks nothing": {func(_ *v1alpha1.TiProxyGroup, s *snapshot) {
			s.PDGroup.Status.Conditions, s.Labelled = nil, nil
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g, now := s.own.DeepCopy(), s.seen("basic-tiproxy-0", map[string]string{corev1.LabelTopologyZone: "a"})
			now.PDGroup, now.Labelled = s.pd.DeepCopy(), given
			c.change(g, &now)
			p, err := makePlan(g, now)
			require.NoError(t, err)
			assert.Equal(t, c.again, len(p.Labels) == 1)
		})
	}
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
