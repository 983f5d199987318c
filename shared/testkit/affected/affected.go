package affected

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// repository begins the import path of every package of ours.
	repository = "github.com/tidb-groups/tidb-groups/"
	// controlPlane is what a test imports, directly or not, to start a control plane.
	controlPlane = repository + "shared/testkit/controlplane"
)

// Test is the test of a package.
type Test struct {
	// Package is its import path.
	Package string
	// Uses are the import paths of all that is linked into the test.
	Uses []string
}

// Split picks the tests that a package can break, in their order, and takes those apart
// that start a control plane.
func Split(tests []Test, changed string) (run, left []string) {
	for _, t := range tests {
		switch {
		case t.Package != changed && !slices.Contains(t.Uses, changed):
		case slices.Contains(t.Uses, controlPlane):
			left = append(left, t.Package)
		default:
			run = append(run, t.Package)
		}
	}
	return run, left
}

// DescribeUntested says which tests were left out, and how to run them. Left are import
// paths, by module.
func DescribeUntested(changed string, modules []string, left map[string][]string) string {
	var out strings.Builder
	for _, module := range modules {
		if len(left[module]) == 0 {
			continue
		}
		if out.Len() == 0 {
			fmt.Fprintf(&out, "NOT TESTED: these use %s too, but start a control plane, which takes minutes. Test them with:\n", strings.TrimPrefix(changed, repository))
		}
		fmt.Fprintf(&out, "  GOWORK=off go -C %s test -timeout 30m", module)
		for _, name := range left[module] {
			fmt.Fprintf(&out, " ./%s", strings.TrimPrefix(name, repository+module+"/"))
		}
		out.WriteString("\n")
	}
	if out.Len() > 0 {
		out.WriteString("or all of them with: make test\n")
	}
	return out.String()
}

// Modules are those in which dependents of a package are looked for. A module that stands
// apart is used by no other one, and is looked at alone for a package of its own.
func Modules(changed, apart string, modules []string) []string {
	if apart != "" && (changed == repository+apart || strings.HasPrefix(changed, repository+apart+"/")) {
		return []string{apart}
	}
	return modules
}

// ImportPath is the import path of a package, as a user names it from the root of the
// repository: ./shared/store or shared/store/.
func ImportPath(root, name string) (string, error) {
	clean := path.Clean(filepath.ToSlash(name))
	if !filepath.IsLocal(clean) || clean == "." {
		return "", fmt.Errorf("PKG=%s is no package: name a folder from the root of the repository, as PKG=./shared/store", name)
	}
	if files, err := filepath.Glob(filepath.Join(root, clean, "*.go")); err != nil || len(files) == 0 {
		return "", fmt.Errorf("PKG=%s has no Go files: name a folder from the root of the repository, as PKG=./shared/store", name)
	}
	return repository + clean, nil
}

// List returns the tests of a module.
func List(ctx context.Context, module string) ([]Test, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-test", "-f", `{{.ImportPath}} {{join .Deps ","}}`, "./...")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
		}
		return nil, fmt.Errorf("list the tests of %s: %w", filepath.Base(module), err)
	}
	return parseListing(string(out)), nil
}

// parseListing reads what the go tool lists. The program that runs the tests of p is p.test;
// "q [p.test]" is q once more, compiled for that program.
func parseListing(listing string) []Test {
	var tests []Test
	for line := range strings.Lines(listing) {
		name, uses, _ := strings.Cut(strings.TrimSpace(line), " ")
		tested, isTest := strings.CutSuffix(name, ".test")
		if !isTest {
			continue
		}
		t := Test{Package: tested}
		for use := range strings.SplitSeq(uses, ",") {
			use, _, _ = strings.Cut(use, " ")
			t.Uses = append(t.Uses, use)
		}
		tests = append(tests, t)
	}
	return tests
}
