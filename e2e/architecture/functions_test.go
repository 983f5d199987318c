package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// functionLines is how long 99 of 100 functions are at most: what can be read without
// scrolling.
const functionLines = 60

func TestFunctionsAreShort(t *testing.T) {
	var lengths []int
	eachFunction(t, isWrittenCode, func(_ string, set *token.FileSet, f *ast.FuncDecl) {
		lengths = append(lengths, set.Position(f.End()).Line-set.Position(f.Pos()).Line+1)
	})
	require.Greater(t, len(lengths), 1000)
	slices.Sort(lengths)
	assert.LessOrEqual(t, lengths[len(lengths)*99/100], functionLines, "lines of one function in a hundred")
}

// isWrittenCode reports whether a file is neither generated nor of a test.
func isWrittenCode(path string) bool {
	return !isOfTest(path) && !strings.Contains(path, "zz_generated")
}

// isOfTest reports whether a file is of a test.
func isOfTest(path string) bool { return strings.HasSuffix(path, "_test.go") }

// eachFunction visits the functions of the files that are wanted.
func eachFunction(t *testing.T, isWanted func(path string) bool, visit func(path string, set *token.FileSet, f *ast.FuncDecl)) {
	t.Helper()
	eachParsed(t, func(path string, set *token.FileSet, file *ast.File) {
		if !isWanted(path) {
			return
		}
		for _, declared := range file.Decls {
			if f, ok := declared.(*ast.FuncDecl); ok {
				visit(path, set, f)
			}
		}
	})
}

// A reason or condition has the name in Go that users see.
func TestConstantsOfConditionsAreNamedAsTheirValues(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "apis", "groups", "v1alpha1", "conditions.go"), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	seen := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		for _, prefix := range []string{"Reason", "Condition"} {
			if name, is := strings.CutPrefix(spec.Names[0].Name, prefix); is && ok && value.Kind == token.STRING {
				seen++
				assert.Equal(t, `"`+name+`"`, value.Value)
			}
		}
		return true
	})
	assert.Greater(t, seen, 100)
}
