package pdclient

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	pdhttp "github.com/tikv/pd/client/http"
	"github.com/tikv/pd/client/servicediscovery"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient/pdanswer"
)

// caller is how the operators name themselves towards PD.
const caller = "tidb-groups"

// answerDeadline is how long PD has for what it knows itself. Its members it asks one after the
// other, and waits three seconds for each that does not answer: that ends with the View only.
const answerDeadline = 2 * time.Second

// The calls, as errors and metrics name them.
const (
	callMembers        = "members"
	callHealth         = "health"
	callStores         = "stores"
	callTombstones     = "tombstones"
	callReplicate      = "replicate-config"
	callConfig         = "config"
	callSchedulers     = "schedulers"
	callSchedule       = "schedule-config"
	callEvicted        = "evict-leader-config"
	callRules          = "rules"
	callDownPeers      = "regions-down-peer"
	callPendingPeers   = "regions-pending-peer"
	callMissingPeers   = "regions-miss-peer"
	callStoreRegions   = "regions-of-store"
	callStoreLabels    = "set-store-labels"
	callPlacementRules = "enable-placement-rules"
	callSetConfig      = "set-config"
	callTransfer       = "transfer-leader"
	callDeleteMember   = "delete-member"
	callEvict          = "evict-leaders"
	callStopEvicting   = "stop-evicting-leaders"
	callDeleteStore    = "delete-store"
	callRestoreStore   = "restore-store"
	callServers        = "servers"
	callForgetServer   = "forget-server"
	callPeerURLs       = "set-peer-urls"
)

// DialerOption changes what NewDialer returns.
type DialerOption func(*dialer)

type dialer struct {
	metrics       *Metrics
	config        bool
	clusterDomain string
	tls           TLS
	timing        timing
}

// timing is how long is waited for one member.
type timing struct {
	// answer is how long PD has for what it knows itself, and probe after how long it is asked for its leader.
	answer, probe time.Duration
}

// TLS returns how the PD of a PDGroup is connected to, nil without TLS, as package
// credentials keeps it.
type TLS func(pdGroup types.NamespacedName) (*tls.Config, error)

// WithTLS connects over TLS where that is how PD is connected to, whatever the URL says.
func WithTLS(of TLS) DialerOption {
	return func(d *dialer) { d.tls = of }
}

// WithMetrics observes every call.
func WithMetrics(metrics *Metrics) DialerOption {
	return func(d *dialer) { d.metrics = metrics }
}

// WithConfig asks for PD's stored configuration with every View. It is some 6 KB.
func WithConfig() DialerOption {
	return func(d *dialer) { d.config = true }
}

// WithClusterDomain looks names of Services up in the domain of the cluster, such as
// cluster.local. An empty one leaves them to the resolver's search list.
func WithClusterDomain(domain string) DialerOption {
	return func(d *dialer) { d.clusterDomain = domain }
}

// NewDialer returns a Dialer that reaches a PDGroup by a URL made of a
// template, in which {name} and {namespace} stand for the PDGroup's, like
// http://{name}.{namespace}.svc:2379.
func NewDialer(urlTemplate string, options ...DialerOption) pd.Dialer {
	d := dialer{timing: timing{answer: answerDeadline, probe: leaderProbe}}
	for _, option := range options {
		option(&d)
	}
	return func(group types.NamespacedName) (pd.Client, error) {
		address := strings.NewReplacer("{name}", group.Name, "{namespace}", group.Namespace).Replace(urlTemplate)
		client, err := newClient(address, d, group)
		if err != nil {
			return nil, fmt.Errorf("dial PDGroup %s: %w", group, err)
		}
		return client, nil
	}
}

// Open is NewDialer for names in the cluster's domain, with the metrics of its calls
// registered.
func Open(urlTemplate, clusterDomain string, of TLS, registry prometheus.Registerer) (pd.Dialer, error) {
	return openDialer(urlTemplate, registry, WithClusterDomain(clusterDomain), WithTLS(of))
}

