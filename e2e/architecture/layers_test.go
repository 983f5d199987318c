package architecture

import (
	"bytes"
	"go/ast"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// The planner's packages import downward only, and as docs/architecture.md draws it.
func TestThePlannersPackagesAreAsTheyAreDrawn(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	all := plannerLayers()
	checkLayers(t, root, "shared", all, besideLayers())
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	assert.Contains(t, string(text), drawLayers(all), "docs/architecture.md does not draw the layers like this")
}

// What an operator decides beside its controller imports downward only, and is pure where the
// table says so.
func TestThePackagesOfOperatorsAreAsTheTableHasThem(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	checkLayers(t, root, "operators", operatorLayers(), besideOperatorLayers())
}

// checkLayers compares the packages of a module with tables of layers. Every package that
// imports another one of the module is in one of them, and all of shared; but for tests' own,
// programs and controllers, which have rules of their own.
func checkLayers(t *testing.T, root, module string, tables ...[]layer) {
	t.Helper()
	packages, err := listPackages(t.Context(), filepath.Join(root, module))
	require.NoError(t, err)
	for _, all := range tables {
		checkTable(t, packages, module, all)
	}
	for _, p := range packages {
		name, ours := strings.CutPrefix(p.ImportPath, prefix+module+"/")
		if !ours || p.Name == "main" || isUnder(name, "testkit") || strings.HasSuffix(name, "test") || strings.HasSuffix(name, "/controller") {
			continue
		}
		named := slices.ContainsFunc(slices.Concat(tables...), func(l layer) bool { return l.name == name })
		alone := module == "operators" && !slices.ContainsFunc(p.Imports, func(imported string) bool { return isUnder(imported, prefix+module) })
		assert.True(t, named || alone, "%s is in no table of layers.go or beside.go: add it below those that use it", p.ImportPath)
	}
}

// checkTable compares the packages of a module with one table.
func checkTable(t *testing.T, packages []pkg, module string, all []layer) {
	t.Helper()
	above := []string{}
	for _, l := range slices.Backward(all) {
		path := prefix + module + "/" + l.name
		at := slices.IndexFunc(packages, func(p pkg) bool { return p.ImportPath == path })
		require.GreaterOrEqual(t, at, 0, "there is no package %s", path)
		var uses []string
		for _, imported := range packages[at].Imports {
			name, ours := strings.CutPrefix(imported, prefix+module+"/")
			if ours && slices.ContainsFunc(all, func(other layer) bool { return other.name == name }) {
				uses = append(uses, name)
			}
			assert.False(t, l.pure && slices.ContainsFunc(impureImports(), func(i string) bool { return isUnder(imported, i) && !slices.Contains(data(), imported) }), "%s is pure and imports %s", path, imported)
		}
		slices.Sort(uses)
		assert.Equal(t, l.uses, uses, "what %s imports, as the table of layers has it", path)
		for _, name := range uses {
			assert.NotContains(t, above, name, "%s imports upward", path)
		}
		above = append(above, l.name)
	}
}

// A version of an API is one package, by Kubernetes' convention; e2e is no product.
func TestEveryPackageOfTheProductIsSmallEnoughToRead(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	found := map[string]bool{}
	eachSource(t, func(path string, _ *ast.File) {
		module, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		if module != "apis" && module != "e2e" {
			found[filepath.Dir(path)] = true
		}
	})
	require.NotEmpty(t, found)
	for dir := range found {
		assert.LessOrEqual(t, linesOf(t, filepath.Join(root, dir)), maxLines, "lines of %s: split it by what it decides", dir)
	}
}

// data are packages of which pure ones use types and hashes alone.
func data() []string {
	return []string{"sigs.k8s.io/controller-runtime/pkg/client", prefix + "shared/apply"}
}

// linesOf counts the lines of a package without those of its tests.
func linesOf(t *testing.T, dir string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		n += bytes.Count(text, []byte("\n"))
	}
	return n
}
