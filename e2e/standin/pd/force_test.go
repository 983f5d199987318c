package pd_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/pd"
)

// PD-22: etcd itself keeps the cluster's ID and the member's, forgets the others,
// and takes none of them back with its old data.
func TestAForcedMemberForgetsTheOthersAndKeepsTheCluster(t *testing.T) {
	t.Parallel()
	first, second, survivor := config(t, "pd-0"), config(t, "pd-1"), config(t, "pd-2")
	s0 := start(t, first)
	lead(t, s0)
	second.Join, survivor.Join = first.ClientURLs, first.ClientURLs
	s1 := start(t, second)
	s2 := start(t, survivor)
	cluster, member := s2.ClusterID(), s2.Self().ID
	list, err := s2.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 3)
	for _, s := range []*pd.Server{s0, s1, s2} {
		s.Close()
	}

	survivor.ForceNewCluster = true
	forced := start(t, survivor)
	lead(t, forced)
	assert.Equal(t, cluster, forced.ClusterID())
	alone(t, forced, member)
	forced.Close()

	survivor.ForceNewCluster = false
	again := start(t, survivor)
	defer again.Close()
	lead(t, again)
	assert.Equal(t, cluster, again.ClusterID())
	alone(t, again, member)

	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = pd.Start(ctx, second)
	require.Error(t, err, "it waits for those that it knows")
	alone(t, again, member)

	next := config(t, "pd-1")
	next.Join = survivor.ClientURLs
	joined := start(t, next)
	defer joined.Close()
	assert.Equal(t, cluster, joined.ClusterID())
	list, err = again.List(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, 2)
}

func alone(t *testing.T, s *pd.Server, member uint64) {
	t.Helper()
	list, err := s.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, member, list[0].ID)
}
