package localcluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// certLife is how long certificates last; a local cluster is not meant to.
const certLife = 5 * 365 * 24 * time.Hour

// identityCert is a certificate to make.
type identityCert struct {
	// name of the files: <name>.crt and <name>.key.
	name         string
	commonName   string
	organization []string
	server       bool
	hosts        []string
}

func listCertificates() []identityCert {
	certs := []identityCert{
		{name: "apiserver", commonName: "kube-apiserver", server: true, hosts: []string{
			"localhost", "127.0.0.1", gateway, serviceAPI,
			"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		}},
		{name: "etcd", commonName: "etcd", server: true, hosts: []string{gateway}},
		{name: "apiserver-etcd", commonName: "kube-apiserver-etcd-client"},
		{name: "apiserver-kubelet", commonName: "kube-apiserver-kubelet-client", organization: []string{"system:masters"}},
		{name: "admin", commonName: "kubernetes-admin", organization: []string{"system:masters"}},
		{name: "controller-manager", commonName: "system:kube-controller-manager"},
		{name: "scheduler", commonName: "system:kube-scheduler"},
		{name: "proxy", commonName: "system:kube-proxy"},
		{name: "volumes", commonName: volumesUser},
	}
	for _, n := range listNodes() {
		certs = append(certs, identityCert{
			name: n.Name, commonName: "system:node:" + n.Name, organization: []string{"system:nodes"},
		})
		certs = append(certs, identityCert{
			name: n.Name + "-server", commonName: n.Name, server: true, hosts: []string{n.Name, n.Address},
		})
	}
	return certs
}

// createPKI makes the certificate authority, every certificate and the key of
// service accounts, unless they are complete.
func (l layout) createPKI(now time.Time) error {
	const last = "complete"
	if _, err := os.Stat(l.pki(last)); err == nil {
		return nil
	}
	caKey, err := newKey()
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "tidb-groups-local"},
		NotBefore:             now.Add(-time.Hour), // clocks differ, even on one machine after a suspend
		NotAfter:              now.Add(certLife),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	if err := l.writeCert("ca", ca, ca, caKey, caKey); err != nil {
		return err
	}
	for i, c := range listCertificates() {
		key, err := newKey()
		if err != nil {
			return err
		}
		if err := l.writeCert(c.name, c.template(int64(i)+2, now), ca, key, caKey); err != nil {
			return err
		}
	}
	accounts, err := newKey()
	if err != nil {
		return err
	}
	if err := l.writeKey("service-accounts", accounts); err != nil {
		return err
	}
	return writeFile(l.pki(last), []byte("all certificates are written\n"), 0o600)
}

func (c identityCert) template(serial int64, now time.Time) *x509.Certificate {
	t := &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: c.commonName, Organization: c.organization},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(certLife),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if c.server {
		t.ExtKeyUsage = append(t.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, h := range c.hosts {
		if ip := net.ParseIP(h); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, h)
		}
	}
	return t
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make key: %w", err)
	}
	return key, nil
}

func (l layout) writeCert(name string, template, parent *x509.Certificate, key *ecdsa.PrivateKey, signer crypto.Signer) error {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return fmt.Errorf("make certificate %s: %w", name, err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return errors.Join(writeFile(l.pki(name+".crt"), text, 0o644), l.writeKey(name, key))
}

// writeKey writes a private key, and its public half for those who only verify.
func (l layout) writeKey(name string, key *ecdsa.PrivateKey) error {
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("encode key %s: %w", name, err)
	}
	public, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encode public key %s: %w", name, err)
	}
	return errors.Join(
		writeFile(l.pki(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600),
		writeFile(l.pki(name+".pub"), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public}), 0o644),
	)
}
