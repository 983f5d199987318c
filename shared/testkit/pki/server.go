package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// ServerConfig is a TLS server with the certificate of a Secret, and answers those alone whose
// certificate its CA has signed.
func ServerConfig(data map[string][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(data[v1alpha1.TLSKeyCert], data[v1alpha1.TLSKeyKey])
	if err != nil {
		return nil, fmt.Errorf("read certificate: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(data[v1alpha1.TLSKeyCA])
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}, nil
}

// Write puts the files of a certificate into a folder, as a Secret is mounted.
func Write(dir string, data map[string][]byte) error {
	for name, content := range data {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}
