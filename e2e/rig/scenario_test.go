package rig_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
)

// All operators in one process, as operators/all runs them: a cache that is shared holds what
// an operator alone does not see.
func TestScenariosInOneProcess(t *testing.T) {
	t.Parallel()
	all, err := scenario.Load()
	require.NoError(t, err)
	wanted := []string{"restarted-by-annotation", "tidb-scaled-and-failed-over", "tikv-scale-in"}
	for _, family := range all {
		for _, s := range family.Variants(false) {
			if !slices.Contains(wanted, s.Name) {
				continue
			}
			wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == s.Name })
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				rig.Play(t, plane, s, rig.Options{OneProcess: true, Remedies: kubectl})
			})
		}
	}
	assert.Empty(t, wanted, "no scenario has this name")
}

// lasting are the scenarios that wait for a clock, for a minute or longer.
func lasting() []string { return []string{"backup-log", "backup-schedule", "tls-bad-certificates"} }

// lastingLast moves them to the end of the list: of tests that wait for their turn, Go begins
// with those that came last. At the end of the run the others would leave the processor idle.
func lastingLast(all []scenario.Scenario) {
	slices.SortStableFunc(all, func(a, b scenario.Scenario) int {
		return cmp.Compare(slices.Index(lasting(), a.Name), slices.Index(lasting(), b.Name))
	})
}

// Every scenario that the rig can run, those with many orders in a sample. Those whose operators
// see the whole cluster are the package clusterwide's.
func TestScenarios(t *testing.T) {
	t.Parallel()
	all, err := scenario.Load()
	require.NoError(t, err)
	lastingLast(all)
	for _, family := range all {
		for _, s := range family.Variants(false) {
			if !s.RunsIn(scenario.Rig) || s.Options.ClusterWide {
				continue
			}
			t.Run(s.Name, func(t *testing.T) {
				t.Parallel()
				result := rig.Play(t, plane, s, rig.Options{Remedies: kubectl})
				assert.NoError(t, result.Unproved())
			})
		}
	}
}
