package certificate

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Secret is a Secret as it was read, or not.
type Secret struct {
	// Name of the Secret; empty if none is wanted.
	Name string
	// Data of it, and its resource version. Nil if it could not be read.
	Data    map[string][]byte
	Version string
	// Written is when it was last changed.
	Written time.Time
	// Refused says that the operator may not read it.
	Refused bool
	// Made says that the issuer or the CA of the cluster makes it, Said why
	// it has not; empty if nothing is. Blocked says that only a user can help.
	Made    bool
	Said    string
	Blocked bool
	// parsed is what Load has found in Data; nil if it was not asked.
	parsed *parsed
}

// parsed is what came of Parse.
type parsed struct {
	pair Pair
	err  error
}

// Load parses Data, which must not change any more: a reconcile looks at a certificate up to
// six times.
func (s *Secret) Load() {
	pair, err := Parse(s.Data)
	s.parsed = &parsed{pair, err}
}

// Pair is what the Secret holds. The error names the key.
func (s Secret) Pair() (Pair, error) {
	if s.parsed != nil {
		return s.parsed.pair, s.parsed.err
	}
	return Parse(s.Data)
}

// Pair is what a Secret holds, parsed.
type Pair struct {
	// CA has signed the certificates of the other side.
	CA *x509.CertPool
	// Certificate and key.
	Certificate tls.Certificate
	leaf        *x509.Certificate
	above       *x509.CertPool
	// trust is a digest of the authorities, see Trust.
	trust  string
	proofs *proofs
}

// errMissing says that a key is not in the Secret.
var errMissing = errors.New("it is missing")

// Parse reads the keys of a Secret. The error names the key.
func Parse(data map[string][]byte) (Pair, error) {
	for _, key := range []string{v1alpha1.TLSKeyCA, v1alpha1.TLSKeyCert, v1alpha1.TLSKeyKey} {
		if len(data[key]) == 0 {
			return Pair{}, fmt.Errorf("key %s: %w", key, errMissing)
		}
	}
	out := Pair{CA: x509.NewCertPool(), above: x509.NewCertPool(), proofs: &proofs{}}
	if !out.CA.AppendCertsFromPEM(data[v1alpha1.TLSKeyCA]) {
		return Pair{}, fmt.Errorf("key %s: not a PEM certificate", v1alpha1.TLSKeyCA)
	}
	var err error
	if out.Certificate, err = tls.X509KeyPair(data[v1alpha1.TLSKeyCert], data[v1alpha1.TLSKeyKey]); err != nil {
		return Pair{}, pairError(data, err)
	}
	out.leaf = out.Certificate.Leaf
	out.trust = hashParts(data[v1alpha1.TLSKeyCA], out.leaf.AuthorityKeyId)
	for _, der := range out.Certificate.Certificate[1:] {
		if above, err := x509.ParseCertificate(der); err == nil {
			out.above.AddCert(above)
		}
	}
	return out, nil
}

// pairError tells a key that belongs to another certificate from what is no key, or no
// certificate.
func pairError(data map[string][]byte, err error) error {
	leaf, certificate := leafOf(data[v1alpha1.TLSKeyCert])
	key, keyErr := privateKey(data[v1alpha1.TLSKeyKey])
	switch {
	case certificate != nil:
		return fmt.Errorf("key %s: %w", v1alpha1.TLSKeyCert, certificate)
	case keyErr != nil:
		return fmt.Errorf("key %s: %w", v1alpha1.TLSKeyKey, keyErr)
	case !matchesKey(leaf, key):
		return fmt.Errorf("key %s: it belongs to another certificate than the one of key %s", v1alpha1.TLSKeyKey, v1alpha1.TLSKeyCert)
	}
	return fmt.Errorf("keys %s and %s: %w", v1alpha1.TLSKeyCert, v1alpha1.TLSKeyKey, err)
}

// matchesKey reports whether a private key is that of a certificate.
func matchesKey(leaf *x509.Certificate, key any) bool {
	switch public := leaf.PublicKey.(type) {
	case *rsa.PublicKey:
		private, same := key.(*rsa.PrivateKey)
		return same && public.Equal(&private.PublicKey)
	case *ecdsa.PublicKey:
		private, same := key.(*ecdsa.PrivateKey)
		return same && public.Equal(&private.PublicKey)
	case ed25519.PublicKey:
		private, same := key.(ed25519.PrivateKey)
		return same && public.Equal(private.Public())
	}
	return true // whatever it is, it is not distinguished here
}

// use is what a certificate is shown for.
type use struct {
	usage x509.ExtKeyUsage
	said  string
}

func serverAuth() use { return use{x509.ExtKeyUsageServerAuth, "server auth"} }
func clientAuth() use { return use{x509.ExtKeyUsageClientAuth, "client auth"} }

// validate says what is wrong with a certificate at a time; nil if nothing is.
func (p Pair) validate(now time.Time, names []string, uses ...use) error {
	cert := "key " + v1alpha1.TLSKeyCert
	if err := CheckPeriod(p.leaf, now); err != nil {
		return err
	}
	if err := p.SignedBy(p.CA, now); err != nil {
		return fmt.Errorf("%s: %s of the same Secret %s", cert, v1alpha1.TLSKeyCA, describeVerifyError(err))
	}
	for _, u := range uses {
		if _, err := p.prove(p.CA, u.usage, now); err != nil {
			return fmt.Errorf("%s: its extended key usage lacks %s", cert, u.said)
		}
	}
	for _, name := range names {
		// Of many names only the same one with * will do.
		if !slices.Contains(p.leaf.DNSNames, name) && p.leaf.VerifyHostname(name) != nil {
			return fmt.Errorf("%s: its subject alternative names lack %s", cert, name)
		}
	}
	return nil
}

// CheckPeriod says why the certificate of a Secret is not valid at a time; nil if it is.
func CheckPeriod(c *x509.Certificate, now time.Time) error {
	switch {
	case now.Before(c.NotBefore):
		return fmt.Errorf("key %s: it is not valid before %s", v1alpha1.TLSKeyCert, formatTime(c.NotBefore))
	case now.After(c.NotAfter):
		return fmt.Errorf("key %s: it expired at %s", v1alpha1.TLSKeyCert, formatTime(c.NotAfter))
	}
	return nil
}

// SignedBy says why a certificate is not one that a CA has signed; nil if it is.
func (p Pair) SignedBy(ca *x509.CertPool, now time.Time) error {
	_, err := p.prove(ca, x509.ExtKeyUsageAny, now)
	return err
}

// describeVerifyError says what is the matter between a CA and a certificate.
func describeVerifyError(err error) string {
	var unknown x509.UnknownAuthorityError
	if errors.As(err, &unknown) {
		return "has not signed it"
	}
	return "does not verify it: " + err.Error() // such as that it has expired
}

// firstToExpire returns the certificate that ends first: a Secret's own, or one above it.
func (p Pair) firstToExpire(now time.Time) *x509.Certificate {
	first := p.leaf
	chain, err := p.prove(p.CA, x509.ExtKeyUsageAny, now)
	if err != nil {
		return first
	}
	for _, c := range chain {
		if c.NotAfter.Before(first.NotAfter) {
			first = c
		}
	}
	return first
}

func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }
