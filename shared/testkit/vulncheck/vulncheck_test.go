package vulncheck

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// scanner stands for govulncheck: it prints how it was called, and does not like the module "bad".
const scanner = `#!/bin/sh
echo "$(basename "$PWD")" "$@"
[ "$(basename "$PWD")" != bad ]
`

func modules(t *testing.T, names ...string) Options {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "govulncheck")
	require.NoError(t, os.WriteFile(program, []byte(scanner), 0o700))
	out := Options{Program: func(context.Context) (string, error) { return program, nil }, Out: &bytes.Buffer{}}
	for _, name := range names {
		module := filepath.Join(dir, name)
		require.NoError(t, os.Mkdir(module, 0o700))
		out.Modules = append(out.Modules, module)
	}
	return out
}

// database answers as one does that has an index, or with another status.
func database(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		assert.Equal(t, "/index/db.json", request.URL.Path)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestEveryModuleIsChecked(t *testing.T) {
	options := modules(t, "good", "bad", "last")
	options.Database = database(t, http.StatusOK)
	err := Run(t.Context(), options)
	require.ErrorContains(t, err, options.Modules[1])
	require.NotContains(t, err.Error(), options.Modules[0])
	for _, name := range []string{"good", "bad", "last"} {
		assert.Contains(t, options.Out.(*bytes.Buffer).String(), name+" -db "+options.Database+" ./...")
	}
	options.Modules = options.Modules[:1]
	assert.NoError(t, Run(t.Context(), options))
}

func TestAVulnerabilityDatabaseMayBeADirectory(t *testing.T) {
	options := modules(t, "good")
	dir := t.TempDir()
	options.Database = "file://" + dir
	require.ErrorContains(t, Run(t.Context(), options), "NOT CHECKED")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "index"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "index", "db.json"), []byte("{}"), 0o600))
	assert.NoError(t, Run(t.Context(), options))
}

func TestACheckFailsWhenItsDatabaseDoesNotAnswer(t *testing.T) {
	gone := httptest.NewServer(nil)
	gone.Close()
	for name, url := range map[string]string{"gone": gone.URL, "another server": database(t, http.StatusNotFound), "no address": "://"} {
		t.Run(name, func(t *testing.T) {
			options := modules(t, "good")
			options.Database = url
			require.ErrorContains(t, Run(t.Context(), options), "vulnerabilities were NOT CHECKED")
			assert.Empty(t, options.Out.(*bytes.Buffer).String())

			options.Optional = true
			require.NoError(t, Run(t.Context(), options))
			said := options.Out.(*bytes.Buffer).String()
			assert.Contains(t, said, "NOT CHECKED")
			assert.Equal(t, 1, bytes.Count([]byte(said), []byte("\n")), "one line, and no module: %s", said)
		})
	}
}

func TestAnInterruptedCheckIsNotReportedAsPassed(t *testing.T) {
	options := modules(t, "good")
	options.Database, options.Optional = database(t, http.StatusOK), true
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Error(t, Run(ctx, options))
}
