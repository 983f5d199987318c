package hook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

var errNoCA = errors.New("it has no PEM certificate")

// TLS is how a program shows itself to PD or the member of its own pod, and knows it.
type TLS struct {
	// Dir has ca.crt, tls.crt and tls.key. Without it requests do not use TLS.
	Dir string
	// ServerName that the server's certificate must have; the host of the URL if it
	// is empty.
	ServerName string
}

// AddFlags declares the flags of it.
func (t *TLS) AddFlags(set *flag.FlagSet) {
	set.StringVar(&t.Dir, "tls", "", "folder with ca.crt, tls.crt and tls.key; without it, requests do not use TLS")
	set.StringVar(&t.ServerName, "server-name", "", "name that the server's certificate must have; $(NAME) stands for a variable")
}

// LocalTransport connects to the member of the program's own pod, at its address there.
func (t TLS) LocalTransport() (*http.Transport, error) {
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	return httpclient.SetTLS(httpclient.NewTransport(""), config), nil
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

// Errors of what a MySQL client knows TiDB by, whose Secret may be made or fixed later.
var (
	ErrCANotThere  = errors.New("the CA of TiDB's certificate is not there")
	ErrCAUnusable  = errors.New("the CA of TiDB's certificate is not a PEM certificate")
	ErrPairInvalid = errors.New("the certificate to show does not match its key")
)

// MySQLTLS is how a MySQL client knows the server at an address, by ca.crt in a folder, and
// what it shows: tls.crt and tls.key, if they are there. Nil without a folder.
func MySQLTLS(dir, address string) (*tls.Config, error) {
	if dir == "" {
		return nil, nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("read address: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt")) //nolint:gosec // of the Secret that is mounted
	if err != nil {
		return nil, ErrCANotThere
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: host, RootCAs: x509.NewCertPool()}
	if !out.RootCAs.AppendCertsFromPEM(ca) {
		return nil, ErrCAUnusable
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, ErrPairInvalid
	default:
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
