package storage

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/objectstore"
)

// googleServer starts a server of Google Cloud Storage with the bucket copies, and returns its folder.
func googleServer(t *testing.T) string {
	t.Helper()
	g := objectstore.Google{Address: loopback.Address(t), Dir: t.TempDir()}
	require.NoError(t, os.MkdirAll(filepath.Join(g.Dir, "copies"), 0o700))
	objectstore.Run(t, g.Start)
	t.Setenv("STORAGE_EMULATOR_HOST", g.Address) // read by Google's client
	return g.Dir
}

// unescaped is a URL as a user reads it.
func unescaped(t *testing.T, text string) string {
	t.Helper()
	out, err := url.QueryUnescape(text)
	require.NoError(t, err)
	return out
}

func inGoogle(t *testing.T, credentials string) Storage {
	t.Helper()
	return Storage{
		Provider: ProviderGCS, Bucket: "copies", Folder: "prod/monday",
		Credentials: keys(t, map[string]string{CredentialsFile: credentials}), CredentialsOf: "Secret keys",
	}
}

// What was tested on a volume and on S3 holds for Google.
func TestBR01AFolderOfGoogleBelongsToOneBackup(t *testing.T) {
	googleServer(t)
	st := inGoogle(t, objectstore.ServiceAccount(t, "a-token", http.StatusOK))
	p, err := look(t.Context(), st, "u")
	require.NoError(t, err)
	assert.Equal(t, "gcs://copies/prod/monday/data?credentials-file="+filepath.Join(st.Credentials, CredentialsFile), unescaped(t, p.URL()))
	assert.Empty(t, p.Env())
	_, err = look(t.Context(), st, "v")
	require.ErrorContains(t, err, "has part of a backup")
	require.NoError(t, p.Blobs.WriteAll(t.Context(), "prod/monday/data/a", []byte("12345"), nil))
	require.NoError(t, p.Blobs.WriteAll(t.Context(), "prod/monday2/data/a", []byte("1"), nil))
	m, err := p.Finish(t.Context(), Marker{UID: "u", Server: "v8"})
	require.NoError(t, err)
	assert.Equal(t, int64(5), m.Bytes)
	there, err := p.Remove(t.Context(), "u")
	require.NoError(t, err)
	assert.True(t, there)
	gone, err := p.Blobs.Exists(t.Context(), "prod/monday/data/a")
	require.NoError(t, err)
	assert.False(t, gone)
	other, err := p.Blobs.Exists(t.Context(), "prod/monday2/data/a")
	require.NoError(t, err)
	assert.True(t, other, "nothing beside the folder is touched")
}

func TestBR01AnUnusableBucketOfGoogleIsNamed(t *testing.T) {
	googleServer(t)
	for name, c := range map[string]struct {
		storage       Storage
		reason, words string
	}{
		"a bucket that does not exist": {func() Storage {
			st := inGoogle(t, objectstore.ServiceAccount(t, "a-token", http.StatusOK))
			st.Bucket = "nothing"
			return st
		}(), v1alpha1.ReasonBucketMissing, "bucket nothing: it does not exist"},
		"no key":               {Storage{Provider: ProviderGCS, Bucket: "copies", Folder: "a", Credentials: t.TempDir(), CredentialsOf: "Secret keys"}, v1alpha1.ReasonMissingReference, "key credentials.json of Secret keys is not there"},
		"no JSON":              {inGoogle(t, "hello"), v1alpha1.ReasonMissingReference, "is not the JSON of a service account"},
		"a user's credentials": {inGoogle(t, `{"type": "authorized_user"}`), v1alpha1.ReasonMissingReference, "its field type must be service_account"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := look(t.Context(), c.storage, "u")
			require.Error(t, err)
			r := failure.NewResult(err, "", false)
			assert.Equal(t, c.reason, r.Reason, r.Message)
			assert.Contains(t, r.Message, c.words)
		})
	}
}

// The server of the tests checks no client; that of the tokens does.
func TestBR01AKeyThatGoogleRefusesIsNamed(t *testing.T) {
	p := &Place{Storage: inGoogle(t, objectstore.ServiceAccount(t, "a-token", http.StatusUnauthorized))}
	source, err := p.tokensGCS(t.Context())
	require.NoError(t, err)
	_, err = source.Token()
	require.Error(t, err)
	r := failure.NewResult(p.WrapError("look into", err), "", false)
	assert.Equal(t, v1alpha1.ReasonStorageRefused, r.Reason)
	assert.Equal(t, "look into bucket copies: refused: does Secret keys have the right key, and may it list, read, write and delete there?", r.Message)
}

