package process

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"

	"go.etcd.io/etcd/client/pkg/v3/transport"
)

// Files are those of TLS, none without. They are read again for each connection, but for the
// CA.
type Files struct{ CA, Cert, Key string }

// FilesOf reads their paths from a document.
func FilesOf(doc map[string]any, ca, cert, key string) (Files, error) {
	f := Files{CA: LookupText(doc, ca, ""), Cert: LookupText(doc, cert, ""), Key: LookupText(doc, key, "")}
	if f != (Files{}) && (f.CA == "" || f.Cert == "" || f.Key == "") {
		return f, fmt.Errorf("%s, %s and %s belong together", ca, cert, key)
	}
	return f, nil
}

// Listen is as the function: over TLS, if there are files, with those alone who show a
// certificate of the CA.
func (f Files) Listen(ctx context.Context, addr string) (net.Listener, error) {
	config, err := f.Server(tls.RequireAndVerifyClientCert)
	if err != nil {
		return nil, err
	}
	l, err := Listen(ctx, addr)
	if err != nil || config == nil {
		return l, err
	}
	return tls.NewListener(l, config), nil
}

// Server is how one serves; nil without TLS. Without a CA no client is asked for a certificate.
func (f Files) Server(wanted tls.ClientAuthType) (*tls.Config, error) {
	if f.Cert == "" && f.Key == "" {
		return nil, nil
	}
	config, err := transport.TLSInfo{CertFile: f.Cert, KeyFile: f.Key, TrustedCAFile: f.CA, ClientCertAuth: f.CA != ""}.ServerConfig()
	if err != nil {
		return nil, fmt.Errorf("read the files of TLS: %w", err)
	}
	if f.CA != "" {
		config.ClientAuth = wanted
	}
	config.NextProtos = append(config.NextProtos, "http/1.1")
	return config, nil
}

// Client is how one connects to others; nil without TLS.
func (f Files) Client() (*tls.Config, error) {
	if f == (Files{}) {
		return nil, nil
	}
	config, err := transport.TLSInfo{CertFile: f.Cert, KeyFile: f.Key, TrustedCAFile: f.CA}.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("read the files of TLS: %w", err)
	}
	return config, nil
}

// URL is that of a path at an address, as it is connected to.
func URL(over *tls.Config, address, path string) string {
	if over != nil {
		return "https://" + address + path
	}
	return "http://" + address + path
}

// Do makes one request on a connection of its own, over TLS if there is a configuration.
func Do(over *tls.Config, request *http.Request) (*http.Response, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: over, DisableKeepAlives: true}}
	return client.Do(request)
}

// errPlain is the error of an endpoint that wants TLS, without files for it.
var errPlain = errors.New("it wants TLS, and no files are given for it")
