package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// How much of a behaviour there is.
const (
	works  = "works"
	partly = "partly"
	absent = "absent"
)

// Behaviour is one behaviour of TiDB Operator, and what this suite has of it.
type Behaviour struct {
	ID   string `json:"id"`
	Does string `json:"does"`
	// State is works, partly or absent.
	State string `json:"state"`
	// Tests are names of Test functions that fail without it.
	Tests []string `json:"tests,omitempty"`
	// Scenarios are files of e2e/scenarios that fail without it.
	Scenarios []string `json:"scenarios,omitempty"`
	// Lacks says what is missing; empty if it works.
	Lacks string `json:"lacks,omitempty"`
}

// ReadParity reads the behaviours from e2e/architecture/parity.yaml of the tree at root.
func ReadParity(root string) ([]Behaviour, error) {
	text, err := os.ReadFile(filepath.Join(root, "e2e", "architecture", "parity.yaml"))
	if err != nil {
		return nil, fmt.Errorf("read behaviours: %w", err)
	}
	var all []Behaviour
	if err := yaml.UnmarshalStrict(text, &all); err != nil {
		return nil, fmt.Errorf("read behaviours: %w", err)
	}
	return all, nil
}

// kind is a kind of behaviours: the letters and the heading, and how many there are.
type kind struct {
	letters, heading string
	count            int
}

func behaviourKinds() []kind {
	return []kind{
		{"PD", "PD", 22}, {"KV", "TiKV", 29}, {"DB", "TiDB", 20}, {"FL", "TiFlash", 9},
		{"CDC", "TiCDC", 3}, {"PX", "TiProxy", 4}, {"PMP", "Pump and Drainer", 1}, {"DM", "DM", 2},
		{"GRP", "Groups", 12}, {"VOL", "Volumes", 6}, {"SEC", "Security", 3}, {"OPS", "Operations", 3},
		{"BR", "Backup", 5}, {"MON", "Monitoring", 1},
	}
}

// behaviourIDs returns the ids of all behaviours, in their order.
func behaviourIDs() []string {
	var out []string
	for _, k := range behaviourKinds() {
		for n := range k.count {
			out = append(out, fmt.Sprintf("%s-%02d", k.letters, n+1))
		}
	}
	return out
}

// Place is where a test function is.
type Place struct {
	// File is the path from the root of the tree.
	File string
	// Asserts says that the function compares something or fails by itself.
	Asserts bool
}

// Places are the test functions of a tree, by name.
type Places map[string][]Place

// FindTests finds every Test function of the tree at root.
func FindTests(root string) (Places, error) {
	out := Places{}
	tests, helpers := map[string][]*ast.FuncDecl{}, map[string]map[string]*ast.FuncDecl{} // by file, by folder and name
	files := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		file = filepath.ToSlash(file)
		folder := filepath.Dir(file)
		if helpers[folder] == nil {
			helpers[folder] = map[string]*ast.FuncDecl{}
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || f.Body == nil {
				continue
			}
			helpers[folder][f.Name.Name] = f
			if strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				tests[file] = append(tests[file], f)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("find tests: %w", err)
	}
	for _, file := range slices.Sorted(maps.Keys(tests)) {
		for _, f := range tests[file] {
			out[f.Name.Name] = append(out[f.Name.Name], Place{File: file, Asserts: makesAssertions(f, helpers[filepath.Dir(file)], map[string]bool{})})
		}
	}
	return out, nil
}

// makesAssertions tells whether a function calls testify or fails a test by itself, or one that
// it calls in its folder does.
func makesAssertions(f *ast.FuncDecl, helpers map[string]*ast.FuncDecl, seen map[string]bool) bool {
	if seen[f.Name.Name] {
		return false
	}
	seen[f.Name.Name] = true
	found := false
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || found {
			return !found
		}
		switch called := call.Fun.(type) {
		case *ast.SelectorExpr:
			of, _ := called.X.(*ast.Ident)
			found = of != nil && (of.Name == "assert" || of.Name == "require") || slices.Contains([]string{"Error", "Errorf", "Fatal", "Fatalf"}, called.Sel.Name) && len(call.Args) > 0
		case *ast.Ident:
			helper := helpers[called.Name]
			found = helper != nil && makesAssertions(helper, helpers, seen)
		}
		return !found
	})
	return found
}

