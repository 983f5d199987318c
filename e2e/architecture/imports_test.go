package architecture

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

func TestEveryModuleImportsOnlyWhatTheTableAllows(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	for _, m := range importTable() {
		t.Run(m.name, func(t *testing.T) {
			packages, err := listPackages(t.Context(), filepath.Join(root, m.name))
			require.NoError(t, err)
			owner := owners(packages)
			for _, p := range packages {
				if isUnder(p.ImportPath, prefix+m.name) {
					checkDirect(t, m, p, owner)
				} else if sibling, ours := strings.CutPrefix(p.ImportPath, prefix); ours {
					name, _, _ := strings.Cut(sibling, "/")
					assert.Contains(t, m.siblings, name, "%s depends on %s", m.name, p.ImportPath)
				}
			}
		})
	}
}

// owners maps each package that is not of the standard library to its module.
func owners(packages []pkg) map[string]string {
	owner := map[string]string{}
	for _, p := range packages {
		if p.Module != nil {
			owner[p.ImportPath] = p.Module.Path
		}
	}
	return owner
}

// checkDirect checks what one package imports by itself.
func checkDirect(t *testing.T, m module, p pkg, owner map[string]string) {
	t.Helper()
	if m.anything {
		return
	}
	check := func(imports, allowed []string, kind string) {
		for _, path := range imports {
			from, external := owner[path]
			if !external || strings.HasPrefix(from, prefix) {
				continue // the standard library, or checked as a sibling
			}
			assert.True(t, slices.Contains(allowed, from), "%s of %s imports %s of module %s, which the table does not allow",
				kind, p.ImportPath, path, from)
		}
	}
	allowed := allowedExternal(m)
	check(p.Imports, allowed, "the code")
	check(slices.Concat(p.TestImports, p.XTestImports), slices.Concat(allowed, m.testExternal), "a test")
}

// allowedExternal is a module's own list with those of its siblings.
func allowedExternal(m module) []string {
	allowed := slices.Clone(m.external)
	for _, other := range importTable() {
		if slices.Contains(m.siblings, other.name) {
			allowed = append(allowed, other.external...)
		}
	}
	return allowed
}

func TestNoOperatorDependsOnAnother(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	packages, err := listPackages(t.Context(), filepath.Join(root, "operators"))
	require.NoError(t, err)
	operatorOf := func(path string) string {
		rest, found := strings.CutPrefix(path, prefix+"operators/")
		if !found {
			return ""
		}
		name, _, _ := strings.Cut(rest, "/")
		return name
	}
	for _, p := range packages {
		own := operatorOf(p.ImportPath)
		if own == "" {
			continue
		}
		for _, path := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			switch other := operatorOf(path); {
			case other == "":
			case own == v1alpha1.OperatorAll && other != own:
				assert.Equal(t, prefix+"operators/"+other+"/controller", path, "operators/all only starts operators")
			default:
				assert.Equal(t, own, other, "%s imports %s", p.ImportPath, path)
			}
		}
	}
}

func TestDeployUsesOnlyPurePartsOfOperators(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	packages, err := listPackages(t.Context(), filepath.Join(root, "deploy"))
	require.NoError(t, err)
	for _, p := range packages {
		if !isUnder(p.ImportPath, prefix+"deploy") {
			continue
		}
		for _, path := range p.Imports {
			if isUnder(path, prefix+"operators") {
				assert.True(t, strings.HasSuffix(path, "/controller"), "%s imports %s", p.ImportPath, path)
			}
		}
	}
}

// What two modules need is compiled once, and what ships is what was tested: they
// require the same versions.
func TestModulesRequireTheSameVersions(t *testing.T) {
	root, err := binaries.Root()
	require.NoError(t, err)
	required := map[string]map[string]string{} // by dependency, by module of ours
	for _, m := range importTable() {
		text, err := os.ReadFile(filepath.Join(root, m.name, "go.mod"))
		require.NoError(t, err)
		mod, err := modfile.Parse(m.name, text, nil)
		require.NoError(t, err)
		for _, r := range mod.Require {
			if required[r.Mod.Path] == nil {
				required[r.Mod.Path] = map[string]string{}
			}
			required[r.Mod.Path][m.name] = r.Mod.Version
		}
	}
	for dependency, versions := range required {
		found := slices.Compact(slices.Sorted(maps.Values(versions)))
		assert.Len(t, found, 1, "%s is required in different versions: %v; in the modules with an older one: go get %s@%s && go mod tidy", dependency, versions, dependency, found[len(found)-1])
	}
}
