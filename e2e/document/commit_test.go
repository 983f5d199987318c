package document_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/document"
)

func TestACommitIsDirtyByChangedCodeAndNotByPages(t *testing.T) {
	root := t.TempDir()
	git := func(args ...string) {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	write := func(file, text string) {
		path := filepath.Join(root, file)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	git("init", "-q")
	write("docs/page.md", "1")
	write("code.go", "1")
	git("add", ".")
	git("commit", "-qm", "first")
	clean, err := document.DescribeCommit(t.Context(), root)
	require.NoError(t, err)
	assert.NotContains(t, clean, document.Dirty)

	write("docs/page.md", "2")
	write("not-added.go", "2")
	same, err := document.DescribeCommit(t.Context(), root)
	require.NoError(t, err)
	assert.Equal(t, clean, same)

	write("code.go", "2")
	changed, err := document.DescribeCommit(t.Context(), root)
	require.NoError(t, err)
	assert.Equal(t, clean+document.Dirty, changed)
}
