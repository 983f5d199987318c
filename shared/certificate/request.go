package certificate

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/names"
)

// Request is a certificate that a group needs, and that the operators have made. What it asks
// for is what Judge asks of a user's.
type Request struct {
	// Secret that is to hold it.
	Secret string
	// Owner is deleted with it: the group, or the PDGroup for what the whole cluster uses.
	Owner v1alpha1.Group
	// Names are its subject alternative names; a client's has none.
	Names []string
	// Common name of it; that of the Secret if it is empty.
	Common string
	// Addresses are its further subject alternative names.
	Addresses []net.IP
	// Serves says that it is a server certificate, Connects that it is a client certificate.
	Serves, Connects bool
}

// Requests are the certificates of the groups of a cluster that are to be made, each once.
func Requests(pd *v1alpha1.PDGroup, groups []v1alpha1.Group) []Request {
	var out []Request
	for _, g := range groups {
		wanted := SecretsFor(g, pd)
		for _, p := range wanted.purposes(g, nil) {
			shared := p.secret.Name == wanted.Client.Name || p.secret.Name == wanted.Backend.Name
			if !p.secret.Made || slices.ContainsFunc(out, func(r Request) bool { return r.Secret == p.secret.Name }) {
				continue
			}
			r := Request{Secret: p.secret.Name, Owner: g, Names: p.names}
			if shared {
				r.Owner = pd
			}
			if allowed := v1alpha1.CommonNames(pd); len(allowed) > 0 && (p.secret.Name == wanted.Member.Name || p.secret.Name == wanted.Client.Name) {
				r.Common = allowed[0]
			}
			if p.secret.Name == wanted.Member.Name {
				r.Names = append(serviceHosts(g), "*."+peerHost(g)) // whatever pods there will be
			}
			if p.secret.Name == wanted.MySQL.Name {
				r.Names = append(slices.Clip(r.Names), peerHost(g)) // where a Restore reaches a group that lets no client in
			}
			for _, u := range p.uses {
				r.Serves, r.Connects = r.Serves || u.usage == x509.ExtKeyUsageServerAuth, r.Connects || u.usage == x509.ExtKeyUsageClientAuth
			}
			if r.Serves && v1alpha1.SourceOf(pd).SelfSigned != nil {
				r.Names, r.Addresses = withAliases(r.Names, g), loopbackAddresses()
			}
			out = append(out, r)
		}
	}
	return out
}

// defaultDomain is that of Kubernetes unless another was chosen.
const defaultDomain = "cluster.local"

// withAliases adds to the names of a group's Services the shorter and longer ones by which
// they are reached, too. An issuer is not asked for them: its policy may refuse what is no
// full name.
func withAliases(known []string, g v1alpha1.Group) []string {
	out, suffix := slices.Clone(known), "."+g.GetNamespace()+".svc"
	long := suffix + "." + cmp.Or(g.GetComponentSpec().ClusterDomain, defaultDomain)
	add := func(name string) {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	for _, name := range known {
		if service, of, found := strings.Cut(name, suffix); found && (of == "" || suffix+of == long) {
			add(service + suffix)
			add(service + long)
			if !strings.HasPrefix(service, "*") {
				add(service + "." + g.GetNamespace())
				add(service)
			}
		}
	}
	add("localhost")
	return out
}

// loopbackAddresses are the addresses of a forwarded port.
func loopbackAddresses() []net.IP { return []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback} }

// longestCommonName is that of X.509.
const longestCommonName = 64

// CommonName of the certificate.
func (r Request) CommonName() string {
	return cmp.Or(r.Common, r.Secret[:min(len(r.Secret), longestCommonName)])
}

// Usages of the certificate, as cert-manager calls them.
func (r Request) Usages() []string {
	var out []string
	for _, u := range r.uses() {
		out = append(out, u.said)
	}
	return out
}

// ExtKeyUsages of the certificate.
func (r Request) ExtKeyUsages() []x509.ExtKeyUsage {
	var out []x509.ExtKeyUsage
	for _, u := range r.uses() {
		out = append(out, u.usage)
	}
	return out
}

func (r Request) uses() []use {
	var out []use
	if r.Serves {
		out = append(out, serverAuth())
	}
	if r.Connects {
		out = append(out, clientAuth())
	}
	return out
}

// CheckData says why what a Secret holds is not the certificate that is asked for; nil if it is.
func (r Request) CheckData(data map[string][]byte, now time.Time) error {
	pair, err := Parse(data)
	if err != nil {
		return err
	}
	return r.CheckPair(pair, now)
}

// CheckPair is CheckData of what was parsed.
func (r Request) CheckPair(pair Pair, now time.Time) error {
	// A name with * is compared as it is: no pod is called so.
	for _, name := range r.Names {
		if !slices.Contains(pair.leaf.DNSNames, name) {
			return fmt.Errorf("key %s: its subject alternative names lack %s", v1alpha1.TLSKeyCert, name)
		}
	}
	for _, address := range r.Addresses {
		if !slices.ContainsFunc(pair.leaf.IPAddresses, address.Equal) {
			return fmt.Errorf("key %s: its subject alternative names lack %s", v1alpha1.TLSKeyCert, address)
		}
	}
	if have := pair.leaf.Subject.CommonName; r.Common != "" && have != r.Common {
		return fmt.Errorf("key %s: its common name is %q, not %q", v1alpha1.TLSKeyCert, have, r.Common)
	}
	return pair.validate(now, nil, r.uses()...)
}

// Leaf returns the certificate of the pair itself.
func (p Pair) Leaf() *x509.Certificate { return p.leaf }

// peerHost is the name of a group's headless Service.
func peerHost(g v1alpha1.Group) string {
	return names.ServiceHost(names.PeerService(g.GetName()), g.GetNamespace(), g.GetComponentSpec().ClusterDomain)
}

// serviceHosts are the names of a group's Services.
func serviceHosts(g v1alpha1.Group) []string {
	out := []string{peerHost(g)}
	if _, serves := g.(v1alpha1.ClientGroup); serves || g.GroupKind() == v1alpha1.KindPDGroup { // others have no other Service
		out = append(out, names.ServiceHost(g.GetName(), g.GetNamespace(), g.GetComponentSpec().ClusterDomain))
	}
	return out
}
