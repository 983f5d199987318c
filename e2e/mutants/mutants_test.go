package mutants_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/mutants"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func load(t *testing.T) (string, []mutants.Mutant) {
	t.Helper()
	root, err := binaries.Root()
	require.NoError(t, err)
	all, err := mutants.All()
	require.NoError(t, err)
	return root, all
}

func TestEveryMutantFitsTheTree(t *testing.T) {
	root, all := load(t)
	for _, m := range all {
		assert.NoError(t, m.Check(root), "mutant %s", m.Name)
	}
	assert.GreaterOrEqual(t, len(all), 12)
}

func TestEveryMutantCompiles(t *testing.T) {
	root, all := load(t)
	assert.NoError(t, mutants.Compile(t.Context(), root, t.TempDir(), all))
}

func TestASampleIsCaught(t *testing.T) {
	root, all := load(t)
	all = slices.DeleteFunc(all, func(m mutants.Mutant) bool { return !m.Sample })
	require.NotEmpty(t, all)
	verdicts, err := mutants.Runner{Root: root, Dir: t.TempDir(), Jobs: 1}.Run(t.Context(), all)
	require.NoError(t, err)
	for _, v := range verdicts {
		assert.True(t, v.Caught, "mutant %s: %s", v.Mutant.Name, v.Why)
	}
}
