package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// DB-10, DB-11: the SQL of the first users runs once, with the first server of all
// groups of a PDGroup, which has to be one that has it.
func TestDB10AGroupWithInitialSQLMakesTheDatabaseBeforeAnyOther(t *testing.T) {
	generate := func(g *v1alpha1.TiDBGroup) {
		g.Spec.Initialization = &v1alpha1.Initialization{RootPassword: v1alpha1.RootPasswordGenerate}
	}
	other := func(changes ...func(*v1alpha1.TiDBGroup)) []v1alpha1.Group {
		g := stored(changes...)
		g.Name = "more"
		return []v1alpha1.Group{g}
	}
	cases := map[string]struct {
		own    []func(*v1alpha1.TiDBGroup)
		others []v1alpha1.Group
		made   int
	}{
		"no group has SQL":             {nil, other(), 2},
		"this one has":                 {[]func(*v1alpha1.TiDBGroup){generate}, other(), 1},
		"both have, this one is first": {[]func(*v1alpha1.TiDBGroup){generate}, other(generate), 1},
		"another one has":              {nil, other(generate), 0},
		"another one has SQL of the user": {nil, other(func(g *v1alpha1.TiDBGroup) {
			g.Spec.BootstrapSQL = &v1alpha1.KeyReference{Name: "sql", Key: "init.sql"}
		}), 0},
		"another one has and is paused":    {nil, other(generate, func(g *v1alpha1.TiDBGroup) { g.Spec.Paused = true }), 0},
		"another one has and is suspended": {nil, other(generate, func(g *v1alpha1.TiDBGroup) { g.Spec.Suspended = true }), 0},
		"another one has and is at 0":      {nil, other(generate, func(g *v1alpha1.TiDBGroup) { g.Spec.Replicas = ptr.To[int32](0) }), 0},
		"this one has, another one at 0 too": {[]func(*v1alpha1.TiDBGroup){generate}, other(generate, func(g *v1alpha1.TiDBGroup) {
			g.Name = "a"
			g.Spec.Replicas = ptr.To[int32](0)
		}), 1},
		"another one has and has arrived":  {nil, other(generate, func(g *v1alpha1.TiDBGroup) { g.Status.CurrentRevision = "r" }), 2},
		"a server of the other has served": {nil, other(generate, func(g *v1alpha1.TiDBGroup) { g.Status.ReadyReplicas = 1 }), 2},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s := play(t, c.own...)
			s.others = c.others
			p := s.step(s.Snapshot())
			require.Len(t, s.Names(), c.made, "%v", p.Outcome)
			if c.made == 0 {
				assert.Equal(t, v1alpha1.ReasonWaitingForGroups, p.Outcome.Reason)
				assert.Contains(t, p.Outcome.Message, "TiDBGroup more ")
				assert.True(t, p.Dependencies.Open, "it is no dependency of a group that serves")
			}
		})
	}
}
