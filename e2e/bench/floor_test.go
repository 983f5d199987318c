package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/rig"
	"github.com/tidb-groups/tidb-groups/shared/testkit/controlplane"
)

func TestTheFloorIsTimedUntilThePodsOfAllStatefulSetsAreReady(t *testing.T) {
	t.Parallel()
	options, err := rig.PlaneOptions()
	require.NoError(t, err)
	options.Controllers = append(options.Controllers, FloorController)
	own, err := controlplane.Start(t.Context(), options)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, own.Stop()) })

	took, err := MeasureFloor(t.Context(), own, Case{Clusters: 2})

	require.NoError(t, err)
	assert.Greater(t, took, ready, "no pod is Ready earlier")
}

func TestTheFloorHasAsManyPodsAndClaimsAsACluster(t *testing.T) {
	c := newCluster("c", "ns")
	var pods, claims int32
	for _, set := range floorSets() {
		pods += set.replicas
		claims += set.replicas * int32(len(set.render("s", "ns").Spec.VolumeClaimTemplates)) //nolint:gosec // a few
	}
	pd, tikv, tidb := *c.Spec.PD.Replicas, *c.Spec.TiKV[0].Replicas, *c.Spec.TiDB[0].Replicas
	assert.Equal(t, pd+tikv+tidb, pods)
	assert.Equal(t, pd+tikv, claims)
}

func TestTheFloorIsOnThePageOnlyWhereItWasMeasured(t *testing.T) {
	var out strings.Builder
	floorTable(&out, []Run{{Commit: "a", Results: []Result{{Clusters: 1, Took: time.Second}}}})
	assert.Empty(t, out.String())
	floorTable(&out, []Run{{Commit: "a", Results: []Result{{Clusters: 1, Took: time.Second}, {Clusters: 20, Took: 30 * time.Second, Floor: 12 * time.Second}}}})
	assert.Contains(t, out.String(), "| 20 | 12.0 | 30.0 | 2.5 |")
	assert.NotContains(t, out.String(), "| 1 |")
}
