package httpclient_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// pair is a certificate of a CA, and how it is used by either side.
func pair(t *testing.T, ca *pki.CA, names ...string) *tls.Config {
	t.Helper()
	data, err := ca.Secret(pki.Leaf{Names: names})
	require.NoError(t, err)
	certificate, err := tls.X509KeyPair(data["tls.crt"], data["tls.key"])
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(data["ca.crt"])
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, ServerName: "pd.shop.svc"}
}

func TestSEC01ATransportUsesTheTLSConfigOfEachRequest(t *testing.T) {
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	stranger, err := pki.New(time.Now())
	require.NoError(t, err)
	shown := map[string]bool{}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.TLS != nil {
			shown[r.TLS.PeerCertificates[0].SerialNumber.String()] = true
		}
	})
	plain, secured := httptest.NewServer(handler), httptest.NewUnstartedServer(handler)
	secured.TLS = pair(t, ca, "pd.shop.svc")
	secured.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secured.Close)

	var config *tls.Config
	var problem error
	transport := &httpclient.Secured{Config: func() (*tls.Config, error) { return config, problem }}
	get := func(server *httptest.Server) error {
		// The scheme is that of a URL which knows nothing of TLS.
		response, err := httpclient.New(transport).Get("http://" + server.Listener.Addr().String())
		if err == nil {
			err = response.Body.Close()
			assert.Equal(t, http.StatusOK, response.StatusCode)
		}
		return err
	}
	require.NoError(t, get(plain))
	config = pair(t, ca)
	require.NoError(t, get(secured))
	require.NoError(t, get(secured))
	assert.Len(t, shown, 1)
	config = pair(t, ca)
	require.NoError(t, get(secured), "another certificate, without a new transport of the user's")
	assert.Len(t, shown, 2, "it is shown at once: no old connection is used on")
	config = pair(t, stranger)
	require.ErrorContains(t, get(secured), "unknown authority")
	config = pair(t, ca)
	config.ServerName = "tidb.shop.svc"
	require.ErrorContains(t, get(secured), "tidb.shop.svc", "the name counts, not the address")
	problem = errors.New("Secret a is missing") //nolint:staticcheck // a name
	require.ErrorIs(t, get(plain), problem, "nothing is sent in the clear then")
	config, problem = nil, nil
	require.NoError(t, get(plain))
}

func TestSEC01AContextSaysHowItsRequestsConnect(t *testing.T) {
	assert.Nil(t, httpclient.TLSFromContext(httpclient.WithTLS(t.Context(), nil)))
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	assert.Same(t, config, httpclient.TLSFromContext(httpclient.WithTLS(t.Context(), config)))
	assert.Equal(t, "https", httpclient.Scheme(config))
	assert.Equal(t, "http", httpclient.Scheme(nil))
}
