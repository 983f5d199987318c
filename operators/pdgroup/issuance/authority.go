package issuance

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

const (
	// leafYears and authorityYears are how long certificates are good for.
	leafYears, authorityYears = 1, 10
	// skew is how far clocks may differ.
	skew = time.Hour
	// longestName is that of X.509.
	longestName = 64
)

// Authority is a CA that signs.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// trusted are the certificates of all CAs that members trust, in PEM.
	trusted []byte
}

// NewAuthority makes a CA, as the data of its Secret.
func NewAuthority(pdGroup string, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the key of a CA: %w", err)
	}
	name := pdGroup + " CA " + now.UTC().Format(time.RFC3339) // another one has another name
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: name[max(0, len(name)-longestName):]},
		NotBefore: now.Add(-skew), NotAfter: now.AddDate(authorityYears, 0, 0),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign a CA: %w", err)
	}
	return secretData(der, encodePEM("CERTIFICATE", der), key)
}

// ReadAuthority reads the Secret of a CA.
func ReadAuthority(secret map[string][]byte) (Authority, error) {
	for _, key := range []string{v1alpha1.TLSKeyCA, v1alpha1.TLSKeyCert, v1alpha1.TLSKeyKey} {
		if len(secret[key]) == 0 {
			return Authority{}, fmt.Errorf("key %s: it is missing", key)
		}
	}
	pair, err := tls.X509KeyPair(secret[v1alpha1.TLSKeyCert], secret[v1alpha1.TLSKeyKey])
	if err != nil {
		return Authority{}, fmt.Errorf("keys %s and %s: %w", v1alpha1.TLSKeyCert, v1alpha1.TLSKeyKey, err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return Authority{}, errNoAuthority
	}
	return Authority{certificate: pair.Leaf, key: key, trusted: secret[v1alpha1.TLSKeyCA]}, nil
}

var errNoAuthority = errors.New("key tls.crt: not a CA certificate")

// errNotTrusted says that members would not trust what they are given.
var errNotTrusted = errors.New("key ca.crt: the CA of key tls.crt is not in it")

// check says why no member would take what the CA signs; nil if members would.
func (a Authority) check(now time.Time) error {
	if err := certificate.CheckPeriod(a.certificate, now); err != nil {
		return err
	}
	if !slices.ContainsFunc(parseCertificates(a.trusted), a.certificate.Equal) {
		return errNotTrusted
	}
	return nil
}

// Sign makes a certificate, as the data of its Secret.
func (a Authority) Sign(request certificate.Request, now time.Time) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	until := now.AddDate(leafYears, 0, 0)
	if until.After(a.certificate.NotAfter) {
		until = a.certificate.NotAfter
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: request.CommonName()}, DNSNames: request.Names, IPAddresses: request.Addresses,
		NotBefore: now.Add(-skew), NotAfter: until,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: request.ExtKeyUsages(),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return secretData(der, a.trusted, key)
}

// hasSigned reports whether a certificate is one of the CA's.
func (a Authority) hasSigned(leaf *x509.Certificate) bool {
	return leaf.CheckSignatureFrom(a.certificate) == nil
}

// isTrustedBy reports whether the users of a Secret trust what the CA signs.
func (a Authority) isTrustedBy(secret *corev1.Secret) bool {
	return slices.ContainsFunc(parseCertificates(secret.Data[v1alpha1.TLSKeyCA]), a.certificate.Equal)
}

// parseCertificates are those of a PEM text.
func parseCertificates(text []byte) []*x509.Certificate {
	var out []*x509.Certificate
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if one, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, one)
		}
	}
	return out
}

// secretData is that of the Secret of a certificate.
func secretData(der, trusted []byte, key *ecdsa.PrivateKey) (map[string][]byte, error) {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return map[string][]byte{
		v1alpha1.TLSKeyCA: trusted, v1alpha1.TLSKeyCert: encodePEM("CERTIFICATE", der), v1alpha1.TLSKeyKey: encodePEM("PRIVATE KEY", private),
	}, nil
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
