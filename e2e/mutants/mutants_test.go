package mutants_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/mutants"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func TestEveryMutantFitsTheTree(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	all, err := mutants.All()
	require.NoError(t, err)
	for _, m := range all {
		assert.NoError(t, m.Check(root), "mutant %s", m.Name)
	}
	assert.GreaterOrEqual(t, len(all), 12)
}
