//go:build e2e

package suite_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/containers"
	"github.com/tidb-groups/tidb-groups/e2e/document"
	"github.com/tidb-groups/tidb-groups/e2e/provider"
	"github.com/tidb-groups/tidb-groups/e2e/scenario"
	"github.com/tidb-groups/tidb-groups/e2e/workload/results"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// Scenarios that are written for containers alone: what they show is how operators
// get along with the real thing, of which the rig only has a model. Those of one
// cluster run in one namespace, one after the other; after one that failed the
// next has a new one.
func TestScenarios(t *testing.T) {
	if shared.provider.Name() != provider.Local {
		t.Skip("the real database's images are for the local cluster, and processes of this machine are killed")
	}
	if !shared.real {
		t.Skip("the scenarios are of the real database: IMAGES=real")
	}
	if !isFull() {
		t.Parallel() // the core's scenarios wait more than they compute, and nothing beside them stops or drains a node
	}
	all, err := scenario.Load()
	require.NoError(t, err)
	chosen := slices.DeleteFunc(all, func(s scenario.Scenario) bool {
		return !s.RunsIn(scenario.Containers) || s.RunsIn(scenario.Rig) || s.Full && !isFull()
	})
	require.NotEmpty(t, chosen, "no scenario is for containers alone")
	slices.SortStableFunc(chosen, func(a, b scenario.Scenario) int { return cmp.Compare(a.Cluster, b.Cluster) })
	living := "" // the namespace that the next scenario of its cluster goes on in
	t.Cleanup(func() {
		if !shared.temporary { // the other tests show that a namespace can be deleted with its cluster
			remove(t, living)
		}
	})
	for _, s := range chosen {
		t.Run(s.Name, func(t *testing.T) {
			ns := "e2e-" + cmp.Or(s.Cluster, s.Name)
			if living != ns {
				remove(t, living)
				living = ""
				create(t, ns)
				living = ns
			}
			t.Cleanup(func() {
				if t.Failed() {
					describe(context.WithoutCancel(t.Context()), t, ns)
				}
				if t.Failed() || s.Cluster == "" {
					remove(t, ns)
					living = ""
				}
			})
			world, err := containers.Open(t.Context(), shared.provider, shared.session, ns)
			require.NoError(t, err)
			defer world.Close()
			result, err := scenario.Run(t.Context(), world, s)
			t.Logf("%s took %s; pods replaced: %v", s.Shows, result.Took.Round(100*time.Millisecond), result.Restarts)
			if !assert.NoError(t, err) {
				t.Log(world.Describe())
			}
			assert.NoError(t, result.Bad())
			keep(t, result)
		})
	}
}

// keep saves what a scenario's workload has seen, and says where.
func keep(t *testing.T, result scenario.Result) {
	t.Helper()
	if result.Workload == nil {
		return
	}
	for _, o := range result.Workload.Operations {
		t.Logf("%s: %s, %d statements, %d failed, %d on long connections, longest pause %s, %d rows acknowledged, %d lost",
			o.Name, o.Took.Round(100*time.Millisecond), o.Statements, o.Failed, o.FailedLong, o.Pause.Duration, o.Acknowledged, o.Lost)
	}
	root, err := binaries.Root()
	require.NoError(t, err)
	commit, err := document.DescribeCommit(t.Context(), root)
	require.NoError(t, err)
	dir, err := results.Dir()
	require.NoError(t, err)
	report, picture, err := results.Save(dir, results.Result{Scenario: result.Scenario, Commit: commit, Report: *result.Workload})
	require.NoError(t, err)
	t.Logf("report: %s; picture: %s", report, picture)
}
