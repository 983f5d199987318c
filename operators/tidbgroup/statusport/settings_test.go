package statusport_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
)

func TestTiDBIsNotGivenWhatItIgnoresWithoutAWord(t *testing.T) {
	refusal, err := statusport.Settings{}.Take(t.Context(), "127.0.0.1", map[string]string{"ddl_slow_threshold": "0"})
	require.NoError(t, err)
	assert.Equal(t, "TiDB ignores 0", refusal)
}
