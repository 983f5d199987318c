package conformance_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

// container is a container of Azure Blob Storage, as far as Microsoft documents the requests
// that are made here: a test double, since no server of it can be built.
type container struct {
	account, name string
	// key of the account, and token of an identity: who has neither is refused.
	key   []byte
	token string

	mu            sync.Mutex
	blobs, blocks map[string][]byte
}

func (c *container) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	body, err := io.ReadAll(r.Body)
	switch query := r.URL.Query(); {
	case err != nil:
		refuse(w, http.StatusBadRequest, "InvalidInput")
	case r.Header.Get("Authorization") != "Bearer "+c.token && r.Header.Get("Authorization") != c.signed(r):
		refuse(w, http.StatusForbidden, "AuthenticationFailed")
	case name != c.name:
		refuse(w, http.StatusNotFound, "ContainerNotFound")
	case query.Get("comp") == "list":
		c.list(w, query.Get("prefix"))
	case key == "":
		w.WriteHeader(http.StatusOK) // its properties
	case r.Method == http.MethodPut:
		c.put(w, r, key, body)
	case c.blobs[key] == nil:
		refuse(w, http.StatusNotFound, "BlobNotFound")
	case r.Method == http.MethodDelete:
		delete(c.blobs, key)
		w.WriteHeader(http.StatusAccepted)
	default:
		c.get(w, r, c.blobs[key])
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
}

// signed is how a request is to be signed with the key of the account.
func (c *container) signed(r *http.Request) string {
	length := r.Header.Get("Content-Length")
	if length == "0" {
		length = ""
	}
	lines := []string{r.Method}
	for _, name := range []string{"Content-Encoding", "Content-Language", "", "Content-MD5", "Content-Type", "Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		value := r.Header.Get(name)
		if name == "" {
			value = length
		}
		lines = append(lines, value)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		if lower := strings.ToLower(name); strings.HasPrefix(lower, "x-ms-") {
			lines = append(lines, lower+":"+r.Header.Get(name))
		}
	}
	lines = append(lines, "/"+c.account+r.URL.EscapedPath())
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		lines = append(lines, strings.ToLower(name)+":"+r.URL.Query().Get(name))
	}
	mac := hmac.New(sha256.New, c.key)
	_, _ = io.WriteString(mac, strings.Join(lines, "\n"))
	return "SharedKey " + c.account + ":" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

func (c *container) put(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	switch query := r.URL.Query(); {
	case r.Header.Get("If-None-Match") == "*" && c.blobs[key] != nil:
		refuse(w, http.StatusConflict, "BlobAlreadyExists")
		return
	case query.Get("comp") == "block":
		c.blocks[key+"/"+query.Get("blockid")] = body
	case query.Get("comp") == "blocklist":
		var list struct {
			Latest []string `xml:"Latest"`
		}
		if xml.Unmarshal(body, &list) != nil {
			refuse(w, http.StatusBadRequest, "InvalidXmlDocument")
			return
		}
		whole := []byte{}
		for _, id := range list.Latest {
			whole = append(whole, c.blocks[key+"/"+id]...)
		}
		c.blobs[key] = whole
	default:
		c.blobs[key] = body
	}
	describe(w, nil)
	w.WriteHeader(http.StatusCreated)
}

// describe sets the headers that tell of a blob.
func describe(w http.ResponseWriter, data []byte) {
	w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(data)))
	w.Header().Set("Last-Modified", time.Unix(0, 0).UTC().Format(http.TimeFormat))
	w.Header().Set("x-ms-blob-type", "BlockBlob")
}

func (c *container) get(w http.ResponseWriter, r *http.Request, data []byte) {
	describe(w, data)
	status, first, last := http.StatusOK, 0, len(data)-1
	if text := r.Header.Get("x-ms-range"); text != "" {
		if n, _ := fmt.Sscanf(text, "bytes=%d-%d", &first, &last); n == 0 || first >= len(data) {
			refuse(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		status, last = http.StatusPartialContent, min(last, len(data)-1)
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, len(data)))
	}
	w.Header().Set("Content-Length", fmt.Sprint(last+1-first))
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		_, _ = w.Write(data[first : last+1])
	}
}

