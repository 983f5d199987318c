package binaries

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// toolsDir is where the tool modules are, from the root of the source tree.
const toolsDir = "shared/tools"

// Root returns the root of the source tree: the one that this package was
// compiled from, or else the one around the working directory (a binary that
// was built with -trimpath no longer knows its source).
func Root() (string, error) {
	var starts []string
	if _, file, _, ok := runtime.Caller(0); ok && filepath.IsAbs(file) {
		starts = append(starts, filepath.Dir(file))
	}
	if dir, err := os.Getwd(); err == nil {
		starts = append(starts, dir)
	}
	for _, start := range starts {
		if root, ok := rootAbove(start); ok {
			return root, nil
		}
	}
	return "", errors.New("find source tree: no directory with go.work and " + toolsDir +
		" at or above the working directory; run inside a checkout of tidb-groups")
}

func rootAbove(dir string) (string, bool) {
	for {
		work, workErr := os.Stat(filepath.Join(dir, "go.work"))
		tools, toolsErr := os.Stat(filepath.Join(dir, toolsDir))
		if workErr == nil && work.Mode().IsRegular() && toolsErr == nil && tools.IsDir() {
			return dir, true
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}
