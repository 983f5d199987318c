package tiproxy

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// Labels and items that it takes while it runs leave each other alone.
func TestDB14AProxyKeepsItsLabelsBesideItemsThatItTakes(t *testing.T) {
	for name, secured := range map[string]bool{"without TLS": false, "over TLS": true} {
		t.Run(name, func(t *testing.T) {
			config, err := settings.NewTiProxy(map[string]any{"labels": map[string]any{"team": "x"}})
			require.NoError(t, err)
			server, host := loopback.NewServer(t, 3080, newHandler(NewProxy(slog.New(slog.DiscardHandler), &fixed{}), config, &atomic.Bool{}))
			ctx := t.Context()
			if secured {
				server.StartTLS()
				trusted := x509.NewCertPool()
				trusted.AddCert(server.Certificate())
				ctx = httpclient.WithTLS(ctx, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted, ServerName: "example.com"})
			} else {
				server.Start()
			}

			require.NoError(t, statusport.PutLabels(ctx, host, map[string]string{"zone": "a"}))
			refusal, err := statusport.Settings{}.Take(ctx, host, map[string]string{"log.level": "warn"})
			require.NoError(t, err)
			assert.Empty(t, refusal)
			require.NoError(t, statusport.PutLabels(ctx, host, map[string]string{"zone": "b"}))
			shown, err := statusport.Settings{}.Show(ctx, host)
			require.NoError(t, err)
			assert.Equal(t, map[string]any{"labels": map[string]any{"team": "x", "zone": "b"}, "log": map[string]any{"level": "warn"}}, shown)
		})
	}
}
