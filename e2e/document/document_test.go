package document_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/document"
)

func page(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

const written = "<!-- written by cmd: begin -->\n\nnew\n\n<!-- written by cmd: end -->"

func TestTheTextBetweenTheMarkersOfACommandIsReplaced(t *testing.T) {
	file := page(t, "a\n<!-- written by cmd: begin -->\nold\n<!-- written by cmd: end -->\nb\n")
	require.NoError(t, document.Write(file, "cmd", "new\n"))
	assert.Equal(t, "a\n"+written+"\nb\n", read(t, file))
}

func TestAPageWithoutTheMarkersIsLeftAlone(t *testing.T) {
	file := page(t, "a\n<!-- written by other: begin -->\n")
	assert.ErrorContains(t, document.Write(file, "cmd", "new\n"), `it has no lines "<!-- written by cmd: begin -->"`)
	assert.Equal(t, "a\n<!-- written by other: begin -->\n", read(t, file))
}

func TestASectionIsMadeOnceWhereItBelongs(t *testing.T) {
	file := page(t, "# Page\n\n## Last\n\nb\n")
	for range 2 {
		require.NoError(t, document.WriteSection(file, "New", "Last", "cmd", "new\n"))
		assert.Equal(t, "# Page\n\n## New\n\n"+written+"\n\n## Last\n\nb\n", read(t, file))
	}
	file = page(t, "# Page\n\n## Other\n")
	require.NoError(t, document.WriteSection(file, "New", "Last", "cmd", "new\n"))
	assert.Equal(t, "# Page\n\n## Other\n\n## New\n\n"+written+"\n", read(t, file))
}