// OpenWithConfig is Open for callers that manage PD's stored configuration.
func OpenWithConfig(urlTemplate, clusterDomain string, of TLS, registry prometheus.Registerer) (pd.Dialer, error) {
	return openDialer(urlTemplate, registry, WithClusterDomain(clusterDomain), WithTLS(of), WithConfig())
}

func openDialer(urlTemplate string, registry prometheus.Registerer, options ...DialerOption) (pd.Dialer, error) {
	metrics, err := NewMetrics(registry)
	if err != nil {
		return nil, fmt.Errorf("register metrics of PD calls: %w", err)
	}
	return NewDialer(urlTemplate, append(options, WithMetrics(metrics))...), nil
}

// httpClient is a Client on PD's HTTP API. None of its goroutines outlives a call.
type httpClient struct {
	url       string
	http      *http.Client
	pd        pdhttp.Client
	transport quietTransport
	metrics   *Metrics
	config    bool
	tls       func() (*tls.Config, error)
	timing    timing
}

func newClient(address string, d dialer, group types.NamespacedName) (*httpClient, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read PD's URL: %w", err)
	}
	if parsed.Scheme != "http" || parsed.Host == "" || strings.Trim(parsed.Path, "/") != "" {
		return nil, fmt.Errorf("read PD's URL %q: it must be like http://host:port", address)
	}
	base := parsed.Scheme + "://" + parsed.Host
	discovery := servicediscovery.NewMockPDServiceDiscovery([]string{base}, nil)
	if err := discovery.Init(); err != nil {
		return nil, fmt.Errorf("name PD's URL to its client: %w", err)
	}
	secured := func() (*tls.Config, error) { return nil, nil }
	if d.tls != nil {
		secured = func() (*tls.Config, error) { return d.tls(group) }
	}
	transport := newQuietTransport(d.clusterDomain, secured)
	client := httpclient.New(transport)
	return &httpClient{
		url: base, http: client, transport: transport, metrics: d.metrics, config: d.config, tls: secured, timing: d.timing,
		pd: pdhttp.NewClientWithServiceDiscovery(caller, discovery, pdhttp.WithHTTPClient(client)),
	}, nil
}

// View implements Client. The calls go over one connection, and so to one
// member. The next View takes the same connection, unless this one failed: then it goes to a
// member that the Service lists by that time. A member without a leader fails: it passes every
// question on to the leader.
func (c *httpClient) View(ctx context.Context) (pd.View, error) { return c.fetchView(ctx, nil) }

// Refresh implements pd.Client.
func (c *httpClient) Refresh(ctx context.Context, before pd.View) (pd.View, error) {
	return c.fetchView(ctx, &before)
}

// fetchView returns a View, with the settings of before if that is not nil and they may hold.
func (c *httpClient) fetchView(ctx context.Context, before *pd.View) (pd.View, error) {
	view := pd.View{}
	err := c.askState(ctx, &view)
	if err == nil && before != nil {
		if refreshed, holds := view.WithSettings(*before); holds {
			return refreshed, nil
		}
	}
	if err == nil {
		err = c.askSettings(ctx, &view)
	}
	if err != nil {
		c.transport.CloseIdleConnections()
		return pd.View{Err: err}, err
	}
	return view, nil
}

// askState asks for what changes by itself.
func (c *httpClient) askState(ctx context.Context, view *pd.View) error {
	var health pdanswer.Health
	if err := c.askMembers(ctx, view); err != nil {
		return err
	}
	if err := fetchAnswer(ctx, c, callHealth, &health, pdhttp.Client.GetHealthStatus); err != nil {
		return err
	}
	pdanswer.AddHealth(view, health)
	return c.askStores(ctx, view)
}

// askMembers asks which members there are, and who leads.
func (c *httpClient) askMembers(ctx context.Context, view *pd.View) error {
	ctx, cancel := context.WithTimeout(ctx, c.timing.answer)
	defer cancel()
	var members pdanswer.Members
	err := c.callLed(ctx, callMembers, func(ctx context.Context) error {
		return fetchAnswer(ctx, c, callMembers, &members, pdhttp.Client.GetMembers)
	})
	if err != nil {
		return err
	}
	return pdanswer.AddMembers(view, callMembers, members)
}

