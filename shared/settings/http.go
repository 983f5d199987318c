package settings

import (
	"context"
	"encoding/json"
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

// maxRefusal bounds what is read of a refusal, in bytes.
const maxRefusal = 256

// Port is a status port. Its methods speak HTTP to the member at a host. Their
// errors end in a status: they read the same for the same cause.
type Port int32

// URL of a path at a host.
func (p Port) URL(host, path string) string {
	return "http://" + net.JoinHostPort(host, strconv.Itoa(int(p))) + path
}

// Get decodes the JSON document at a path.
func (p Port) Get(ctx context.Context, host, path string) (map[string]any, error) {
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
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", url, response.Status)
	}
	document, err := io.ReadAll(io.LimitReader(response.Body, maxDocument))
	if err != nil {
		return nil, fmt.Errorf("read %s: %s", url, cause.Of(err))
	}
	var out map[string]any
	if err := json.Unmarshal(document, &out); err != nil {
		return nil, fmt.Errorf("decode %s: %w", url, err)
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
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	if err != nil {
		return response.Status, nil //nolint:nilerr // it has refused, whatever it says of it
	}
	return strings.TrimSpace(response.Status + ": " + string(answer)), nil
}
