package runner

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

const access, secret = "an-access-key", "a-secret-key"

// server of S3, whose buckets are folders of a directory.
type server struct{ dir, url string }

// serve starts a server with a bucket until the test ends.
func serve(t *testing.T) server {
	t.Helper()
	s := objectstore.StartWithBucket(t, objectstore.Server{Address: loopback.Address(t), AccessKey: access, SecretKey: secret}, "copies")
	return server{dir: s.Dir, url: s.URL()}
}

// storage is a folder of the server.
func (s server) storage(t *testing.T) storage.Storage {
	t.Helper()
	keys := t.TempDir()
	for name, text := range map[string]string{storage.AccessKey: access, storage.SecretKey: secret} {
		require.NoError(t, os.WriteFile(filepath.Join(keys, name), []byte(text), 0o600))
	}
	return storage.Storage{
		Bucket: "copies", Endpoint: s.url, Region: "us-east-1", PathStyle: true, Folder: "prod/monday",
		Credentials: keys, CredentialsOf: "Secret keys",
	}
}

// look does what a backup does before it writes its files.
func look(ctx context.Context, s storage.Storage, uid string) (*storage.Place, error) {
	p, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.Claim(ctx, uid); err != nil {
		return nil, err
	}
	return p, p.Begin(ctx, storage.Marker{UID: uid, Server: "v8"})
}

// volume is an empty one.
func volume(t *testing.T) (dir string, p *storage.Place) {
	t.Helper()
	dir = t.TempDir()
	p, err := storage.Storage{Volume: dir, Folder: "p/b"}.Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, p.Blobs.Close()) })
	return dir, p
}