// askStores asks for the stores, of which there are none before one has registered.
func (c *httpClient) askStores(ctx context.Context, view *pd.View) error {
	ctx, cancel := context.WithTimeout(ctx, c.timing.answer)
	defer cancel()
	var stores pdanswer.Stores
	err := fetchAnswer(ctx, c, callStores, &stores, pdhttp.Client.GetStores)
	switch {
	case err == nil:
		pdanswer.AddStores(view, stores)
	case !errors.Is(err, pd.ErrNotBootstrapped):
		return err
	}
	return nil
}

// askSettings asks for what people and operators set.
func (c *httpClient) askSettings(ctx context.Context, view *pd.View) error {
	ctx, cancel := context.WithTimeout(ctx, c.timing.answer)
	defer cancel()
	var replicate pdanswer.Replicate
	if err := fetchAnswer(ctx, c, callReplicate, &replicate, pdhttp.Client.GetReplicateConfig); err != nil {
		return err
	}
	pdanswer.AddReplicate(view, replicate)
	if c.config {
		var config map[string]json.RawMessage
		if err := c.request(ctx, callConfig, http.MethodGet, "/pd/api/v1/config", &config); err != nil {
			return err
		}
		pdanswer.AddConfig(view, config)
	}
	if !view.Bootstrapped {
		// Before there are stores PD refuses to talk about what is done with them.
		return nil
	}
	if err := c.askEvicted(ctx, view); err != nil {
		return err
	}
	return c.askRules(ctx, view)
}

// askEvicted asks which stores are in the one scheduler that evicts leaders.
// Without any, PD has no such scheduler and says 404. It says so as well before it has
// loaded its schedulers: there are none at all then, but PD's configuration names them.
func (c *httpClient) askEvicted(ctx context.Context, view *pd.View) error {
	var running []string
	if err := c.request(ctx, callSchedulers, http.MethodGet, "/pd/api/v1/schedulers", &running); err != nil {
		return err
	}
	switch {
	case len(running) == 0:
		var configured pdanswer.Schedule
		err := c.request(ctx, callSchedule, http.MethodGet, "/pd/api/v1/config/schedule", &configured)
		view.EvictionsUnknown = configured.EvictsLeaders()
		return err
	case !slices.Contains(running, evictLeader):
		return nil
	}
	var evicted pdanswer.Evicted
	err := fetchAnswer(ctx, c, callEvicted, &evicted, func(pd pdhttp.Client, ctx context.Context) (any, error) {
		return pd.GetSchedulerConfig(ctx, evictLeader)
	})
	if err != nil {
		return ignoreStatus(err, http.StatusNotFound)
	}
	pdanswer.AddEvicted(view, evicted)
	return nil
}

// askRules asks for the placement rules, which PD refuses with 412 while they
// are off.
func (c *httpClient) askRules(ctx context.Context, view *pd.View) error {
	if !view.PlacementRules {
		return nil
	}
	var rules pdanswer.Rules
	if err := c.request(ctx, callRules, http.MethodGet, "/pd/api/v1/config/rules", &rules); err != nil {
		return ignoreStatus(err, http.StatusPreconditionFailed)
	}
	pdanswer.AddRules(view, rules)
	return nil
}

// fetchAnswer makes a call of the PD client, of which only the request is used.
func fetchAnswer[T any](ctx context.Context, c *httpClient, name string, into any, get func(pdhttp.Client, context.Context) (T, error)) error {
	return c.call(ctx, name, into, func(pd pdhttp.Client) error {
		_, err := get(pd, ctx)
		return err
	})
}

// Close implements Client. The PD client's own Close is not called: it does no
// more than this, and logs.
func (c *httpClient) Close() { c.transport.CloseIdleConnections() }

