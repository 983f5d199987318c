package httpclient

import (
	"os"
	"strings"
)

// ResolvConf is where the resolver of a pod is configured.
const ResolvConf = "/etc/resolv.conf"

// ClusterDomain returns the domain of the Kubernetes cluster, such as cluster.local, by
// the configuration of a pod's resolver. It is empty if the file does not tell it, as
// outside of pods.
func ClusterDomain(file string) string {
	text, err := os.ReadFile(file) //nolint:gosec // the caller names it
	if err != nil {
		return ""
	}
	return clusterDomain(string(text))
}

// clusterDomain finds what the kubelet writes: <namespace>.svc.<domain>, svc.<domain>,
// <domain>. One entry alone proves nothing: in a namespace called svc the first begins
// with svc too, and the node may have a domain that does.
func clusterDomain(resolvConf string) string {
	var search []string
	for line := range strings.Lines(resolvConf) {
		if words := strings.Fields(line); len(words) > 0 && words[0] == "search" {
			search = words[1:] // the last one counts
		}
	}
	for i := range search {
		search[i] = strings.TrimSuffix(search[i], ".")
	}
	for i := 1; i+1 < len(search); i++ {
		domain, found := strings.CutPrefix(search[i], "svc.")
		if found && search[i+1] == domain && strings.HasSuffix(search[i-1], "."+search[i]) {
			return domain
		}
	}
	return ""
}

// absoluteHost returns the name of a Service or of a pod as it is looked up: with the
// cluster's domain and a dot at its end. A name without that dot is tried against the
// search list first, and with svc.cluster.local in it basic-pd.prod.svc is whatever the
// owner of a namespace called svc answers with. Other hosts stay as they are, and
// without a domain all do.
func absoluteHost(host, domain string) string {
	switch {
	case domain == "":
	case strings.HasSuffix(host, ".svc"):
		return host + "." + domain + "."
	case strings.HasSuffix(host, ".svc."+domain):
		return host + "."
	}
	return host
}
