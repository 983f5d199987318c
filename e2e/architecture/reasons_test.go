package architecture

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func TestTroubleshootingTellsWhatToDoAboutEveryReason(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "troubleshooting.md"))
	require.NoError(t, err)
	reasons := 0
	for _, condition := range v1alpha1.ConditionTable() {
		for _, reason := range condition.Reasons {
			reasons++
			assert.Contains(t, string(page), "`"+reason+"`", "reason of %s", condition.Type)
		}
	}
	assert.Positive(t, reasons)
}
