package bench

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheRollOfManyStoresIsMeasured(t *testing.T) {
	result, err := Measure(t.Context(), plane, Case{Clusters: 1, Stores: 4})

	require.NoError(t, err)
	assert.Equal(t, 4, result.Stores)
	assert.Equal(t, 4, result.Roll.PodsReplaced, "every store, and no other member")
	assert.Positive(t, result.Roll.Writes)
}
