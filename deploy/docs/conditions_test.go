package docs_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/deploy/docs"
)

func TestTheDocumentsInTheTreeAreTheGeneratedOnes(t *testing.T) {
	file, err := os.ReadFile("../../docs/conditions.md")
	require.NoError(t, err)
	assert.Equal(t, docs.Conditions(), string(file), "run make generate")

	want, err := docs.API("../crds")
	require.NoError(t, err)
	file, err = os.ReadFile("../../docs/reference/api.md")
	require.NoError(t, err)
	assert.Equal(t, want, string(file), "run make generate")
}

func TestTheReferenceHasEveryFieldWithItsDefault(t *testing.T) {
	text, err := docs.API("../crds")
	require.NoError(t, err)
	for _, row := range []string{
		"| `version` | string, at most 64 characters |", // of every group, once
		"| `replaceAfter` | duration | 30m |",
		"| `maxSurge` | integer, 0 to 100 | `1` | MaxSurge is how many servers",
		"| `tikv[]` | list, at most 16 |",
	} {
		assert.Equal(t, 1, strings.Count(text, row), row)
	}
}

func TestEveryConditionAndReasonIsInTheDocument(t *testing.T) {
	text := docs.Conditions()
	for _, c := range v1alpha1.ConditionTable() {
		assert.Contains(t, text, "| `"+c.Type+"` | "+c.Meaning)
		for _, reason := range c.Reasons {
			assert.Contains(t, text, "`"+reason+"`")
		}
	}
	for _, kind := range v1alpha1.Kinds() {
		assert.Equal(t, 1, strings.Count(text, "\n## "+kind+"\n"))
	}
}
