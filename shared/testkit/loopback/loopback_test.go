package loopback

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestEveryAddressIsGivenOnce(t *testing.T) {
	seen := map[string]bool{}
	for range 600 {
		address := Address(t)
		require.False(t, seen[address], address)
		seen[address] = true
		host, _, err := net.SplitHostPort(address)
		require.NoError(t, err)
		require.True(t, net.ParseIP(host).IsLoopback(), host)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", Address(t))
	require.NoError(t, err)
	require.NoError(t, l.Close())
}

// Two of them are two processes, here with the same process ID.
func TestTwoProcessesNeverGetTheSameAddress(t *testing.T) {
	var one, other addresses
	t.Cleanup(func() {
		for _, l := range append(one.held, other.held...) {
			assert.NoError(t, l.Close())
		}
	})
	seen := map[string]bool{}
	for range 300 {
		for _, a := range []*addresses{&one, &other} {
			host, err := a.next(t.Context())
			require.NoError(t, err)
			require.False(t, seen[host], host)
			seen[host] = true
		}
	}
}
