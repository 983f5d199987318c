package objectstore

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rsaBits are those of a service account's key.
const rsaBits = 2048

// Run starts a server, which is killed at the end of the test.
func Run(t *testing.T, start func(context.Context) (ended <-chan error, err error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended, err := start(ctx)
	require.NoError(t, err)
	t.Cleanup(func() {
		cancel()
		assert.Error(t, <-ended, "it was killed")
	})
}

// StartWithBucket starts a server of S3 in directories of its own, with one empty bucket, until the
// test ends.
func StartWithBucket(t *testing.T, s Server, name string) Server {
	t.Helper()
	s.Dir, s.Beside = t.TempDir(), t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(s.Dir, name), 0o700))
	Run(t, s.Start)
	return s
}

// Files lists the files below a directory, by their paths in it.
func Files(t *testing.T, dir string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			out = append(out, name)
		}
		return err
	}))
	return out
}

// ServiceAccount is the JSON of a service account of Google, to which a server of the test
// answers with a token and a status.
func ServiceAccount(t *testing.T, token string, status int) string {
	t.Helper()
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, err := io.WriteString(w, `{"access_token": "`+token+`", "token_type": "Bearer", "expires_in": 3600}`)
		assert.NoError(t, err)
	}))
	t.Cleanup(tokens.Close)
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	text, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "copier@shop.example", "token_uri": tokens.URL,
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	require.NoError(t, err)
	return string(text)
}
