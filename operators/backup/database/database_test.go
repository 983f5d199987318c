package database

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

func TestBR04DatabasesOfUsersAreFound(t *testing.T) {
	assert.Equal(t, []string{"shop", "test"}, ofUsers([]string{"INFORMATION_SCHEMA", "mysql", "shop", "sys", "test", "lightning_task_info", "METRICS_SCHEMA", "PERFORMANCE_SCHEMA"}))
	assert.True(t, strings.HasSuffix(QuoteName("a`b"), "a``b`"))
}

func TestBR04NothingIsRestoredIntoDatabasesOfUsers(t *testing.T) {
	require.NoError(t, CheckEmpty(t.Context(), nil, []string{"mysql", "INFORMATION_SCHEMA", "sys", TaskSchema}))
	err := CheckEmpty(t.Context(), nil, []string{"mysql", "shop"})
	require.ErrorContains(t, err, "the cluster has databases of users: shop")
	assert.Equal(t, v1alpha1.ReasonDatabaseNotEmpty, failure.NewResult(err, "", false).Reason)
	assert.False(t, failure.NewResult(err, "", false).Begun, "it is tried again when they are dropped")
}
