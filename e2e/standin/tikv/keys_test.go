package tikv

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// The TiKV of e2e/tikv is a module of its own, and so has a copy of the list of keys.
func TestBothTiKVsKnowTheSameKeys(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	list := func(path string) []string {
		content, err := os.ReadFile(filepath.Join(root, "e2e", filepath.FromSlash(path))) //nolint:gosec // a file of the repository
		require.NoError(t, err)
		text, _, ends := strings.Cut(string(content), "\n`))")
		shared, keys, begins := strings.Cut(text, "oneLine(`\n")
		require.True(t, begins && ends, "%s has no list of keys", path)
		return append(regexp.MustCompile("const \\w+ = `[^`]*`").FindAllString(shared, -1), strings.Split(keys, "\n")...)
	}
	mine := list("standin/tikv/keys.go")
	require.Greater(t, len(mine), 50)
	assert.Equal(t, mine, list("tikv/settings/known.go"))
}
