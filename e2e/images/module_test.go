package images

import (
	"os"
	"path/filepath"
	"testing"

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

func TestAModuleThatDoesNotBuildIsNamedWithTheCause(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tiny")
	err := buildModule(t.Context(), tiny(t, "package main\n\nfunc main() { undefinedThing() }\n"), file, ".")
	require.ErrorContains(t, err, "build tiny: ")
	require.ErrorContains(t, err, "undefined: undefinedThing")
	require.ErrorContains(t, err, "run the same command again")
}
