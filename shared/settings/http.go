package settings

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/shared/cause"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

// What a configuration that a member shows may be at most: TiKV's has some tens of
// KiB and some 2,000 values. A value may take a hundred times the memory of its text.
const (
	maxDocument = 512 << 10 // bytes
	maxValues   = 20_000
)

// maxText bounds what is read of a refusal, or of a word, in bytes.
const maxText = 256

// ErrNotFound is the answer of a member that does not know a path.
var ErrNotFound = errors.New("404 Not Found")

// ServerError is an answer with a status from 500 on.
type ServerError struct{ status string }

// Error implements error.
func (e *ServerError) Error() string { return e.status }

// errValues is the error of a document beyond maxValues.
var errValues = fmt.Errorf("it has more than %d values", maxValues)

// Port is a status port. Its methods speak HTTP to the member at a host. Their
// errors end in a status: they read the same for the same cause.
type Port int32

// URL of a path at a host, as the requests of a context connect.
func (p Port) URL(ctx context.Context, host, path string) string {
	return httpclient.Scheme(httpclient.TLSFromContext(ctx)) + "://" + net.JoinHostPort(host, strconv.Itoa(int(p))) + path
}

// Get decodes the JSON document at a path.
func (p Port) Get(ctx context.Context, host, path string) (map[string]any, error) {
	document, err := p.read(ctx, host, path, maxDocument)
	if err != nil {
		return nil, err
	}
	// Each value begins the document or follows one of these.
	if n := bytes.Count(document, []byte("{")) + bytes.Count(document, []byte("[")) + bytes.Count(document, []byte(",")); n > maxValues {
		return nil, fmt.Errorf("decode %s: %w", p.URL(ctx, host, path), errValues)
	}
	var out map[string]any
	if err := json.Unmarshal(document, &out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", p.URL(ctx, host, path), err)
	}
	return out, nil
}

// Text returns the word at a path. The error is ErrNotFound if the member does not know
// the path.
func (p Port) Text(ctx context.Context, host, path string) (string, error) {
	text, err := p.read(ctx, host, path, maxText)
	return strings.TrimSpace(string(text)), err
}

// sendRequest makes one request, and reads at most so many bytes of what is answered with 200,
// the beginning of any other answer.
func sendRequest(request *http.Request, most int64) (*http.Response, []byte, error) {
	// Members are asked at the addresses of their pods.
	transport := httpclient.SetTLS(httpclient.NewTransport(""), httpclient.TLSFromContext(request.Context()))
	defer transport.CloseIdleConnections()
	response, err := httpclient.New(transport).Do(request)
	if err != nil {
		return nil, nil, errors.New(cause.Describe(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxText)) // it has refused, whatever it says of it
		return response, body, nil
	}
	body, err := httpclient.ReadAll(response.Body, most)
	switch {
	case errors.Is(err, httpclient.ErrTooLong):
		return nil, nil, err
	case err != nil:
		return nil, nil, errors.New(cause.Describe(err))
	}
	return response, body, nil
}

// statusText is the status of an answer. Its own phrase is what the member likes it to be.
func statusText(response *http.Response) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
}

// read reads what is at a path, of at most so many bytes.
func (p Port) read(ctx context.Context, host, path string, most int64) ([]byte, error) {
	url := p.URL(ctx, host, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("build request to %s: %w", url, err)
	}
	response, out, err := sendRequest(request, most) //nolint:bodyclose // do has read and closed it
	switch {
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", url, err)
	case response.StatusCode == http.StatusNotFound:
		return nil, fmt.Errorf("get %s: %w", url, ErrNotFound)
	case response.StatusCode >= http.StatusInternalServerError:
		return nil, fmt.Errorf("get %s: %w", url, &ServerError{statusText(response)})
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("get %s: %s", url, statusText(response))
	}
	return out, nil
}

// Post posts a body, if it has a type, and returns what the member answers if it
// refuses it.
func (p Port) Post(ctx context.Context, host, path, contentType, body string) (string, error) {
	return p.send(ctx, http.MethodPost, p.URL(ctx, host, path), contentType, body)
}

// Put puts a body, and returns what the member answers if it refuses it.
func (p Port) Put(ctx context.Context, host, path, contentType, body string) (string, error) {
	return p.send(ctx, http.MethodPut, p.URL(ctx, host, path), contentType, body)
}

// send sends a body, if it has a type.
func (Port) send(ctx context.Context, method, url, contentType, body string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("build request to %s: %w", url, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, answer, err := sendRequest(request, maxDocument) //nolint:bodyclose // do has read and closed it
	switch {
	case err != nil:
		return "", fmt.Errorf("%s to %s: %w", strings.ToLower(method), url, err)
	case response.StatusCode == http.StatusOK:
		return "", nil
	case len(answer) == 0:
		return statusText(response), nil
	}
	return strings.TrimSpace(statusText(response) + ": " + string(answer)), nil
}