// Google answers 403 to who may not; the library says then that there is nothing.
func TestBR04ARefusalOfGoogleIsNotTakenForAMissingFile(t *testing.T) {
	googleServer(t)
	refused := ""
	at := &url.URL{Scheme: "http", Host: os.Getenv("STORAGE_EMULATOR_HOST")}
	behind := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}
	before := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == refused && !r.URL.Query().Has("prefix") {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		behind.ServeHTTP(w, r)
	}))
	t.Cleanup(before.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", before.Listener.Addr().String())
	p, err := look(t.Context(), inGoogle(t, objectstore.ServiceAccount(t, "a-token", http.StatusOK)), "u")
	require.NoError(t, err)
	require.NoError(t, p.Blobs.WriteAll(t.Context(), "prod/monday/data/a", []byte("1"), nil))
	for _, refused = range []string{http.MethodDelete, http.MethodGet} {
		_, err = p.Remove(t.Context(), "u")
		require.Error(t, err, "no file may go without being deleted")
		assert.Equal(t, v1alpha1.ReasonStorageRefused, failure.NewResult(err, "", false).Reason, err.Error())
	}
	_, err = p.Claim(t.Context(), "v")
	assert.Equal(t, v1alpha1.ReasonStorageRefused, failure.NewResult(err, "", false).Reason, "whose the folder is, is not known")
}

// azureServer is a server that answers as Azure does when it refuses.
func azureServer(t *testing.T, status int, code string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Contains(t, r.Header.Get("Authorization"), "SharedKey shop:")
		w.Header().Set("x-ms-error-code", code)
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestBR01HowAContainerOfAzureIsReached(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte("a-secret"))
	st := Storage{
		Provider: ProviderAzblob, Account: "shop", Bucket: "copies", Folder: "prod/monday",
		Credentials: keys(t, map[string]string{AccountKey: key}), CredentialsOf: "Secret keys",
	}
	p := &Place{Storage: st}
	require.NoError(t, p.connect(t.Context()))
	application := map[string]string{ClientID: "copier", TenantID: "tenant", ClientSecret: "a-password"}
	byApplication := &Place{Storage: st}
	byApplication.Credentials = keys(t, application)
	require.NoError(t, byApplication.connect(t.Context()))
	assert.Equal(t, []string{"AZURE_CLIENT_ID=copier", "AZURE_TENANT_ID=tenant", "AZURE_CLIENT_SECRET=a-password"}, byApplication.Env())
	assert.Equal(t, "a-password", byApplication.Secret, "no message shows it")
	assert.Equal(t, "azure://copies/prod/monday/data?account-name=shop", p.URL(), "no key stands in an argument")
	assert.Equal(t, []string{"AZURE_STORAGE_KEY=" + key}, p.Env())
	assert.Equal(t, "shop.blob.core.windows.net", p.server())
	for name, c := range map[string]struct {
		change        func(*Storage)
		reason, words string
	}{
		"a container that does not exist": {func(s *Storage) { s.Endpoint = azureServer(t, http.StatusNotFound, "ContainerNotFound") }, v1alpha1.ReasonBucketMissing, "container copies: it does not exist"},
		"a key that is refused":           {func(s *Storage) { s.Endpoint = azureServer(t, http.StatusForbidden, "AuthenticationFailed") }, v1alpha1.ReasonStorageRefused, "does Secret keys have the right key"},
		"a right that is missing":         {func(s *Storage) { s.Endpoint = azureServer(t, http.StatusForbidden, "AuthorizationPermissionMismatch") }, v1alpha1.ReasonStorageRefused, "may it list, read, write and delete there?"},
		"a key that is none": {func(s *Storage) {
			s.Credentials = keys(t, map[string]string{AccountKey: "%"})
		}, v1alpha1.ReasonMissingReference, "key account_key of Secret keys is not the key of a storage account"},
		"half an application": {func(s *Storage) {
			s.Credentials = keys(t, map[string]string{ClientID: "copier", ClientSecret: "a-password"})
		}, v1alpha1.ReasonMissingReference, "key tenant_id of Secret keys is not there"},
		"an application, which no TiKV can be": {func(s *Storage) {
			s.Credentials, s.Stores = keys(t, application), true
		}, v1alpha1.ReasonMissingReference, "every TiKV needs the key of the account"},
		"no key": {func(s *Storage) { s.Credentials = t.TempDir() }, v1alpha1.ReasonMissingReference, "key account_key of Secret keys is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			st := st
			c.change(&st)
			_, err := st.Open(t.Context())
			require.Error(t, err)
			r := failure.NewResult(err, "", false)
			assert.Equal(t, c.reason, r.Reason, r.Message)
			assert.Contains(t, r.Message, c.words)
		})
	}
}
