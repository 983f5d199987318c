package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// operatorFolders returns the folder of every operator.
func operatorFolders(t *testing.T) []string {
	t.Helper()
	root, err := binaries.Root()
	require.NoError(t, err)
	folders, err := filepath.Glob(filepath.Join(root, "operators", "*", "controller"))
	require.NoError(t, err)
	for i, folder := range folders {
		folders[i] = filepath.Dir(folder)
	}
	return folders
}

func TestEveryOperatorHasAShortMain(t *testing.T) {
	for _, folder := range operatorFolders(t) {
		text, err := os.ReadFile(filepath.Join(folder, "main.go"))
		if assert.NoError(t, err) {
			assert.LessOrEqual(t, bytes.Count(text, []byte("\n")), mainLines, "lines of %s/main.go", filepath.Base(folder))
		}
	}
}

func TestEveryOperatorHasTheSameFiles(t *testing.T) {
	want := slices.Sorted(slices.Values(controllerFiles()))
	for _, folder := range operatorFolders(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			paths, err := filepath.Glob(filepath.Join(folder, "controller", "*.go"))
			require.NoError(t, err)
			var got []string
			for _, path := range paths {
				if name := filepath.Base(path); !strings.HasSuffix(name, "_test.go") {
					got = append(got, name)
				}
			}
			assert.Equal(t, want, slices.Sorted(slices.Values(got)))
		})
	}
}

func TestPureFilesReachNothing(t *testing.T) {
	for _, folder := range operatorFolders(t) {
		for _, name := range pureFiles() {
			path := filepath.Join(folder, "controller", name)
			if _, err := os.Stat(path); os.IsNotExist(err) {
				continue // TestEveryOperatorHasTheSameFiles tells
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			where := filepath.Base(folder) + "/controller/" + name
			for _, imported := range file.Imports {
				importPath, err := strconv.Unquote(imported.Path.Value)
				require.NoError(t, err)
				for _, bad := range impureImports() {
					assert.False(t, isUnder(importPath, bad), "%s imports %s", where, importPath)
				}
			}
			for _, clock := range []string{"Now", "Since", "Until", "After", "NewTimer", "NewTicker"} {
				assert.Zero(t, calls(file, "time", clock), "%s uses time.%s: the time is an argument", where, clock)
			}
			assert.Zero(t, calls(file, "metav1", "Now"), "%s uses metav1.Now: the time is an argument", where)
		}
	}
}

func TestPackageNamesSayWhatPackagesAreFor(t *testing.T) {
	eachSource(t, func(path string, file *ast.File) {
		assert.NotContains(t, emptyNames(), file.Name.Name, path)
		assert.NotContains(t, emptyNames(), filepath.Base(filepath.Dir(path)), path)
	})
}

func TestNothingSleeps(t *testing.T) {
	eachSource(t, func(path string, file *ast.File) {
		assert.Zero(t, calls(file, "time", "Sleep"), "%s sleeps: wait for a condition with a deadline", path)
	})
}

// P12: net/http's own client follows redirects and uses proxies, wherever a tenant's
// program sends it.
func TestP12OperatorsSpeakHTTPByOneClient(t *testing.T) {
	found := 0
	eachSource(t, func(path string, file *ast.File) {
		in, _, _ := strings.Cut(path, string(filepath.Separator))
		if strings.HasSuffix(path, "_test.go") || in != "shared" && in != "operators" || strings.Contains(path, "/testkit/") {
			return
		}
		if strings.HasPrefix(filepath.ToSlash(path), "shared/httpclient/") {
			found++
			return
		}
		for _, name := range []string{"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "Client", "Transport", "ProxyFromEnvironment"} {
			for _, use := range uses(file, "http", name) {
				assert.True(t, use == "*", "%s uses http.%s: take the client of shared/httpclient", path, name)
			}
		}
	})
	assert.Positive(t, found)
}

// uses returns how a name of a package is used, by the package's usual name: "*" as
// the type of a pointer, "" otherwise.
func uses(file *ast.File, pkg, name string) []string {
	var out []string
	is := func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || selector.Sel.Name != name {
			return false
		}
		ident, ok := selector.X.(*ast.Ident)
		return ok && ident.Name == pkg
	}
	pointers := map[ast.Node]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		if star, ok := node.(*ast.StarExpr); ok && is(star.X) {
			pointers[star.X] = true
			out = append(out, "*")
		} else if is(node) && !pointers[node] {
			out = append(out, "")
		}
		return true
	})
	return out
}

// A controller that forgets it would act in the namespaces of other sets of operators.
func TestP12EveryControllerActsInItsShardOnly(t *testing.T) {
	built := 0
	eachSource(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "e2e") || len(uses(file, "ctrl", "NewControllerManagedBy")) == 0 {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || method(call) != "Complete" {
				return true
			}
			built++
			inner, ok := call.Args[len(call.Args)-1].(*ast.CallExpr)
			assert.True(t, ok && method(inner) == "InScope", "%s completes a controller without InScope", path)
			return true
		})
	})
	assert.GreaterOrEqual(t, built, 6)
}

// method is the name of the method that a call calls; empty if it calls none.
func method(call *ast.CallExpr) string {
	if selector, ok := call.Fun.(*ast.SelectorExpr); ok {
		return selector.Sel.Name
	}
	return ""
}

func TestEveryPackageHasADoc(t *testing.T) {
	documented, inFile, program := map[string]bool{}, map[string]string{}, map[string]bool{}
	eachSource(t, func(path string, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		documented[dir] = documented[dir] || file.Doc != nil
		program[dir] = file.Name.Name == "main"
		if filepath.Base(path) == "doc.go" && file.Doc != nil {
			inFile[dir] = file.Doc.Text()
		}
	})
	for dir, ok := range documented {
		assert.True(t, ok, "%s has no package comment", dir)
		if module, _, _ := strings.Cut(dir, "/"); program[dir] || module != "shared" && module != "operators" {
			continue
		}
		text, ok := inFile[dir]
		if !assert.True(t, ok, "%s has no doc.go with its package comment", dir) || strings.HasSuffix(dir, "/controller") {
			continue // a controller says what it reads, writes and sets
		}
		assert.LessOrEqual(t, strings.Count(text, "\n"), docLines, "lines of %s/doc.go", dir)
		assert.Regexp(t, `(In:|In goe?s?|Nothing goes in)(?s:.)*(Out:|[Oo]ut comes?)\s`, strings.Join(strings.Fields(text), " "), "%s/doc.go does not say what goes in and what comes out", dir)
	}
}

// calls counts the uses of a function of a package, by the package's usual name.
func calls(file *ast.File, pkg, function string) int {
	count := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name == function {
			if ident, ok := selector.X.(*ast.Ident); ok && ident.Name == pkg {
				count++
			}
		}
		return true
	})
	return count
}

// eachSource visits every Go file of every module, with its path from the root.
func eachSource(t *testing.T, visit func(path string, file *ast.File)) {
	t.Helper()
	eachParsed(t, func(path string, _ *token.FileSet, file *ast.File) { visit(path, file) })
}

// eachParsed is eachSource that tells positions, too.
func eachParsed(t *testing.T, visit func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	root, err := binaries.Root()
	require.NoError(t, err)
	for _, m := range importTable() {
		err := filepath.WalkDir(filepath.Join(root, m.name), func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "vendor") {
				return fs.SkipDir
			}
			if entry.IsDir() || !strings.HasSuffix(path, ".go") {
				return nil
			}
			set := token.NewFileSet()
			file, err := parser.ParseFile(set, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			visit(relative, set, file)
			return nil
		})
		require.NoError(t, err)
	}
}
