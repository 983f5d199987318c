package keyset

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/certificate"
)

// SigningDir is where the servers find the key that they sign tokens of sessions with, and its
// certificate. They read both again every ten minutes.
const SigningDir = "/var/lib/tidb-session-token"

// NeedsSigningSecret reports whether the Secret with the key of sessions' tokens is missing, and the
// operator's to make.
func NeedsSigningSecret(g *v1alpha1.TiDBGroup, secret certificate.Secret) bool {
	return g.Spec.SessionToken != nil && g.Spec.SessionToken.SecretName == "" && secret.Data == nil && !secret.Refused
}

const (
	// signingYears is what the certificate says. TiDB does not look at it.
	signingYears = 100
	// skew is how far clocks may differ.
	skew = time.Hour
)

// NewSigning makes a key to sign tokens of sessions with, and a certificate that it has signed
// itself: TiDB compares no authorities.
func NewSigning(now time.Time) (map[string][]byte, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "session tokens"}, NotBefore: now.Add(-skew), NotAfter: now.AddDate(signingYears, 0, 0),
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, fmt.Errorf("encode a key: %w", err)
	}
	return map[string][]byte{
		v1alpha1.TLSKeyCert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		v1alpha1.TLSKeyKey:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	}, nil
}

var (
	errECDSA   = errors.New("it is an ECDSA key, with which TiDB signs only the first bytes of a token, so that a token could be changed into another user's: use RSA or Ed25519")
	errKind    = errors.New("it is neither an RSA nor an Ed25519 key: TiDB signs with no other")
	errForeign = errors.New("a key of another type has signed it, and TiDB takes that type for its own: let it sign itself")
)

// checkSigning says which key of a Secret TiDB could not sign tokens of sessions with, and why.
func checkSigning(data map[string][]byte) (string, error) {
	for _, key := range []string{v1alpha1.TLSKeyCert, v1alpha1.TLSKeyKey} {
		if len(data[key]) == 0 {
			return key, errMissing
		}
	}
	pair, err := tls.X509KeyPair(data[v1alpha1.TLSKeyCert], data[v1alpha1.TLSKeyKey])
	if err != nil {
		return v1alpha1.TLSKeyCert, err
	}
	signed := pair.Leaf.SignatureAlgorithm
	switch pair.PrivateKey.(type) {
	case *ecdsa.PrivateKey:
		return v1alpha1.TLSKeyKey, errECDSA
	case ed25519.PrivateKey:
		if signed != x509.PureEd25519 {
			return v1alpha1.TLSKeyCert, errForeign
		}
	case *rsa.PrivateKey:
		switch signed {
		case x509.SHA256WithRSA, x509.SHA384WithRSA, x509.SHA512WithRSA, x509.SHA256WithRSAPSS, x509.SHA384WithRSAPSS, x509.SHA512WithRSAPSS:
		default:
			return v1alpha1.TLSKeyCert, errForeign
		}
	default:
		return v1alpha1.TLSKeyKey, errKind
	}
	return "", nil
}
