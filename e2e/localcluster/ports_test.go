package localcluster

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

func TestAPortInUseIsNamedWithWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", loopback.Address(t))
	require.NoError(t, err)
	address, ok := l.Addr().(*net.TCPAddr)
	require.True(t, ok)
	err = freeAt(t.Context(), address.IP.String(), address.Port)
	require.ErrorContains(t, err, "is in use by another program: find it with: ss -ltnp")
	require.NoError(t, l.Close())
	require.NoError(t, freeAt(t.Context(), address.IP.String(), address.Port))
}