// call makes one call of the PD client and decodes the answer, if into is not
// nil. The PD client's own handling of answers is replaced: it logs what is not
// 200 and loses the status.
func (c *httpClient) call(ctx context.Context, name string, into any, do func(pdhttp.Client) error) error {
	return c.measure(ctx, name, into, func(read func(*http.Response, any) error) error {
		return do(c.pd.WithRespHandler(read))
	})
}

// request makes a call that the PD client does not have, as call does.
func (c *httpClient) request(ctx context.Context, name, method, path string, into any) error {
	return c.send(ctx, name, message{method, path, http.NoBody}, into)
}

// message is what a request sends.
type message struct {
	method, path string
	body         io.Reader
}

// send is request with a body.
func (c *httpClient) send(ctx context.Context, name string, m message, into any) error {
	return c.measure(ctx, name, into, func(read func(*http.Response, any) error) error {
		req, err := http.NewRequestWithContext(ctx, m.method, c.url+m.path, m.body)
		if err != nil {
			return fmt.Errorf("make request %s: %w", m.path, err)
		}
		resp, err := c.http.Do(req) //nolint:bodyclose // read closes it
		if err != nil {
			return fmt.Errorf("%s %s: %w", m.method, m.path, err)
		}
		return read(resp, nil)
	})
}

// measure makes a call, hands the answer to read, and observes how it ended.
func (c *httpClient) measure(ctx context.Context, name string, into any, do func(read func(*http.Response, any) error) error) error {
	begin, code := time.Now(), codeNone
	handled := false
	err := do(func(resp *http.Response, _ any) error {
		handled = true
		if resp.StatusCode != 0 {
			code = strconv.Itoa(resp.StatusCode)
		}
		return c.read(name, resp, into)
	})
	c.metrics.observe(name, code, time.Since(begin))
	if err != nil && !handled {
		err = &pd.Unreachable{URL: c.address(), Cause: cmp.Or(ctx.Err(), err)}
	}
	c.dropConnection(err)
	return err
}

// dropConnection gives the connection up after a failure that may be the member's own. What is answered
// with 4xx, or before there are stores, every member answers so.
func (c *httpClient) dropConnection(err error) {
	var refused *pd.Refused
	if err == nil || errors.As(err, &refused) && (refused.Status < http.StatusInternalServerError || errors.Is(err, pd.ErrNotBootstrapped)) {
		return
	}
	c.transport.CloseIdleConnections()
}

// address is where PD is asked, for a user.
func (c *httpClient) address() string {
	if config, err := c.tls(); config == nil && err == nil {
		return c.url
	}
	return "https" + strings.TrimPrefix(c.url, "http")
}

// ignoreStatus passes an error on, unless PD refused with a status.
func ignoreStatus(err error, status int) error {
	var refused *pd.Refused
	if errors.As(err, &refused) && refused.Status == status {
		return nil
	}
	return err
}

func (c *httpClient) read(name string, resp *http.Response, into any) (err error) {
	if f, ok := resp.Body.(failure); ok {
		return &pd.Unreachable{URL: c.address(), Cause: f.cause}
	}
	defer func() {
		if closeErr := resp.Body.Close(); closeErr != nil && err == nil {
			err = &pd.Unreachable{URL: c.address(), Cause: closeErr}
		}
	}()
	switch {
	case resp.StatusCode != http.StatusOK:
		body, err := io.ReadAll(io.LimitReader(resp.Body, pdanswer.MaxRefusal))
		if err != nil {
			return &pd.Unreachable{URL: c.address(), Cause: err}
		}
		return &pd.Refused{Call: name, Status: resp.StatusCode, Body: pd.Quote(body)}
	case into == nil:
		return nil
	}
	return c.decode(name, resp.Body, into)
}

// decode decodes an answer. A connection that breaks is none of PD's answers.
func (c *httpClient) decode(name string, body io.Reader, into any) error {
	broken, err := pdanswer.Decode(body, into)
	switch {
	case broken != nil:
		return &pd.Unreachable{URL: c.address(), Cause: broken}
	case err != nil:
		return &pd.Malformed{Call: name, Why: err.Error()}
	}
	return nil
}
