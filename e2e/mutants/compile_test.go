package mutants_test

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/mutants"
	"github.com/tidb-groups/tidb-groups/e2e/overlay"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// compiled is what the compiler knows of some packages and of all that these import.
type compiled struct {
	root   string
	files  map[string][]string // of a package, by its directory from the root
	export map[string]string   // the file with what a package exports, by its path
}

// compile compiles packages of a module, given their directories from the root.
func (c compiled) compile(t *testing.T, module string, dirs []string) {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}\t{{.Dir}}\t{{join .GoFiles \" \"}}"}
	for _, dir := range dirs {
		args = append(args, filepath.Join(c.root, dir))
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir, list.Stderr = filepath.Join(c.root, module), os.Stderr
	out, err := list.Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimRight(line, "\n"), "\t")
		require.Len(t, fields, 4)
		c.export[fields[0]] = fields[1]
		if dir, err := filepath.Rel(c.root, fields[2]); err == nil {
			c.files[dir] = strings.Fields(fields[3])
		}
	}
}

// check looks for mistakes of types in the package of a directory some of whose files are changed.
func (c compiled) check(dir string, changed map[string]string) error {
	set, files := token.NewFileSet(), []*ast.File(nil)
	for _, name := range c.files[dir] {
		var text any // nil: what the file says
		if other, ok := changed[dir+"/"+name]; ok {
			text = other
		}
		file, err := parser.ParseFile(set, filepath.Join(c.root, dir, name), text, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	open := func(path string) (io.ReadCloser, error) { return os.Open(c.export[path]) }
	_, err := (&types.Config{Importer: importer.ForCompiler(set, "gc", open)}).Check(dir, set, files, nil)
	return err
}

// What the compiler refuses is no bug: an edit may need an import or a name that is gone.
func TestEveryMutantCompiles(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	all, err := mutants.All()
	require.NoError(t, err)
	edited := map[string][]string{} // directories by module
	for _, m := range all {
		for _, e := range m.Edits {
			module, _, _ := strings.Cut(e.File, "/")
			if dir := filepath.Dir(e.File); !slices.Contains(edited[module], dir) {
				edited[module] = append(edited[module], dir)
			}
		}
	}
	c := compiled{root, map[string][]string{}, map[string]string{}}
	for module, dirs := range edited {
		c.compile(t, module, dirs)
	}
	for _, m := range all {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			changed, err := overlay.Apply(root, m.Edits)
			require.NoError(t, err)
			for file := range changed {
				dir := filepath.Dir(file)
				assert.Contains(t, c.files[dir], filepath.Base(file), "files of package %s", dir)
				assert.NoError(t, c.check(dir, changed))
			}
		})
	}
}
