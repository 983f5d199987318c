package golden

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Update makes tests write the files that they compare with, if it is set.
const Update = "UPDATE_GOLDEN"

// CompareJSON compares a value with a file of JSON.
func CompareJSON(t testing.TB, file string, value any) {
	t.Helper()
	text, err := json.MarshalIndent(value, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	if os.Getenv(Update) != "" {
		require.NoError(t, os.WriteFile(file, text, 0o600))
	}
	want, err := os.ReadFile(file) //nolint:gosec // the test names it
	require.NoError(t, err)
	assert.Equal(t, string(want), string(text), "run with %s=1 if the difference is meant", Update)
}
