package rig_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// Every scenario that the rig can run, those with many orders in a sample.
func TestScenarios(t *testing.T) {
	all, err := scenario.Load()
	require.NoError(t, err)
	kubectl := rig.NewKubectl()
	for _, family := range all {
		for _, s := range family.Variants(false) {
			if !s.RunsIn(scenario.Rig) {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				if !s.Options.ClusterWide {
					t.Parallel()
				}
				r := rig.New(t, plane, rig.Options{Remedies: kubectl}.For(s))
				result, err := scenario.Run(t.Context(), r.Rig, s)
				require.NoError(t, err)
				assert.NoError(t, result.Bad())
				assert.NoError(t, result.Unproved())
			})
		}
	}
}
