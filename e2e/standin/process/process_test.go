package process_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
)

func TestEveryLineOfALogBeginsWithStandIn(t *testing.T) {
	var out bytes.Buffer
	log, err := process.NewLogger(&out, "tikv", "warn")
	require.NoError(t, err)
	log.Info("not shown")
	log.Warn("two\nlines")
	log.Error("another")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 2)
	for _, line := range lines {
		assert.True(t, strings.HasPrefix(line, "stand-in tikv "), line)
	}
	_, err = process.NewLogger(&out, "tikv", "loud")
	require.ErrorContains(t, err, "loud")
}

func TestMainEndsWithTheCodeOfTheReal(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		code int
		text string
	}{
		"a good end":                      {nil, 0, ""},
		"a version that was only printed": {process.ErrHelp, 0, ""},
		"a failure":                       {errors.New("broken"), 1, `stand-in x level=FATAL msg="broken"`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			assert.Equal(t, c.code, process.Main(&out, "x", func(context.Context) error { return c.err }))
			assert.Contains(t, out.String(), c.text)
		})
	}
}

func TestUnknownKeys(t *testing.T) {
	keys := process.ParseKeys(".: top\nserver: addr\nserver.labels: *\na.b.c: d")
	for name, c := range map[string]struct {
		doc  string
		want string
	}{
		"nothing at all":              {"", ""},
		"known keys":                  {"top = 1\n[server]\naddr = \"x\"\n[server.labels]\nany = \"x\"\n[a.b.c]\nd = 1", ""},
		"an unknown key":              {"bottom = 1", "bottom"},
		"an unknown key below":        {"[a.b.c]\ne = 1", "a.b.c.e"},
		"a table where a value goes":  {"[top]\nx = 1", "top (a table"},
		"a value where a table goes":  {"a = 1", "a (a value"},
		"a table of tables":           {"[[server]]\naddr = 1", "server (a value"},
		"two at once, in their order": {"z = 1\nb = 1", "b, z"},
		"no TOML":                     {"=", "parse configuration file"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.toml")
			require.NoError(t, os.WriteFile(path, []byte(c.doc), 0o600))
			_, err := process.ReadTOML(path, keys)
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestKeysOfADocumentAreThatDocumentsKeys(t *testing.T) {
	doc := map[string]any{"a": 1, "b": map[string]any{"c": 2}, "open": map[string]any{}}
	keys := process.KeysOf(doc)
	assert.Empty(t, keys.Unknown(doc))
	assert.Empty(t, keys.Unknown(map[string]any{"open": map[string]any{"x": 1}}))
	assert.Equal(t, []string{"b.d"}, keys.Unknown(map[string]any{"b": map[string]any{"d": 1}}))
	assert.Empty(t, keys.Merge(process.ParseKeys("b: d")).Unknown(map[string]any{"b": map[string]any{"c": 1, "d": 1}}))
}

func TestSetLookupAndOverlay(t *testing.T) {
	doc := map[string]any{}
	process.Set(doc, "a.b.c", 1)
	process.Overlay(doc, map[string]any{"a": map[string]any{"b": map[string]any{"d": 2}}, "x": "y"})
	assert.Equal(t, 1, process.Lookup(doc, "a.b.c"))
	assert.Equal(t, 2, process.Lookup(doc, "a.b.d"))
	assert.Nil(t, process.Lookup(doc, "a.nothing.d"))
	assert.Equal(t, "y", process.LookupText(doc, "x", "z"))
	assert.Equal(t, "z", process.LookupText(doc, "a", "z"))
}

func TestPDIsFollowedAndAnotherClusterIsNot(t *testing.T) {
	server := pdserver.Start(t)
	pd, err := process.NewPD([]string{"127.0.0.1:1,http://" + server.Addr}, process.Files{}, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer pd.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	nothing := func(context.Context, pdpb.PDClient) error { return nil }
	require.NoError(t, pd.Retry(ctx, "connect", nothing), "the second endpoint answers")
	assert.Equal(t, uint64(7000000000000000001), pd.Header().GetClusterId())
	assert.Equal(t, []string{server.Addr}, pd.Endpoints())
	var answer map[string]any
	require.NoError(t, pd.Get(ctx, "/pd/api/v1/config/replicate", &answer))
	assert.Equal(t, "true", answer["enable-placement-rules"])
	require.Error(t, pd.Get(ctx, "/pd/api/v1/nosuch", &answer))

	server.SetClusterID(1)
	pd.Forget()
	err = pd.Retry(ctx, "connect", nothing)
	require.ErrorIs(t, err, process.ErrPermanent)
	require.ErrorContains(t, err, "cluster ID mismatch")
}

func TestNewPDRefusesWhatItCanNotDial(t *testing.T) {
	for endpoint, want := range map[string]string{"": "no PD endpoint", "https://pd:2379": "TLS"} {
		_, err := process.NewPD([]string{endpoint}, process.Files{}, slog.New(slog.DiscardHandler))
		require.ErrorContains(t, err, want)
	}
}

func TestAllEndsTogether(t *testing.T) {
	broken := errors.New("broken")
	err := process.RunAll(t.Context(),
		func(ctx context.Context) error { <-ctx.Done(); return nil },
		func(context.Context) error { return broken })
	require.ErrorIs(t, err, broken)
}

func TestServeHTTPStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := process.Listen(ctx, "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan error, 1)
	go func() { done <- process.ServeHTTP(ctx, l, http.NotFoundHandler()) }()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String(), http.NoBody)
	require.NoError(t, err)
	res, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, res.Body)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	cancel()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(20 * time.Second):
		require.Fail(t, "did not end")
	}
	_, err = process.Listen(t.Context(), "256.0.0.1:1")
	require.Error(t, err)
}
