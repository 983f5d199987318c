package architecture

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// computedReasons are the reasons of Events that the code does not name where it records
// them, by the expression that stands there.
func computedReasons() map[string][]string {
	return map[string][]string{
		"string(apply.Created)":          {"Created"},
		"string(result)":                 {"Created", "Updated"},
		"string(component.DeleteMember)": {"DeleteMember"},
		"string(verb)":                   {"DeleteMember", "DeleteStore", "RestoreStore"}, // the others are only logged
		"c.Event":                        {"ClaimUpdated", "ClaimRetired"},
		"c.Reason":                       nil, // of a condition: docs/conditions.md has them
		"reason":                         nil, // handed on
		"ReasonReleased":                 {"ReleasedByShard"},
	}
}

func TestTheReferenceListsEveryEvent(t *testing.T) {
	found := map[string]bool{}
	eachSource(t, func(path string, file *ast.File) {
		module, _, _ := strings.Cut(filepath.ToSlash(path), "/")
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "testkit") || module != "shared" && module != "operators" {
			return
		}
		for _, reason := range eventReasons(file) {
			if text, err := strconv.Unquote(reason); err == nil {
				found[text] = true
				continue
			}
			reasons, known := computedReasons()[reason]
			assert.True(t, known, "%s records an Event of reason %s: add what it may be to computedReasons", path, reason)
			for _, r := range reasons {
				found[r] = true
			}
		}
	})
	var want []string
	for reason := range found {
		want = append(want, reason)
	}
	require.Greater(t, len(want), 20)
	assert.ElementsMatch(t, want, listed(t, "Events", "`([A-Z][A-Za-z]+)`"), "the Events in docs/reference/operators.md")
}

// eventReasons are the expressions that a file gives as the reasons of Events.
func eventReasons(file *ast.File) []string {
	var out []string
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			switch name := method(n); {
			case name == "Eventf" && len(n.Args) > 5:
				out = append(out, source(n.Args[3]))
			case name == "recordEvent" && len(n.Args) > 3:
				if _, format := n.Args[3].(*ast.BasicLit); format { // not a metric
					out = append(out, source(n.Args[2]))
				}
			}
		case *ast.CompositeLit: // an Event that is made by hand
			if source(n.Type) != "eventsv1.Event" {
				return true
			}
			for _, element := range n.Elts {
				if field, ok := element.(*ast.KeyValueExpr); ok && source(field.Key) == "Reason" {
					out = append(out, source(field.Value))
				}
			}
		}
		return true
	})
	return out
}

// source is the text of an expression.
func source(expression ast.Expr) string {
	var out bytes.Buffer
	if expression == nil || printer.Fprint(&out, token.NewFileSet(), expression) != nil {
		return ""
	}
	return out.String()
}

func TestTheReferenceListsEveryFlag(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "shared", "operator", "flags.go"), nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var want []string
	ast.Inspect(file, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok && strings.HasSuffix(method(call), "Var") && len(call.Args) > 1 {
			name, err := strconv.Unquote(source(call.Args[1]))
			require.NoError(t, err, "the name of a flag")
			want = append(want, name)
		}
		return true
	})
	require.Greater(t, len(want), 10)
	assert.ElementsMatch(t, want, listed(t, "Flags", "`--([a-z-]+)`"), "the flags in docs/reference/operators.md")
}

// listed is what the first column of the table in a section of docs/reference/operators.md
// names.
func listed(t *testing.T, section, pattern string) []string {
	t.Helper()
	root, err := binaries.Root()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(root, "docs", "reference", "operators.md"))
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(page), "\n## "+section+"\n")
	require.True(t, found, "the page has no section %s", section)
	rest, _, _ = strings.Cut(rest, "\n## ")
	var out []string
	for line := range strings.Lines(rest) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			continue
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(cells[1], -1) {
			out = append(out, m[1])
		}
	}
	require.NotEmpty(t, out)
	slices.Sort(out)
	return slices.Compact(out)
}
