package bench

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
)

// P9, P10: a cluster that crashes forever costs its neighbour nothing, and itself no writes
// once it has said why.
func TestABadClusterWritesNothingInALoop(t *testing.T) {
	t.Parallel()
	found, err := measureBad(t.Context(), plane, Case{Clusters: 2, Idle: 15 * time.Second}, 2, settleBad)
	require.NoError(t, err)
	require.NoError(t, found.Check())
	assert.Equal(t, []int{1, 1}, []int{found.Good, found.Bad})
	assert.Positive(t, found.BadWrites)
	assert.Zero(t, found.GoodLater)
	most := 0
	for _, w := range StartBudget() {
		most += w.Most
	}
	assert.LessOrEqual(t, found.GoodWrites, most, "the budget of a cluster that nothing stands beside")
}

func TestOneClusterInSoManyIsBad(t *testing.T) {
	for _, c := range []struct{ clusters, every, good, bad int }{{10, 10, 9, 1}, {100, 10, 90, 10}, {4, 2, 2, 2}, {19, 10, 18, 1}} {
		good, bad, err := SplitClusters(c.clusters, c.every)
		require.NoError(t, err)
		assert.Equal(t, []int{c.good, c.bad}, []int{good, bad})
	}
	for _, c := range []struct{ clusters, every int }{{9, 10}, {1, 1}, {4, 1}, {4, -2}} {
		_, _, err := SplitClusters(c.clusters, c.every)
		require.ErrorContains(t, err, "try -clusters 10 -bad 10")
	}
}

func TestAWriteLoopIsReportedWithItsWrites(t *testing.T) {
	b := Bad{Good: 9, Bad: 2, Took: 5 * time.Second, GoodWrites: 900, BadWrites: 200, Watched: time.Minute, BadLater: 14, Later: map[rig.Request]int{
		{Operator: "pdgroup", Verb: "patch", Resource: "pdgroups/status"}: 2,
		{Operator: "instance", Verb: "create", Resource: "events"}:        12,
		{Operator: "instance", Verb: "get", Resource: "pods"}:             99,
	}}
	require.EqualError(t, b.Check(), "7.0 writes a minute for each cluster that cannot become Ready, more than 6 are a loop: 12 × instance create events, 2 × pdgroup patch pdgroups/status")
	assert.Equal(t, "9 clusters that can be Ready: Ready in 5.0 s, 100.0 writes per cluster, then 0 writes within 1m0s\n"+
		"2 clusters that cannot: 100.0 writes per cluster until a minute after they said why, then 7.0 per cluster and minute", b.String())
	b.Watched = 2 * time.Minute
	require.NoError(t, b.Check())

	assert.Contains(t, Tables([]Run{{Commit: "one", Machine: "m", Bad: []Bad{b}}}), "| one | 9 | 2 | 5.0 | 100 | 100 | 2m0s | 3.5 |\n")
}
