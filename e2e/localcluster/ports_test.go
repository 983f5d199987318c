package localcluster

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAPortInUseIsNamedWithWhatToDo(t *testing.T) {
	const host = "127.0.0.1"
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	require.NoError(t, err)
	address, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	err = freeAt(t.Context(), host, address.Port)
	require.ErrorContains(t, err, "is in use by another program: find it with: ss -ltnp")
	require.NoError(t, l.Close())
	require.NoError(t, freeAt(t.Context(), host, address.Port))
}
