package settings_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/settings"
)

// resets listens on a port that resets every connection when it has read the
// request.
func resets(t *testing.T) settings.Port {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = http.ReadRequest(bufio.NewReader(connection))
			if tcp, ok := connection.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			_ = connection.Close()
		}
	}()
	at, ok := listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return settings.Port(at.Port)
}

// A message that ends in a status must not change by itself.
func TestTheSameFailureOfAStatusPortReadsTheSame(t *testing.T) {
	port := resets(t)
	url := port.URL(t.Context(), "127.0.0.1", "/config")
	for range 2 {
		_, err := port.Get(t.Context(), "127.0.0.1", "/config")
		require.EqualError(t, err, "get "+url+": connection reset by peer")
		_, err = port.Post(t.Context(), "127.0.0.1", "/config", "", "")
		assert.EqualError(t, err, "post to "+url+": connection reset by peer")
	}
}

func TestAMemberMayHaveAnIPv6Address(t *testing.T) {
	assert.Equal(t, "http://[fd00::1]:20180/config", settings.Port(20180).URL(t.Context(), "fd00::1", "/config"))
	assert.Equal(t, "http://10.0.0.1:20180/config", settings.Port(20180).URL(t.Context(), "10.0.0.1", "/config"))
}

// serve answers every request at a status port as a test says.
func serve(t *testing.T, handler http.HandlerFunc) settings.Port {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	at, ok := server.Listener.Addr().(*net.TCPAddr)
	require.True(t, ok)
	return settings.Port(at.Port)
}

// A member may be any program of its namespace's owner: it neither sends the operator
// elsewhere, nor does it take the memory that the operator has for everybody.
func TestP10P12AHostileMemberCanNeitherRedirectNorExhaustAnOperator(t *testing.T) {
	forwarded := 0
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		forwarded++
		_, _ = w.Write([]byte(`{"secret":"of the cloud"}`))
	}))
	t.Cleanup(target.Close)
	redirects := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, target.URL, http.StatusTemporaryRedirect)
	})
	_, err := redirects.Get(t.Context(), "127.0.0.1", "/config")
	require.EqualError(t, err, "get "+redirects.URL(t.Context(), "127.0.0.1", "/config")+": 307 Temporary Redirect")
	_, err = redirects.Text(t.Context(), "127.0.0.1", "/tiflash/store-status")
	require.EqualError(t, err, "get "+redirects.URL(t.Context(), "127.0.0.1", "/tiflash/store-status")+": 307 Temporary Redirect")
	refusal, err := redirects.Post(t.Context(), "127.0.0.1", "/upgrade/start", "application/json", "{}")
	require.NoError(t, err)
	assert.Equal(t, "307 Temporary Redirect", refusal)
	assert.Zero(t, forwarded)

	text := ""
	talks := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
	text = `{"a":"` + strings.Repeat("x", 512<<10) + `"}`
	_, err = talks.Get(t.Context(), "127.0.0.1", "/config")
	require.ErrorContains(t, err, "/config: the answer is too long: more than 524288 bytes")
	text = `{"a":[{}` + strings.Repeat(",{}", 20_000) + `]}`
	_, err = talks.Get(t.Context(), "127.0.0.1", "/config")
	require.ErrorContains(t, err, "/config: it has more than 20000 values")
	text = strings.Repeat("long ", 100)
	_, err = talks.Text(t.Context(), "127.0.0.1", "/word")
	require.ErrorContains(t, err, "/word: the answer is too long: more than 256 bytes")
}
