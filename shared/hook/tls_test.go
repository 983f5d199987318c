package hook

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// write puts the files of a certificate into a folder, as a Secret is mounted.
func write(t *testing.T, dir string, data map[string][]byte) {
	t.Helper()
	for name, content := range data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
}

func TestSEC01AHookShowsTheCertificateAndKnowsPD(t *testing.T) {
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	data, err := ca.Secret(pki.Leaf{Names: []string{"b-0.b-peer.shop.svc"}})
	require.NoError(t, err)
	pair, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	require.NoError(t, err)
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(data["ca.crt"])
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}
	server.StartTLS()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	call := func(secured TLS) error {
		return NewPD(server.URL, secured).Call(t.Context(), http.MethodGet, "/pd/api/v1/leader", nil, nil)
	}
	require.ErrorContains(t, call(TLS{Dir: dir, ServerName: "b-0.b-peer.shop.svc"}), "read the CA")
	write(t, dir, data)
	require.NoError(t, call(TLS{Dir: dir, ServerName: "b-0.b-peer.shop.svc"}))
	require.ErrorContains(t, call(TLS{Dir: dir, ServerName: "b-1.b-peer.shop.svc"}), "b-1.b-peer.shop.svc", "it is another one")
	require.ErrorContains(t, call(TLS{Dir: dir}), "127.0.0.1", "the host of the URL is its name, if no other is given")
	require.Error(t, call(TLS{}), "who shows no certificate gets nothing")
	write(t, dir, map[string][]byte{"ca.crt": []byte("x")})
	assert.ErrorIs(t, call(TLS{Dir: dir}), errNoCA)
}
