package clusterwide_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

var (
	plane *controlplane.ControlPlane
	// kubectl is what all tests of the package have shown that it takes.
	kubectl = rig.NewKubectl()
)

func TestMain(m *testing.M) {
	os.Exit(rig.Main(m, rig.Loud(), func(cp *controlplane.ControlPlane) { plane = cp }))
}

// Every scenario that the rig can run, whose operators watch all namespaces.
func TestScenarios(t *testing.T) {
	all, err := scenario.Load()
	require.NoError(t, err)
	for _, family := range all {
		for _, s := range family.Variants(false) {
			if !s.RunsIn(scenario.Rig) || !s.Options.ClusterWide {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				result := rig.Play(t, plane, s, rig.Options{Remedies: kubectl})
				assert.NoError(t, result.Unproved())
			})
		}
	}
}
