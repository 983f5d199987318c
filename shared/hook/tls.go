package hook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

var errNoCA = errors.New("it has no certificate in PEM")

// TLS is how a program shows itself to PD, and knows it.
type TLS struct {
	// Dir has ca.crt, tls.crt and tls.key. Without it PD is asked without TLS.
	Dir string
	// ServerName that PD's certificate must have; the host of the URL if it is empty.
	ServerName string
}

// Flags declares the flags of it.
func (t *TLS) Flags(set *flag.FlagSet) {
	set.StringVar(&t.Dir, "tls", "", "folder with ca.crt, tls.crt and tls.key; PD is asked without TLS if there is none")
	set.StringVar(&t.ServerName, "server-name", "", "name that PD's certificate must have; $(NAME) stands for a variable")
}

// config reads the files as they are now; nil without TLS.
func (t TLS) config() (*tls.Config, error) {
	if t.Dir == "" {
		return nil, nil
	}
	ca, err := os.ReadFile(filepath.Join(t.Dir, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("read the CA: %w", err)
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(t.Dir, "tls.crt"), filepath.Join(t.Dir, "tls.key"))
	if err != nil {
		return nil, fmt.Errorf("read the certificate: %w", err)
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool(), Certificates: []tls.Certificate{pair}, ServerName: t.ServerName}
	if !out.RootCAs.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("read the CA: %w", errNoCA)
	}
	return out, nil
}