// Find returns the test of a name, which has its folder before it (folder.TestName) if
// several tests are called alike.
func (p Places) Find(name string) (Place, error) {
	folder, name := cutLast(name)
	var found []Place
	for _, place := range p[name] {
		if folder == "" || strings.HasSuffix("/"+filepath.ToSlash(filepath.Dir(place.File)), "/"+folder) {
			found = append(found, place)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return Place{}, fmt.Errorf("there is no test %s", name)
	}
	return Place{}, fmt.Errorf("%d tests are called %s: write folder.%s", len(found), name, name)
}

// cutLast cuts the folder off the name of a test.
func cutLast(name string) (folder, test string) {
	at := strings.LastIndex(name, ".")
	if at < 0 {
		return "", name
	}
	return name[:at], name[at+1:]
}

// RenderPage returns docs/parity.md.
func RenderPage(all []Behaviour, tests Places) (string, error) {
	totals := map[string]map[string]int{}
	rows := map[string][]string{}
	for _, b := range all {
		letters, _, _ := strings.Cut(b.ID, "-")
		if totals[letters] == nil {
			totals[letters] = map[string]int{}
		}
		totals[letters][b.State]++
		evidence, err := renderEvidence(b, tests)
		if err != nil {
			return "", err
		}
		rows[letters] = append(rows[letters], fmt.Sprintf("| %s | %s | %s | %s |", b.ID, escapeCell(b.Does), b.State, evidence))
	}
	var out strings.Builder
	out.WriteString(`<!-- Written by "make generate" from e2e/architecture/parity.yaml. Do not edit. -->

# Parity with TiDB Operator

What TiDB Operator does, in either of its versions, is ` + fmt.Sprint(len(all)) + ` behaviours, and this is how much of each the suite has: it **works** as the row says, some of it does (**partly**), or nothing of it (**absent**).
Evidence are tests and scenarios that fail without it. Unless a scenario begins with ` + "`real-`" + `, the database is a model or a stand-in there:
[what is real in which test](contributing/testing.md#what-is-real-in-which-test).

| | works | partly | absent | all |
|---|---|---|---|---|
`)
	sum := map[string]int{}
	for _, k := range behaviourKinds() {
		of := totals[k.letters]
		fmt.Fprintf(&out, "| %s | %d | %d | %d | %d |\n", k.heading, of[works], of[partly], of[absent], len(rows[k.letters]))
		for state := range maps.Keys(of) {
			sum[state] += of[state]
		}
	}
	fmt.Fprintf(&out, "| **all** | **%d** | **%d** | **%d** | **%d** |\n", sum[works], sum[partly], sum[absent], len(all))
	for _, k := range behaviourKinds() {
		fmt.Fprintf(&out, "\n## %s\n\n| id | behaviour | state | evidence, and what is missing |\n|---|---|---|---|\n%s\n", k.heading, strings.Join(rows[k.letters], "\n"))
	}
	return out.String(), nil
}

// renderEvidence is the last cell of a row.
func renderEvidence(b Behaviour, tests Places) (string, error) {
	var parts []string
	for _, name := range b.Tests {
		if _, err := tests.Find(name); err != nil {
			return "", fmt.Errorf("%s: %w", b.ID, err)
		}
		parts = append(parts, "`"+name+"`")
	}
	for _, name := range b.Scenarios {
		parts = append(parts, "scenario `"+name+"`")
	}
	if b.Lacks != "" {
		word := ""
		if b.State == partly {
			word = "missing: "
		}
		parts = append(parts, word+escapeCell(b.Lacks))
	}
	return strings.Join(parts, "<br>"), nil
}

// escapeCell keeps a text within its cell.
func escapeCell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
