package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheFirstPageNamesTheSizeOfTheCRDs(t *testing.T) {
	files, err := filepath.Glob("../crds/groups.tidb.dev_*.yaml")
	require.NoError(t, err)
	size := int64(0)
	for _, file := range files {
		info, err := os.Stat(file)
		require.NoError(t, err)
		size += info.Size()
	}
	want := fmt.Sprintf("| size of the CRDs | 2.9 MB | 22.8 MB | %.1f MB |", float64(size)/1e6)
	assert.Contains(t, pages(t)["docs/README.md"], want, "deploy/crds has %d bytes", size)
}

// Every component of kustomize has a row in the table of the page, and the table no others.
func TestThePageOfInstallationListsEveryComponent(t *testing.T) {
	page := pages(t)["docs/tasks/install.md"]
	components, err := filepath.Glob("../components/*")
	require.NoError(t, err)
	require.NotEmpty(t, components)
	for _, component := range components {
		name := filepath.Base(component)
		assert.Regexp(t, "(?m)^\\| (`[a-z-]+`, )*`"+name+"`(, `[a-z-]+`)* \\|", page, "docs/tasks/install.md does not list components/%s", name)
	}
}
