package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

const (
	// maxAnswer bounds what is read of an answer, in bytes. A store takes about 1 kB.
	maxAnswer = 16 << 20
	// maxQuote bounds what is quoted of a refusal.
	maxQuote = 200
	// perCall bounds one call, unless BoundCalls says otherwise.
	perCall = 3 * time.Second
)

// PD is a PD, by its HTTP API.
type PD struct {
	url    string
	client *http.Client
	// problem is why it cannot be asked.
	problem error
}

// NewPD returns a PD by its base URL, like http://basic-pd.shop.svc:2379, and how it is
// connected to over TLS.
func NewPD(url string, secured TLS) PD {
	config, err := secured.config()
	transport := httpclient.SetTLS(httpclient.NewTransport(httpclient.ClusterDomain(httpclient.ResolvConf)), config)
	transport.DisableKeepAlives = true // the next call may go to another member
	client := httpclient.New(transport)
	client.Timeout = perCall
	return PD{url: strings.TrimSuffix(url, "/"), client: client, problem: err}
}

// BoundCalls returns the PD with another bound of a call.
func (p PD) BoundCalls(bound time.Duration) PD {
	client := *p.client
	client.Timeout = bound
	p.client = &client
	return p
}

// Refusal is an answer of PD other than 200.
type Refusal struct {
	Status int
	Body   string
}

func (r *Refusal) Error() string { return fmt.Sprintf("PD answers %d: %s", r.Status, r.Body) }

// IsNotFound reports whether PD answered 404.
func IsNotFound(err error) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.Status == http.StatusNotFound
}

// Call makes one call, within three seconds by default: body is sent as JSON if it is not nil, and the
// answer is read into into if that is not nil. The error is a *Refusal if PD answered.
func (p PD) Call(ctx context.Context, method, path string, body, into any) (err error) {
	if p.problem != nil {
		return p.problem
	}
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, sent)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	answer, err := httpclient.ReadAll(resp.Body, maxAnswer)
	if err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return &Refusal{resp.StatusCode, strings.TrimSpace(string(answer[:min(len(answer), maxQuote)]))}
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	return nil
}
