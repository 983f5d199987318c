package storage

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

const access, secret = "an-access-key", "a-secret-key"

// server of S3, whose buckets are folders of a directory.
type server struct {
	dir, url string
}

// serve starts a server with a bucket until the test ends, with flags of its own.
func serve(t *testing.T, flags ...string) server {
	t.Helper()
	return listen(t, loopback.Address(t), "", flags...)
}

// listen is serve at an address, with TLS if there is a directory with tls.crt and tls.key.
func listen(t *testing.T, address, certificate string, flags ...string) server {
	t.Helper()
	s := objectstore.StartWithBucket(t, objectstore.Server{Address: address, AccessKey: access, SecretKey: secret, Certificate: certificate, Flags: flags}, "copies")
	return server{dir: s.Dir, url: s.URL()}
}

// keys is what the Secret with the credentials is mounted as.
func keys(t *testing.T, of map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range of {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// storage is a folder of the server.
func (s server) storage(t *testing.T) Storage {
	t.Helper()
	return Storage{
		Bucket: "copies", Endpoint: s.url, Region: "us-east-1", PathStyle: true, Folder: "prod/monday",
		Credentials: keys(t, map[string]string{AccessKey: access, SecretKey: secret}), CredentialsOf: "Secret keys",
	}
}

// look does what a backup does before it writes its files.
func look(ctx context.Context, s Storage, uid string) (*Place, error) {
	p, err := s.Open(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := p.Claim(ctx, uid); err != nil {
		return nil, err
	}
	return p, p.Begin(ctx, Marker{UID: uid, Server: "v8"})
}

func TestBR04AnUnusableBucketIsNamedBeforeAnythingIsWritten(t *testing.T) {
	s := serve(t)
	for name, c := range map[string]struct {
		change func(*Storage)
		want   result.Result
	}{
		"a wrong access key": {
			func(st *Storage) {
				st.Credentials = keys(t, map[string]string{AccessKey: "another", SecretKey: secret})
			},
			result.Result{Reason: v1alpha1.ReasonStorageRefused, Message: "look into bucket copies: XAdminUserNotFound: does Secret keys have the right keys, and may they list, read, write and delete there?"},
		},
		"a wrong secret key": {
			func(st *Storage) { st.Credentials = keys(t, map[string]string{AccessKey: access, SecretKey: "wrong"}) },
			result.Result{Reason: v1alpha1.ReasonStorageRefused, Message: "look into bucket copies: SignatureDoesNotMatch: does Secret keys have the right keys, and may they list, read, write and delete there?"},
		},
		"no secret key": {
			func(st *Storage) { st.Credentials = keys(t, map[string]string{AccessKey: access}) },
			result.Result{Reason: v1alpha1.ReasonMissingReference, Message: "key secret_key of Secret keys is not there"},
		},
		"a bucket that does not exist": {
			func(st *Storage) { st.Bucket = "nothing" },
			result.Result{Reason: v1alpha1.ReasonBucketMissing, Message: "look into bucket nothing: it does not exist"},
		},
		"no server listens": {
			func(st *Storage) { st.Endpoint = "http://" + loopback.Address(t) },
			result.Result{Reason: v1alpha1.ReasonStorageUnreachable},
		},
	} {
		t.Run(name, func(t *testing.T) {
			st := s.storage(t)
			c.change(&st)
			_, err := look(t.Context(), st, "u")
			require.Error(t, err)
			have := failure.NewResult(err, "", false)
			if c.want.Message == "" {
				have.Message = ""
			}
			assert.Equal(t, c.want, have)
			assert.Empty(t, objectstore.Files(t, filepath.Join(s.dir, "copies")))
		})
	}
}

func TestBR04ABucketThatMayOnlyBeReadIsNamed(t *testing.T) {
	s := serve(t, "--readonly")
	_, err := look(t.Context(), s.storage(t), "u")
	require.Error(t, err)
	r := failure.NewResult(err, "", false)
	assert.Equal(t, v1alpha1.ReasonStorageRefused, r.Reason, r.Message)
	assert.Contains(t, r.Message, "write backup.json to bucket copies: AccessDenied: does Secret keys have the right keys")
}

// mounted is a Secret with a certificate, as it is mounted.
func mounted(t *testing.T, ca *pki.CA, names ...string) string {
	t.Helper()
	all, err := ca.Secret(pki.Leaf{Names: names})
	require.NoError(t, err)
	texts := map[string]string{}
	for key, value := range all {
		texts[key] = string(value)
	}
	return keys(t, texts)
}

func TestBR04AnEndpointIsKnownByItsAuthority(t *testing.T) {
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	other, err := pki.New(time.Now())
	require.NoError(t, err)
	address := loopback.Address(t)
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	own := mounted(t, ca, host)
	right, strange := listen(t, address, own), listen(t, loopback.Address(t), own)
	by := func(s server, dir string) Storage {
		out := s.storage(t)
		if dir != "" {
			out.CA, out.CAOf = filepath.Join(dir, v1alpha1.TLSKeyCA), "key ca.crt of Secret authority"
		}
		return out
	}
	for name, c := range map[string]struct {
		storage       Storage
		reason, words string
	}{
		"not known":         {by(right, ""), v1alpha1.ReasonCertificateInvalid, "it is signed by an unknown CA: if your own CA has signed it, recreate this with storage.s3.caSecret"},
		"another authority": {by(right, mounted(t, other)), v1alpha1.ReasonCertificateInvalid, "cannot be verified by key ca.crt of Secret authority, which storage.s3.caSecret names: it is signed by an unknown CA"},
		"another host":      {by(strange, own), v1alpha1.ReasonCertificateInvalid, "which storage.s3.caSecret names: it is not for 127."},
		"no Secret":         {by(right, t.TempDir()), v1alpha1.ReasonMissingReference, "key ca.crt of Secret authority is not there"},
		"no certificate":    {by(right, keys(t, map[string]string{v1alpha1.TLSKeyCA: "hello"})), v1alpha1.ReasonCertificateInvalid, "which storage.s3.caSecret names, is not a PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := look(t.Context(), c.storage, "u")
			require.Error(t, err)
			r := failure.NewResult(err, "", false)
			assert.Equal(t, c.reason, r.Reason, r.Message)
			assert.Contains(t, r.Message, c.words)
		})
	}
	p, err := look(t.Context(), by(right, own), "u")
	require.NoError(t, err)
	assert.Contains(t, p.Env(), "SSL_CERT_FILE="+filepath.Join(own, v1alpha1.TLSKeyCA), "the tools know it by that")
}
