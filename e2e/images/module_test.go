package images

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tiny writes a module whose one program is main.
func tiny(t *testing.T, main string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module example.com/tiny\n\ngo 1.26.0\n", "main.go": main} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

func TestAModulesProgramKnowsItsRelease(t *testing.T) {
	module := tiny(t, "package main\n\nimport \"os\"\n\nvar version string\n\nfunc main() { os.Stdout.WriteString(version) }\n")
	file := filepath.Join(t.TempDir(), "cache", "tiny")
	require.NoError(t, buildModule(t.Context(), module, file, ".", "v1.2.3"))
	said, err := exec.CommandContext(t.Context(), file).Output()
	require.NoError(t, err)
	assert.Equal(t, "v1.2.3", string(said))
}

func TestAModuleThatDoesNotBuildSaysWhichAndWhy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tiny")
	err := buildModule(t.Context(), tiny(t, "package main\n\nfunc main() { undefinedThing() }\n"), file, ".", "v1.2.3")
	require.ErrorContains(t, err, "build tiny v1.2.3")
	require.ErrorContains(t, err, "undefined: undefinedThing")
	require.ErrorContains(t, err, "run the same command again")
}
