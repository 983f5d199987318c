package httpclient

import (
	"context"
	"crypto/tls"
	"net/http"
	"sync"
)

// securedKey is under which a context has how its requests connect.
type securedKey struct{}

// WithTLS has the requests of a context go over TLS; nil leaves it as it is.
func WithTLS(ctx context.Context, config *tls.Config) context.Context {
	if config == nil {
		return ctx
	}
	return context.WithValue(ctx, securedKey{}, config)
}

// TLSFromContext returns how the requests of a context connect, nil without TLS.
func TLSFromContext(ctx context.Context) *tls.Config {
	config, _ := ctx.Value(securedKey{}).(*tls.Config)
	return config
}

// Scheme returns the scheme of URLs that are connected to.
func Scheme(config *tls.Config) string {
	if config == nil {
		return "http"
	}
	return "https"
}

// SetTLS makes a transport connect over TLS; nil leaves it as it is.
func SetTLS(transport *http.Transport, config *tls.Config) *http.Transport {
	transport.TLSClientConfig = config
	return transport
}

// Secured is a transport that connects as each request asks: over TLS, or without
// if it asks for nothing. It has one transport at a time.
type Secured struct {
	// Config returns how to connect. It is the same object until something changes.
	Config func() (*tls.Config, error)
	// ClusterDomain as of Transport.
	ClusterDomain string

	mu   sync.Mutex
	by   *tls.Config
	next *http.Transport
}

// RoundTrip implements http.RoundTripper. The scheme of the URL does not count.
func (s *Secured) RoundTrip(req *http.Request) (*http.Response, error) {
	config, err := s.Config()
	if err != nil {
		return nil, err
	}
	if scheme := Scheme(config); req.URL.Scheme != scheme {
		req = req.Clone(req.Context())
		req.URL.Scheme = scheme
	}
	return s.transport(config).RoundTrip(req)
}

// transport is the one for a configuration; that for another one is given up.
func (s *Secured) transport(config *tls.Config) *http.Transport {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == nil || s.by != config {
		if s.next != nil {
			s.next.CloseIdleConnections()
		}
		s.next, s.by = SetTLS(NewTransport(s.ClusterDomain), config), config
	}
	return s.next
}

// CloseIdleConnections is what http.Client looks for.
func (s *Secured) CloseIdleConnections() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next != nil {
		s.next.CloseIdleConnections()
	}
}
