package httpclient_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

// The owner of a namespace must not make an operator ask another server for him, past
// the NetworkPolicies that let only operators through.
func TestP12ARedirectIsNotFollowed(t *testing.T) {
	reached := false
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(target.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		hostile := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			assert.Empty(t, r.Header.Get("Accept-Encoding"))
			http.Redirect(w, r, target.URL+"/pd/api/v1/config", status)
		}))
		t.Cleanup(hostile.Close)
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			request, err := http.NewRequestWithContext(t.Context(), method, hostile.URL, strings.NewReader("{}"))
			require.NoError(t, err)
			response, err := httpclient.New(httpclient.NewTransport("")).Do(request)
			require.NoError(t, err)
			require.NoError(t, response.Body.Close())
			assert.Equal(t, status, response.StatusCode)
		}
	}
	assert.False(t, reached)
}

// The environment's proxy would learn of every request, and answer it.
func TestNoProxyIsUsed(t *testing.T) {
	reached := false
	proxy := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://basic-pd.invalid:2379/", http.NoBody)
	require.NoError(t, err)
	response, err := httpclient.New(httpclient.NewTransport("")).Do(request) //nolint:bodyclose // there is none
	require.Error(t, err, "%v", response)
	assert.False(t, reached)
	assert.Nil(t, httpclient.NewTransport("").Proxy, "Go looks at the environment once per process")
}

// Clouds hand out the credentials of a node at 169.254.169.254. A pod has no such address.
func TestP12LinkLocalAddressesAreNotConnectedTo(t *testing.T) {
	for _, host := range []string{"169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/latest/meta-data/", http.NoBody)
		require.NoError(t, err)
		response, err := httpclient.New(httpclient.NewTransport("")).Do(request) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "link-local addresses belong to nodes and clouds, not to pods", "%v", response)
	}
}

// By IPv6 they hand them out at addresses that are not link-local.
func TestP12TheMetadataOfCloudsIsNotConnectedTo(t *testing.T) {
	for _, host := range []string{"[fd00:ec2::254]", "[fd20:ce::254]", "[fd00:c1::a9fe:a9fe]"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+host+"/latest/meta-data/", http.NoBody)
		require.NoError(t, err)
		response, err := httpclient.New(httpclient.NewTransport("")).Do(request) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "the cloud has its metadata there", "%v", response)
	}
}

func TestABodyIsReadUpToItsBound(t *testing.T) {
	body, err := httpclient.ReadAll(strings.NewReader("12345"), 5)
	require.NoError(t, err)
	assert.Equal(t, "12345", string(body))
	_, err = httpclient.ReadAll(strings.NewReader("123456"), 5)
	require.ErrorIs(t, err, httpclient.ErrTooLong)
	require.EqualError(t, err, "the answer is too long: more than 5 bytes")
}
