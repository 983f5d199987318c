package settings_test

import (
	"bufio"
	"net"
	"net/http"
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
	url := port.URL("127.0.0.1", "/config")
	for range 2 {
		_, err := port.Get(t.Context(), "127.0.0.1", "/config")
		require.EqualError(t, err, "get "+url+": connection reset by peer")
		_, err = port.Post(t.Context(), "127.0.0.1", "/config", "", "")
		assert.EqualError(t, err, "post to "+url+": connection reset by peer")
	}
}
