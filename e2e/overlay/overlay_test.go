package overlay

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// What is built with other flags is compiled once more, with all that it requires.
func TestBuildsHaveTheFlagsOfTheMakefile(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	linter, err := os.ReadFile(filepath.Join(root, ".golangci.yaml"))
	require.NoError(t, err)

	general, tag, tagged := strings.Cut(flags, " -tags=")
	require.True(t, tagged)
	assert.Regexp(t, `(?m)^export GOFLAGS = `+general+` -tags=\$\(TAG\)$`, string(makefile))
	assert.Regexp(t, `(?m)^TAG += `+tag+`$`, string(makefile))
	assert.Regexp(t, `(?m)^  build-tags: \[e2e, `+tag+`\]`, string(linter))
}
