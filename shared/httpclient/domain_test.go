package httpclient

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Who owns a namespace called svc must not be asked whether he is basic-pd.prod.svc.
func TestP12NamesOfServicesAreNotTriedAgainstTheSearchList(t *testing.T) {
	for _, c := range []struct{ name, host, domain, want string }{
		{"a Service", "basic-pd.prod.svc", "cluster.local", "basic-pd.prod.svc.cluster.local."},
		{"a pod", "basic-pd-0.basic-pd-peer.prod.svc", "cluster.local", "basic-pd-0.basic-pd-peer.prod.svc.cluster.local."},
		{"a Service with its domain", "basic-pd.prod.svc.cluster.local", "cluster.local", "basic-pd.prod.svc.cluster.local."},
		{"a name that is absolute", "basic-pd.prod.svc.cluster.local.", "cluster.local", "basic-pd.prod.svc.cluster.local."},
		{"a domain that is not known", "basic-pd.prod.svc", "", "basic-pd.prod.svc"},
		{"a host elsewhere", "pd.example.com", "cluster.local", "pd.example.com"},
		{"an address", "10.0.0.1", "cluster.local", "10.0.0.1"},
		{"an IPv6 address", "fd00::1", "cluster.local", "fd00::1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, absoluteHost(c.host, c.domain))
		})
	}
	t.Run("the transport looks the absolute name up", func(t *testing.T) {
		for url, looksUp := range map[string]string{
			"http://basic-pd.prod.svc:2379/": "basic-pd.prod.svc.tidb-groups.invalid.",
			"http://basic-pd.prod.svc/":      "basic-pd.prod.svc.tidb-groups.invalid.",
		} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
			require.NoError(t, err)
			response, err := New(NewTransport("tidb-groups.invalid")).Do(request) //nolint:bodyclose // there is none
			var dns *net.DNSError
			require.ErrorAs(t, err, &dns, "%v", response)
			assert.Equal(t, looksUp, dns.Name)
		}
	})
}

func TestTheClusterDomainIsTakenFromTheSearchList(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a pod", "nameserver 10.0.0.10\nsearch prod.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n", "cluster.local"},
		{"another domain", "search prod.svc.k8s.example.com svc.k8s.example.com k8s.example.com example.com", "k8s.example.com"},
		{"dots at the ends", "search prod.svc.cluster.local. svc.cluster.local. cluster.local.\n", "cluster.local"},
		{"a pod in a namespace called svc", "search svc.svc.cluster.local svc.cluster.local cluster.local\n", "cluster.local"},
		{"the node has domains too", "search prod.svc.cluster.local svc.cluster.local cluster.local svc.example.com example.com\n", "cluster.local"},
		{"the pod's own come first", "search a.example.com prod.svc.cluster.local svc.cluster.local cluster.local\n", "cluster.local"},
		{"the last list counts", "search prod.svc.a.b svc.a.b a.b\nsearch prod.svc.c.d svc.c.d c.d\n", "c.d"},
		{"no pod", "search svc.example.com example.com\n", ""},
		{"no domain below svc", "search prod.svc svc\n", ""},
		{"no list", "nameserver 10.0.0.10\n", ""},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "resolv.conf")
			require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			assert.Equal(t, c.want, ClusterDomain(file))
		})
	}
	assert.Empty(t, ClusterDomain(filepath.Join(t.TempDir(), "none")))
}
