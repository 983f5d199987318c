package pki

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// CA signs certificates.
type CA struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Leaf is a certificate that is to be made.
type Leaf struct {
	// Names are its subject alternative names, DNS names and addresses; none is a client's
	// certificate.
	Names []string
	// Common name of it: test if it is empty.
	Common string
	// From and Until are when it is valid: an hour ago and in an hour if they are zero.
	From, Until time.Time
	// Usages of it: those of a server and a client if there are names, a client's if not.
	Usages []x509.ExtKeyUsage
}

// New makes a CA that is valid for some days around a moment.
func New(now time.Time) (*CA, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key of a CA: %w", err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "test CA"}, NotBefore: now.AddDate(0, 0, -9), NotAfter: now.AddDate(0, 0, 9),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make CA: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read CA: %w", err)
	}
	return &CA{certificate, key}, nil
}

// Secret makes a certificate, and returns it as the data of a Secret.
func (ca *CA) Secret(leaf Leaf) (map[string][]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, leaf.template(), ca.certificate, key.Public(), ca.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	return map[string][]byte{
		v1alpha1.TLSKeyCA:   encodePEM("CERTIFICATE", ca.certificate.Raw),
		v1alpha1.TLSKeyCert: encodePEM("CERTIFICATE", der),
		v1alpha1.TLSKeyKey:  encodePEM("PRIVATE KEY", private),
	}, nil
}

// template is the certificate before it is signed.
func (l Leaf) template() *x509.Certificate {
	out := &x509.Certificate{Subject: pkix.Name{CommonName: cmp.Or(l.Common, "test")}, NotBefore: l.From, NotAfter: l.Until, ExtKeyUsage: l.Usages, KeyUsage: x509.KeyUsageDigitalSignature}
	if out.NotBefore.IsZero() {
		out.NotBefore = time.Now().Add(-time.Hour)
	}
	if out.NotAfter.IsZero() {
		out.NotAfter = time.Now().Add(time.Hour)
	}
	for _, name := range l.Names {
		if ip := net.ParseIP(name); ip != nil {
			out.IPAddresses = append(out.IPAddresses, ip)
		} else {
			out.DNSNames = append(out.DNSNames, name)
		}
	}
	if out.ExtKeyUsage == nil {
		out.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		if len(l.Names) > 0 {
			out.ExtKeyUsage = append(out.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		}
	}
	return out
}

func encodePEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
