package architecture

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// A reader of what was attacked can go back to it: every commit that
// docs/reliability.md names is in the history, or is said to be gone.
func TestFiguresAreOfCommitsThatExist(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
		return strings.TrimSpace(string(out)), err
	}
	if shallow, err := git("rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		t.Skipf("it needs a clone with its history: %s", shallow)
	}
	text, err := os.ReadFile(filepath.Join(root, "docs", "reliability.json"))
	require.NoError(t, err)
	var sums []struct {
		Campaign, Scenario, Commit string
		Gone                       bool
	}
	require.NoError(t, json.Unmarshal(text, &sums))
	require.NotEmpty(t, sums)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reliability.md"))
	require.NoError(t, err)
	for _, s := range sums {
		said, err := git("cat-file", "-e", s.Commit+"^{commit}")
		row := "| " + s.Commit + " |\n"
		if s.Gone {
			row = "| " + s.Commit + ", which is gone |\n"
		}
		assert.Equal(t, s.Gone, err != nil, "%s of %s at commit %s: %s", s.Campaign, s.Scenario, s.Commit, said)
		assert.Contains(t, string(page), row)
	}
}
