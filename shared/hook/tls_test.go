package hook

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

func TestSEC01AHookShowsTheCertificateAndKnowsPD(t *testing.T) {
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	data, err := ca.Secret(pki.Leaf{Names: []string{"b-0.b-peer.shop.svc"}})
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS, err = pki.ServerConfig(data)
	require.NoError(t, err)
	server.StartTLS()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	call := func(secured TLS) error {
		return NewPD(server.URL, secured).Call(t.Context(), http.MethodGet, "/pd/api/v1/leader", nil, nil)
	}
	require.ErrorContains(t, call(TLS{Dir: dir, ServerName: "b-0.b-peer.shop.svc"}), "read the CA")
	require.NoError(t, pki.Write(dir, data))
	require.NoError(t, call(TLS{Dir: dir, ServerName: "b-0.b-peer.shop.svc"}))
	require.ErrorContains(t, call(TLS{Dir: dir, ServerName: "b-1.b-peer.shop.svc"}), "b-1.b-peer.shop.svc", "it is another one")
	require.ErrorContains(t, call(TLS{Dir: dir}), "127.0.0.1", "the host of the URL is its name, if no other is given")
	require.Error(t, call(TLS{}), "who shows no certificate gets nothing")
	require.NoError(t, pki.Write(dir, map[string][]byte{"ca.crt": []byte("x")}))
	assert.ErrorIs(t, call(TLS{Dir: dir}), errNoCA)
}
