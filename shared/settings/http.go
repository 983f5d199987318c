package settings

import (
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
)

// maxDocument bounds the configuration that a member shows, in bytes; TiKV's has
// some tens of KiB.
const maxDocument = 4 << 20

// maxText bounds what is read of a refusal, or of a word, in bytes.
const maxText = 256

// ErrNotFound is the answer of a member that does not know a path.
var ErrNotFound = errors.New("404 Not Found")

// Port is a status port. Its methods speak HTTP to the member at a host. Their
// errors end in a status: they read the same for the same cause.
type Port int32

// URL of a path at a host.
func (p Port) URL(host, path string) string {
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(p))) + path
}

// Get decodes the JSON document at a path.
func (p Port) Get(ctx context.Context, host, path string) (map[string]any, error) {
	document, err := p.read(ctx, host, path, maxDocument)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	if err := json.Unmarshal(document, &out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", p.URL(host, path), err)
	}
	return out, nil
}

// Text returns the word at a path. The error is ErrNotFound if the member does not know
// the path.
func (p Port) Text(ctx context.Context, host, path string) (string, error) {
	text, err := p.read(ctx, host, path, maxText)
	return strings.TrimSpace(string(text)), err
}

// read reads what is at a path, up to so many bytes.
func (p Port) read(ctx context.Context, host, path string, most int64) ([]byte, error) {
	url := p.URL(host, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("build request to %s: %w", url, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("get %s: %s", url, cause.Of(err))
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return nil, fmt.Errorf("get %s: %w", url, ErrNotFound)
	default:
		return nil, fmt.Errorf("get %s: %s", url, response.Status)
	}
	out, err := io.ReadAll(io.LimitReader(response.Body, most))
	if err != nil {
		return nil, fmt.Errorf("read %s: %s", url, cause.Of(err))
	}
	return out, nil
}

// Post posts a body, if it has a type, and returns what the member answers if it
// refuses it.
func (p Port) Post(ctx context.Context, host, path, contentType, body string) (string, error) {
	url := p.URL(host, path)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", fmt.Errorf("build request to %s: %w", url, err)
	}
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("post to %s: %s", url, cause.Of(err))
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusOK {
		return "", nil
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxText))
	if err != nil {
		return response.Status, nil //nolint:nilerr // it has refused, whatever it says of it
	}
	return strings.TrimSpace(response.Status + ": " + string(answer)), nil
}
