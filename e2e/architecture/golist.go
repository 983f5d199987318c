package architecture

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pkg is what the rules need to know of a package.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	Imports      []string
	TestImports  []string
	XTestImports []string
	Module       *struct{ Path string }
}

// listPackages returns every package of a module and all that they depend on, tests
// included, as the compiler sees them without go.work.
func listPackages(ctx context.Context, dir string) ([]pkg, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-test", "-tags", "e2e",
		"-json=ImportPath,Name,Dir,Standard,Imports,TestImports,XTestImports,Module", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("list packages of %s: %w", filepath.Base(dir), err)
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, fmt.Errorf("decode packages of %s: %w", filepath.Base(dir), err)
		}
		// With -test, "p [p.test]" is p once more, compiled for its test.
		if strings.ContainsRune(p.ImportPath, ' ') || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		packages = append(packages, p)
	}
}

// isUnder says whether an import path is the given one or below it.
func isUnder(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}
