package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tidb-groups/tidb-groups/e2e/remedy"
)

// quotesText reports whether a test, or a function of its file that is no test, has a string
// of a text.
func quotesText(root, file, test, format string) (bool, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		return false, fmt.Errorf("read test %s: %w", test, err)
	}
	found := false
	for _, d := range parsed.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != test {
			continue
		}
		ast.Inspect(f, func(node ast.Node) bool {
			if literal, ok := node.(*ast.BasicLit); ok && literal.Kind == token.STRING {
				text, err := strconv.Unquote(literal.Value)
				found = found || err == nil && remedy.CountQuotedLetters(text, format) > 0
			}
			return !found
		})
	}
	return found, nil
}

// checkEvidence says what is wrong with the evidence of a text.
func checkEvidence(root string, e remedy.Evidence, tests Places, inRig map[string]bool) []string {
	var out []string
	say := func(bad bool, what string) {
		if bad {
			out = append(out, fmt.Sprintf("%s: %q", what, e.Says))
		}
	}
	inScenario := len(e.Scenarios) > 0
	say(!slices.Contains([]string{remedy.Pasted, remedy.DryRun, remedy.Run, remedy.Taken}, e.How), "it is proved by "+e.How)
	say((e.How == remedy.Taken) == inScenario, "a scenario tries a command that stands in a status, and only for one of which none does kubectl alone is asked")
	say((e.How == remedy.Taken) != (e.Why != ""), "why no scenario prints a command is said, where none does")
	for _, name := range e.Scenarios {
		say(!inRig[name], "the rig has no scenario "+name)
	}
	for _, name := range e.Tests {
		place, err := tests.Find(name)
		if err != nil {
			say(true, err.Error())
			continue
		}
		_, short := cutLast(name)
		has, err := quotesText(root, place.File, short, e.Says)
		say(err != nil || !has, name+" does not look for it")
	}
	return out
}
