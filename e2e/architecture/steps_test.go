package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// The page lists the steps of a plan as "1. `compareInstances`: …", in the order in which
// planMembers of shared/group/steps.go takes them.
func TestTheStepsOfAPlanAreDescribedInTheirOrder(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "shared", "group", "steps.go"), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "architecture.md"))
	require.NoError(t, err)
	var described []string
	for _, m := range regexp.MustCompile("(?m)^\\d+\\. `([a-zA-Z]+)`: .").FindAllStringSubmatch(string(page), -1) {
		described = append(described, m[1])
	}
	want := stepsOf(file)
	require.Greater(t, len(want), 5)
	assert.Equal(t, want, described, "the steps of a plan in docs/architecture.md")
}

// stepsOf are the functions whose results planMembers keeps, in their order: its own, and those
// of package disruption.
func stepsOf(file *ast.File) []string {
	var names []string
	for _, declared := range file.Decls {
		f, ok := declared.(*ast.FuncDecl)
		if !ok || f.Name.Name != "planMembers" {
			continue
		}
		for _, statement := range f.Body.List {
			assigned, ok := statement.(*ast.AssignStmt)
			if !ok {
				continue
			}
			call, ok := assigned.Rhs[0].(*ast.CallExpr)
			if !ok {
				continue
			}
			switch function := call.Fun.(type) {
			case *ast.Ident:
				names = append(names, function.Name)
			case *ast.SelectorExpr:
				names = append(names, strings.ToLower(function.Sel.Name[:1])+function.Sel.Name[1:])
			}
		}
	}
	return names
}
