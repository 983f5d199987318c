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

func TestTheDocumentInTheTreeIsTheGeneratedOne(t *testing.T) {
	file, err := os.ReadFile("../../docs/conditions.md")
	require.NoError(t, err)
	assert.Equal(t, docs.Conditions(), string(file), "run make generate")
}

func TestEveryConditionAndReasonIsInTheDocument(t *testing.T) {
	text := docs.Conditions()
	for _, c := range v1alpha1.ConditionTable() {
		assert.Contains(t, text, "| `"+c.Type+"` | "+c.Meaning)
		for _, reason := range c.Reasons {
			assert.Contains(t, text, "| `"+reason+"` | ")
		}
	}
	for _, kind := range v1alpha1.Kinds() {
		assert.Equal(t, 1, strings.Count(text, "\n## "+kind+"\n"))
	}
}
