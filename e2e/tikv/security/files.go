// Package security is how a store shows itself to others and knows them, by the files that
// [security] of its configuration names. They are read again for each connection, but for the
// CA, as TiKV does.
package security

import (
	"crypto/tls"
	"errors"
	"fmt"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// Files are those of TLS, none without.
type Files struct{ CA, Cert, Key string }

// Check says whether some are missing.
func (f Files) Check() error {
	if f != (Files{}) && (f.CA == "" || f.Cert == "" || f.Key == "") {
		return errors.New("security.ca-path, cert-path and key-path belong together")
	}
	return nil
}

// Server is how the store serves: only who shows a certificate of its CA; nil without TLS.
func (f Files) Server() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	config, err := f.info().ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("read the files of security: %w", err)
	}
	config.NextProtos = append(config.NextProtos, "http/1.1") // of the status port
	return config, nil
}

// Client is how the store connects to PD and other stores; nil without TLS.
func (f Files) Client() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	config, err := f.info().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the files of security: %w", err)
	}
	return config, nil
}

func (f Files) info() transport.TLSInfo {
	return transport.TLSInfo{CertFile: f.Cert, KeyFile: f.Key, TrustedCAFile: f.CA, ClientCertAuth: true}
}
