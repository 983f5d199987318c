package timetable

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The images of the operators hold no file but programs, so that a program brings the zones along; on a machine
// that has them nothing else would show it.
func TestTimeZonesAreKnownInAnImageWithoutFiles(t *testing.T) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var imported []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, i := range parsed.Imports {
			imported = append(imported, i.Path.Value)
		}
	}
	assert.Contains(t, imported, `"time/tzdata"`)
}
