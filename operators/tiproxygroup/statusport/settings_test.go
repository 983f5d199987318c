package statusport_test

import (
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/tiproxygroup/statusport"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// serve answers on TiProxy's port at an address of its own, which it returns.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server, host := loopback.NewServer(t, 3080, answer)
	server.Start()
	return host
}

// record answers likewise, and notes the last request: its method, its path and its body.
func record(t *testing.T) (host string, last *string) {
	t.Helper()
	last = new(string)
	return serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		*last = r.Method + " " + r.URL.String() + "\n" + string(body)
	}), last
}

func TestPX03AProxyIsGivenAPartOfItsFile(t *testing.T) {
	host, got := record(t)
	refusal, err := statusport.Settings{}.Take(t.Context(), host, map[string]string{
		"log.level": "warn", "proxy.max-connections": "100", "security.require-backend-tls": "true", "log.log-file.max-days": "many",
	})
	require.NoError(t, err)
	assert.Empty(t, refusal)
	assert.Equal(t, `PUT /api/admin/config/
[log]
level = 'warn'

[log.log-file]
max-days = 'many'

[proxy]
max-connections = 100

[security]
require-backend-tls = true
`, *got)
}

func TestPX03LabelsAreGivenAsAPartOfTheFile(t *testing.T) {
	host, got := record(t)
	require.NoError(t, statusport.PutLabels(t.Context(), host, map[string]string{"zone": "a", "example.com/rack": "r1"}))
	assert.Equal(t, "PUT /api/admin/config/\n[labels]\n'example.com/rack' = 'r1'\nzone = 'a'\n", *got)
}

func TestPX03AProxyThatRefusesLabelsIsAnError(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	require.EqualError(t, statusport.PutLabels(t.Context(), host, map[string]string{"zone": "a"}), "put to http://"+host+":3080/api/admin/config/: 500 Internal Server Error")
}

func TestPX03TheRefusalOfAProxyIsReported(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, err := io.WriteString(w, "conn-buffer-size must be between 1K and 16M")
		assert.NoError(t, err)
	})
	refusal, err := statusport.Settings{}.Take(t.Context(), host, map[string]string{"proxy.conn-buffer-size": "1"})
	require.NoError(t, err)
	assert.Equal(t, "500 Internal Server Error: conn-buffer-size must be between 1K and 16M", refusal)
	_, err = statusport.Settings{}.Show(t.Context(), host)
	require.ErrorContains(t, err, "500 Internal Server Error")
}

func TestPX03AProxyShowsWhatItRunsWith(t *testing.T) {
	host := serve(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/api/admin/config/?format=json", r.URL.String())
		_, err := io.WriteString(w, `{"log": {"level": "info"}}`)
		assert.NoError(t, err)
	})
	shown, err := statusport.Settings{}.Show(t.Context(), host)
	require.NoError(t, err)
	assert.Equal(t, map[string]any{"log": map[string]any{"level": "info"}}, shown)
}

func TestPX03ItemsOfEachKindAreListedOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, item := range statusport.SettingsTable().Items {
		assert.False(t, seen[item.Key], item.Key)
		seen[item.Key] = true
		assert.NotEmpty(t, item.Kind, item.Key)
	}
}
