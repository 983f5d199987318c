package pdclient

import (
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// dialTimeout leaves time within a poll to be answered.
	dialTimeout = time.Second
	// idleTimeout closes the connections of calls outside of polls.
	idleTimeout = 10 * time.Second
	// maxAnswer bounds what is read of an answer, in bytes; ten thousand
	// stores take a tenth of it.
	maxAnswer = 64 << 20
)

// quietTransport hands a failed round trip on as a response whose body is a
// failure. The PD client logs every error of its transport through a logger of
// its own; the operators report it in a status instead.
type quietTransport struct {
	next *http.Transport
}

func newQuietTransport() quietTransport {
	return quietTransport{next: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: dialTimeout}).DialContext,
		TLSHandshakeTimeout: dialTimeout,
		IdleConnTimeout:     idleTimeout,
		MaxIdleConnsPerHost: 1,
	}}
}

// RoundTrip implements http.RoundTripper and never returns an error.
func (t quietTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		return &http.Response{
			Status: "no answer", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{},
			Body: failure{cause: err}, Request: req,
		}, nil
	}
	// A redirect would be followed to an address that only the members know.
	resp.Header.Del("Location")
	return resp, nil
}

// CloseIdleConnections is what http.Client looks for.
func (t quietTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// failure is the body of a response that there was not.
type failure struct{ cause error }

func (f failure) Read([]byte) (int, error) { return 0, f.cause }
func (f failure) Close() error             { return nil }

var _ io.ReadCloser = failure{}
