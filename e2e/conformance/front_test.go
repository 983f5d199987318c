package conformance_test

import (
	"crypto/tls"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// front stands before servers on the internet: what connects through it finds others, under the
// very names and with certificates. Environment has programs connect through it.
func front(t *testing.T, servers map[string]http.Handler) (environment []string) {
	t.Helper()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	own, err := ca.Secret(pki.Leaf{Names: slices.Collect(maps.Keys(servers))})
	require.NoError(t, err)
	config, err := pki.ServerConfig(own)
	require.NoError(t, err)
	config.ClientAuth, config.NextProtos = tls.NoClientCert, nil
	inside := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { servers[r.Host].ServeHTTP(w, r) }))
	inside.TLS = config
	inside.StartTLS()
	t.Cleanup(inside.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if r.Method != http.MethodConnect || err != nil || servers[host] == nil {
			t.Errorf("%s %s is none of what is rendered", r.Method, r.Host)
			w.WriteHeader(http.StatusForbidden)
			return
		}
		join(t, w, inside.Listener.Addr().String())
	}))
	t.Cleanup(proxy.Close)
	authorities := filepath.Join(t.TempDir(), "ca.crt")
	require.NoError(t, os.WriteFile(authorities, own["ca.crt"], 0o600))
	return []string{"HTTPS_PROXY=" + proxy.URL, "SSL_CERT_FILE=" + authorities, "SSL_CERT_DIR=" + t.TempDir()}
}

// join connects who has asked for a tunnel with an address.
func join(t *testing.T, w http.ResponseWriter, address string) {
	to, err := net.Dial("tcp", address) //nolint:noctx // it ends with the client
	if !assert.NoError(t, err) {
		return
	}
	defer func() { _ = to.Close() }()
	w.WriteHeader(http.StatusOK)
	from, buffered, err := http.NewResponseController(w).Hijack()
	if !assert.NoError(t, err) {
		return
	}
	defer func() { _ = from.Close() }()
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(to, buffered)
		_ = to.Close()
	})
	_, _ = io.Copy(from, to)
	_ = from.Close()
	both.Wait()
}