func (c *container) list(w http.ResponseWriter, prefix string) {
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>`)
	for _, key := range slices.Sorted(maps.Keys(c.blobs)) {
		if strings.HasPrefix(key, prefix) {
			_, _ = fmt.Fprintf(w, `<Blob><Name>%s</Name><Properties><Last-Modified>%s</Last-Modified><Etag>x</Etag><Content-Length>%d</Content-Length><BlobType>BlockBlob</BlobType></Properties></Blob>`,
				key, time.Unix(0, 0).UTC().Format(http.TimeFormat), len(c.blobs[key]))
		}
	}
	_, _ = io.WriteString(w, `</Blobs><NextMarker/></EnumerationResults>`)
}

// entraID is the server that gives an application of Entra ID its tokens.
func entraID(t *testing.T, client, secret, token string) http.Handler {
	t.Helper()
	const at = "https://login.microsoftonline.com/tenant"
	answer := func(w http.ResponseWriter, format string, args ...any) {
		w.Header().Set("Content-Type", "application/json")
		_, err := fmt.Fprintf(w, format, args...)
		assert.NoError(t, err)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/discovery/instance"):
			answer(w, `{"tenant_discovery_endpoint": "%s/v2.0/.well-known/openid-configuration", "metadata": []}`, at)
		case strings.HasSuffix(r.URL.Path, "/openid-configuration"):
			answer(w, `{"token_endpoint": "%[1]s/oauth2/v2.0/token", "authorization_endpoint": "%[1]s/oauth2/v2.0/authorize", "issuer": "%[1]s/v2.0"}`, at)
		case r.PostFormValue("client_id") != client || r.PostFormValue("client_secret") != secret:
			w.WriteHeader(http.StatusUnauthorized)
			answer(w, `{"error": "invalid_client"}`)
		default:
			answer(w, `{"access_token": "%s", "token_type": "Bearer", "expires_in": 3600}`, token)
		}
	})
}

// Dumpling and TiDB Lightning, with what is rendered for them.
func TestBR04TheRealToolsCopyToAContainerOfAzureAndBack(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	c := &container{account: "shop", name: "copies", key: []byte("a-key-of-shop"), token: "a-token", blobs: map[string][]byte{}, blocks: map[string][]byte{}}
	key := base64.StdEncoding.EncodeToString(c.key)
	p := newPods(t, map[string]string{storage.AccountKey: key}, front(t, map[string]http.Handler{
		"shop.blob.core.windows.net": c, "login.microsoftonline.com": entraID(t, "copier", "a-secret", c.token),
	}))
	at := v1alpha1.Storage{Azblob: &v1alpha1.AzblobStorage{Account: c.account, Container: c.name, Prefix: "prod", Secret: v1alpha1.LocalReference{Name: "keys"}}}
	p.copyAndBack(at)
	assert.Empty(t, c.blobs)

	nowhere := v1alpha1.Storage{Azblob: &v1alpha1.AzblobStorage{Account: c.account, Container: "nothing", Secret: at.Azblob.Secret}}
	assert.Equal(t, v1alpha1.ReasonBucketMissing, p.run(backupTo(nowhere)).Reason)
	p.mount(map[string]string{storage.AccountKey: base64.StdEncoding.EncodeToString([]byte("another"))})
	assert.Equal(t, v1alpha1.ReasonStorageRefused, p.run(backupTo(at)).Reason)

	// An application of Entra ID, which can have less rights than the key.
	p.sql("DROP DATABASE IF EXISTS shop", "SELECT 1")
	p.mount(map[string]string{storage.ClientID: "copier", storage.TenantID: "tenant", storage.ClientSecret: "a-secret"})
	p.copyAndBack(at)
	assert.Empty(t, c.blobs)
	p.mount(map[string]string{storage.ClientID: "copier", storage.TenantID: "tenant", storage.ClientSecret: "wrong"})
	assert.Equal(t, v1alpha1.ReasonStorageRefused, p.run(backupTo(at)).Reason)
}
