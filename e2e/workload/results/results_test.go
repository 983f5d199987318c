package results_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tidb-groups/tidb-groups/e2e/workload"
	"github.com/tidb-groups/tidb-groups/e2e/workload/results"
)

func result(scenario, commit string, failed int) results.Result {
	return results.Result{Scenario: scenario, Commit: commit, Report: workload.Report{Server: "s", Operations: []workload.Operation{{
		Name: "roll TiDB", Took: metav1.Duration{Duration: 83 * time.Second}, Statements: 900, Failed: failed, FailedLong: 2, Refused: 3,
		Pause: metav1.Duration{Duration: 1200 * time.Millisecond}, Acknowledged: 400, ReadBack: 401,
	}}}}
}

func TestResultsOfACommitAreKeptAndRead(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	for _, r := range []results.Result{result("a", "1", 0), result("b", "2", 0), result("a", "2", 1)} {
		_, drawing, err := results.Save(dir, r)
		require.NoError(t, err)
		assert.FileExists(t, drawing)
	}
	all, err := results.Load(dir, "2")
	require.NoError(t, err)
	assert.Equal(t, []results.Result{result("a", "2", 1), result("b", "2", 0)}, all)
}

func TestFiguresReplaceThoseOfTheSameScenario(t *testing.T) {
	docs := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(docs, "pictures"), 0o755))
	page := filepath.Join(docs, "reliability.md")
	require.NoError(t, os.WriteFile(page, []byte("# Reliability\n\n## A hundred clusters at once\n"), 0o600))
	require.NoError(t, results.Write(docs, []results.Result{result("b", "1", 0), result("a", "1", 7)}))
	require.NoError(t, results.Write(docs, []results.Result{result("a", "2", 0)}))
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	above, rest, found := strings.Cut(string(text), "## On a real database\n")
	require.True(t, found)
	assert.Equal(t, "# Reliability\n\n", above)
	assert.Contains(t, rest, "| a | roll TiDB | 1m23s | 900 | 0 | 2 | 3 | 1.2s | 400 | 0 | 2 |\n| b | roll TiDB | 1m23s | 900 | 0 | 2 | 3 | 1.2s | 400 | 0 | 1 |\n")
	assert.Contains(t, rest, "(pictures/database-a.svg)")
	assert.True(t, strings.HasSuffix(rest, "\n## A hundred clusters at once\n"))
	assert.FileExists(t, filepath.Join(docs, "pictures", "database-b.svg"))
	assert.FileExists(t, filepath.Join(docs, "reliability-database.json"))
}
