package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/conditions"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

func TestDB03AScaleInDuringACanaryKeepsTheCanary(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	old := s.Pod("basic-tidb-0").Revision
	s.edit(func(g *v1alpha1.TiDBGroup) {
		g.Spec.Version, g.Spec.Disruption = "v8.5.8", &v1alpha1.Disruption{UpdateAtMost: ptr.To(int32(1))}
	})
	rest := func() {
		for range 40 {
			s.step(s.Snapshot())
			s.Advance()
		}
	}
	rest()
	assert.NotEqual(t, old, s.Pod("basic-tidb-2").Revision)
	s.edit(func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(2)) })
	rest()
	assert.Equal(t, []string{"basic-tidb-0", "basic-tidb-2"}, s.Names())
	assert.Equal(t, old, s.Pod("basic-tidb-0").Revision)
}

// It is unknown whether a server on an unreachable node works with a new version: it is none
// of those that a canary asks for, and not counted on when another is restarted.
func TestDB04AServerOnAnUnreachableNodeIsNeitherCanaryNorAvailable(t *testing.T) {
	s := running(t, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To(int32(3)) })
	seen := func() observation.Snapshot {
		s.Break("basic-tidb-2")
		s.Operate("basic-tidb-2")
		out := s.Snapshot()
		i := out.Instance("basic-tidb-2")
		set := conditions.New(i.Status.Conditions, i.Generation, s.Now)
		for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionPodReady} {
			set.MarkFalse(kind, v1alpha1.ReasonNodeUnreachable, "the node does not answer")
		}
		i.Status.Conditions = set.List()
		return out
	}
	granted := func(p groupPlan) (names []string) {
		for _, c := range p.Instances {
			if c.Live != nil && c.Desired.Spec.Revision != c.Live.Spec.Revision {
				names = append(names, c.Live.Name)
			}
		}
		return names
	}
	s.own.Spec.Disruption = &v1alpha1.Disruption{UpdateAtMost: ptr.To(int32(1))}
	s.version("v8.5.8")
	for range 20 {
		assert.Empty(t, granted(s.step(seen())), "nor is another one stopped, while fewer than three serve beside it")
		for _, name := range s.Names() {
			if name != "basic-tidb-2" {
				s.Operate(name)
				s.Start(name)
				s.Operate(name)
			}
		}
	}
	s.own.Spec.Disruption = nil
	assert.Equal(t, []string{"basic-tidb-2"}, granted(s.step(seen())), "without a canary such a server may be stopped")
}
