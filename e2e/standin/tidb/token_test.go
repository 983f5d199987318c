package tidb

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
)

// A real TiDB says the same in TestDB13ARealTiDBMovesSessionsByTokensThatItHasSigned.
func TestAServerWithoutAKeySignsNoTokens(t *testing.T) {
	pd := pdserver.StartWithStore(t)
	dir := t.TempDir()
	text := fmt.Sprintf("[security]\nsession-token-signing-cert = '%[1]s/tls.crt'\nsession-token-signing-key = '%[1]s/tls.key'\n", dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tidb.toml"), []byte(text), 0o600))
	var states, token []byte
	show := func(more ...string) error {
		r := start(t, pd, more...).ready(t)
		defer r.end(t)
		return r.db(t, "root", "").QueryRowContext(t.Context(), "SHOW SESSION_STATES").Scan(&states, &token)
	}
	require.ErrorContains(t, show(), "no certificate or key file to sign the data")
	config := "--config=" + filepath.Join(dir, "tidb.toml")
	require.ErrorContains(t, show(config), "no such file")

	secret, err := keyset.NewSigning(time.Now())
	require.NoError(t, err)
	for name, content := range secret {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	require.NoError(t, show(config))
	assert.JSONEq(t, `{"current-db": "test"}`, string(states))
	var said map[string]string
	require.NoError(t, json.Unmarshal(token, &said))
	assert.Equal(t, "root", said["username"])
}
