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
			assert.False(t, l.pure && isImpure(imported), "%s is pure and imports %s", path, imported)
		}
		if l.pure {
			assert.Empty(t, clientsBelow(packages, path), "%s is pure, and has a client through what it imports", path)
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

// isImpure reports whether a package could read or change the world through an import.
func isImpure(imported string) bool {
	return slices.ContainsFunc(impureImports(), func(i string) bool { return isUnder(imported, i) })
}

// statesOf are packages that pure ones import for the names of states and for times alone.
func statesOf() []string {
	return []string{prefix + "operators/pdgroup/statusport", prefix + "shared/statusports"}
}

// clientsBelow returns the imports of clients of the API server that a package has by itself or
// through others of the suite. They make the program of its tests three times as large.
func clientsBelow(packages []pkg, path string) []string {
	var found []string
	seen := map[string]bool{}
	var look func(path string)
	look = func(path string) {
		if seen[path] || slices.Contains(statesOf(), path) {
			return
		}
		seen[path] = true
		at := slices.IndexFunc(packages, func(p pkg) bool { return p.ImportPath == path })
		if at < 0 {
			return
		}
		for _, imported := range packages[at].Imports {
			if isUnder(imported, "sigs.k8s.io/controller-runtime") || isUnder(imported, "k8s.io/client-go") {
				found = append(found, path+" imports "+imported)
			}
			if isUnder(imported, strings.TrimSuffix(prefix, "/")) {
				look(imported)
			}
		}
	}
	look(path)
	return found
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
