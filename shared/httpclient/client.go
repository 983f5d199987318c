package httpclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

const (
	// dialTimeout leaves time within a call to be answered.
	dialTimeout = time.Second
	// idleTimeout closes unused connections. PD is asked every ten seconds at rest:
	// its connection lasts from one question to the next, so that no TLS handshake is needed.
	idleTimeout = 30 * time.Second
	// maxHeader bounds the header of an answer, in bytes; net/http's own bound is 10 MiB.
	maxHeader = 64 << 10
)

// ErrTooLong is the error of reading an answer beyond the bytes that were allowed.
var ErrTooLong = errors.New("the answer is too long")

// Errors of a connection to an address that no pod has.
var (
	errLinkLocal = errors.New("link-local addresses belong to nodes and clouds, not to pods")
	errMetadata  = errors.New("the cloud has its metadata there")
)

// metadataAddresses are the addresses, beside link-local ones, where clouds hand out the
// credentials of nodes: of AWS, Google and Oracle, by IPv6.
func metadataAddresses() []netip.Addr {
	return []netip.Addr{netip.MustParseAddr("fd00:ec2::254"), netip.MustParseAddr("fd20:ce::254"), netip.MustParseAddr("fd00:c1::a9fe:a9fe")}
}

// NewTransport returns a transport without proxy and without compression, which could
// make gigabytes of a kilobyte. It does not connect to link-local addresses and others
// where clouds hand out the credentials of nodes. Names of Services and of pods
// (basic-pd.prod.svc) it looks up in the cluster's domain and nowhere else; an empty
// domain leaves them to the resolver's search list.
func NewTransport(clusterDomain string) *http.Transport {
	return &http.Transport{
		DialContext:            newDialContext(clusterDomain),
		TLSHandshakeTimeout:    dialTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConnsPerHost:    1,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
	}
}

// New returns a client on a transport. It follows no redirect: the answer that asks
// for one is the answer.
func New(transport http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// ReadAll reads a body of at most so many bytes. The error is ErrTooLong if there are more.
func ReadAll(body io.Reader, most int64) ([]byte, error) {
	out, err := io.ReadAll(io.LimitReader(body, most+1))
	if err == nil && int64(len(out)) > most {
		return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLong, most)
	}
	return out, err
}

// newDialContext returns how connections are made.
func newDialContext(clusterDomain string) func(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: dialTimeout, Control: toPods}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, fmt.Errorf("read address %q: %w", address, err)
		}
		return dialer.DialContext(ctx, network, net.JoinHostPort(absoluteHost(host, clusterDomain), port))
	}
}

// toPods refuses to connect to what is no pod.
func toPods(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read address %q: %w", address, err)
	}
	if to.Addr().Unmap().IsLinkLocalUnicast() {
		return fmt.Errorf("connect to %s: %w", to.Addr(), errLinkLocal)
	}
	if slices.Contains(metadataAddresses(), to.Addr().Unmap()) {
		return fmt.Errorf("connect to %s: %w", to.Addr(), errMetadata)
	}
	return nil
}
