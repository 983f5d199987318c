package pdclient

import (
	"crypto/tls"
	"io"
	"net/http"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

// quietTransport hands a failed round trip on as a response whose body is a
// failure. The PD client logs every error of its transport through a logger of
// its own; the operators report it in a status instead.
type quietTransport struct {
	next *httpclient.Secured
}

func newQuietTransport(clusterDomain string, config func() (*tls.Config, error)) quietTransport {
	return quietTransport{next: &httpclient.Secured{Config: config, ClusterDomain: clusterDomain}}
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
	return resp, nil
}

// CloseIdleConnections is what http.Client looks for.
func (t quietTransport) CloseIdleConnections() { t.next.CloseIdleConnections() }

// failure is the body of a response that there was not.
type failure struct{ cause error }

func (f failure) Read([]byte) (int, error) { return 0, f.cause }
func (f failure) Close() error             { return nil }

var _ io.ReadCloser = failure{}
