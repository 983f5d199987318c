package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// The page lists the steps of a plan as "1. `compare`: …", in the order in which
// planMembers of shared/group/steps.go takes them.
func TestTheStepsOfAPlanAreDescribedInTheirOrder(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "shared", "group", "steps.go"), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	var described []string
	for _, m := range regexp.MustCompile("(?m)^\\d+\\. `([a-z]+)`: .").FindAllStringSubmatch(string(page), -1) {
		described = append(described, m[1])
	}
	want := stepsOf(file)
	require.Greater(t, len(want), 5)
	assert.Equal(t, want, described, "the steps of a plan in docs/architecture.md")
}

// stepsOf are the functions of the file that planMembers calls, in their order. Each takes its
// inputs as parameters, and only the last, collect, is no step: it puts their outputs together.
func stepsOf(file *ast.File) []string {
	own := map[string]bool{}
	var body *ast.BlockStmt
	for _, declared := range file.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok && f.Recv == nil {
			own[f.Name.Name] = true
			if f.Name.Name == "planMembers" {
				body = f.Body
			}
		}
	}
	var names []string
	ast.Inspect(body, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok {
			return true
		}
		if name, ok := call.Fun.(*ast.Ident); ok && own[name.Name] && name.Name != "collect" {
			names = append(names, name.Name)
		}
		return true
	})
	return names
}
