package progress

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

// requestTimeout is how long a pod has to answer.
const requestTimeout = time.Second

// Client asks pods.
type Client struct{ http *http.Client }

// NewClient returns a Client.
func NewClient() *Client { return &Client{http: httpclient.New(httpclient.NewTransport(""))} }

// Ask asks the pod at an address; nil if it tells nothing. Nothing depends on the answer.
func (c *Client) Ask(ctx context.Context, ip string) (*Report, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	url := "http://" + net.JoinHostPort(ip, strconv.Itoa(Port)) + "/"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("ask %s for progress: %w", ip, err)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask %s for progress: %w", ip, err)
	}
	defer func() { _ = answer.Body.Close() }() // all of it was read
	text, err := httpclient.ReadAll(answer.Body, maxReport)
	if err != nil {
		return nil, fmt.Errorf("read the progress of %s: %w", ip, err)
	}
	if report, is := parseReport(text); is && answer.StatusCode == http.StatusOK {
		return &report, nil
	}
	return nil, nil
}
