package statusport_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// P11: what TiDB ignores keeps nothing else from being given, and is the one that is
// named.
func TestTiDBIsNotGivenWhatItIgnoresWithoutAWord(t *testing.T) {
	refusal, err := statusport.Settings{}.Take(t.Context(), "127.0.0.1", map[string]string{"ddl_slow_threshold": "0"})
	require.NoError(t, err)
	assert.Equal(t, "TiDB ignores 0", refusal)

	var form string
	host := loopback.Host(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "10080"))
	require.NoError(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		assert.NoError(t, r.ParseForm())
		form = r.PostForm.Encode()
	})}}
	server.Start()
	defer server.Close()
	refusal, err = statusport.Settings{}.Take(t.Context(), host, map[string]string{"ddl_slow_threshold": "0", "log_level": "debug"})
	require.NoError(t, err)
	assert.Equal(t, "TiDB ignores 0", refusal)
	assert.Equal(t, "log_level=debug", form)
}
