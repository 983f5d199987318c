package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/observation"
)

// current says that every pod is what its Instance asks for.
func current(s *snapshot) {
	for _, i := range s.Instances {
		i.Status.Revision = i.Spec.Revision
	}
}

// DB-05: which edits restart servers, and which are given to them as they run.
func TestDB05OnlyItemsThatTiDBChangesOnlineNeedNoRestart(t *testing.T) {
	const before = "lease = \"30s\"\n[log]\nlevel = \"info\"\n"
	for name, c := range map[string]struct {
		config  string
		policy  v1alpha1.ConfigUpdatePolicy
		more    func(*v1alpha1.TiDBGroup)
		restart bool
	}{
		"a value that TiDB takes":                    {"lease = \"30s\"\n[log]\nlevel = \"warn\"\n", v1alpha1.ConfigOnline, nil, false},
		"an item more that TiDB takes":               {before + "[instance]\ntidb_general_log = true\n", v1alpha1.ConfigOnline, nil, false},
		"the same without a policy":                  {"lease = \"30s\"\n[log]\nlevel = \"warn\"\n", "", nil, true},
		"an item that TiDB reads when it starts":     {"lease = \"45s\"\n[log]\nlevel = \"info\"\n", v1alpha1.ConfigOnline, nil, true},
		"both in one edit":                           {"lease = \"45s\"\n[log]\nlevel = \"warn\"\n", v1alpha1.ConfigOnline, nil, true},
		"an item that is taken away":                 {"lease = \"30s\"\n", v1alpha1.ConfigOnline, nil, true},
		"a drain time, which is in the file as well": {before, v1alpha1.ConfigOnline, func(g *v1alpha1.TiDBGroup) { g.Spec.Shutdown = &v1alpha1.Shutdown{DrainSeconds: new(int64)} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Config = before })
			s := started(t, g, current)
			g.Spec.Config, g.Spec.ConfigUpdate = c.config, c.policy
			if c.more != nil {
				c.more(g)
			}
			p := mustPlan(t, g, s)
			created := 0
			for _, change := range p.Instances {
				if change.Live == nil {
					created++ // it lets others be restarted
				} else {
					assert.Equal(t, change.Live.Spec.PodTemplate, change.Desired.Spec.PodTemplate)
					assert.Equal(t, !c.restart, change.Desired.Annotations[v1alpha1.AnnotationAppliedConfig] != "")
				}
			}
			assert.Equal(t, c.restart, created > 0, "%v", p.Notes)
			assert.Empty(t, p.Configure)
		})
	}
}

func TestDB05AServerThatLacksAnItemIsGivenIt(t *testing.T) {
	g := stored(func(g *v1alpha1.TiDBGroup) { g.Spec.Config = "[log]\nlevel = \"info\"\n" })
	s := started(t, g, current)
	g.Spec.Config, g.Spec.ConfigUpdate = "[log]\nlevel = \"warn\"\n[instance]\ntidb_general_log = true\n", v1alpha1.ConfigOnline
	target := mustPlan(t, g, s).Target.Hash
	s.Running = map[string]observation.RunningConfig{}
	for _, i := range s.Instances {
		i.Annotations = map[string]string{v1alpha1.AnnotationAppliedConfig: string(i.Status.PodUID) + " " + target}
		s.Running[i.Name] = observation.RunningConfig{Pod: i.Status.PodUID, Values: map[string]string{"log.level": "info"}}
	}
	p := mustPlan(t, g, s)
	require.Len(t, p.Configure, len(s.Instances))
	assert.Equal(t, "warn", p.Configure[0].Items["log.level"].Text)
	assert.Equal(t, "true", p.Configure[0].Items["instance.tidb_general_log"].Text)

	// What TiDB does not show counts as taken when it says so.
	for _, i := range s.Instances {
		s.Running[i.Name] = observation.RunningConfig{Pod: i.Status.PodUID, Values: map[string]string{"log.level": "warn"}, Taken: map[string]string{"instance.tidb_general_log": "true"}}
	}
	p = mustPlan(t, g, s)
	assert.Empty(t, p.Configure)
	for _, change := range p.Instances {
		assert.Equal(t, target, change.Desired.Spec.Revision)
		assert.Equal(t, change.Live.Spec.Revision, change.Desired.Spec.InPlaceFrom)
		assert.NotContains(t, change.Desired.Annotations, v1alpha1.AnnotationAppliedConfig)
	}
}
