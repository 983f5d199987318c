package process

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	// callTimeout bounds one call to PD, retryDelay the pause before the next
	// try: short, since a pod that waits for PD should serve as soon as PD does.
	callTimeout = 3 * time.Second
	retryDelay  = 100 * time.Millisecond
)

// ErrPermanent marks an answer of PD that no retry will change, such as that
// of another cluster.
var ErrPermanent = errors.New("permanent")

// PD is a client of one PD cluster that follows its leader.
type PD struct {
	log       *slog.Logger
	endpoints []string // host:port, as given
	over      *tls.Config

	mu        sync.Mutex
	conns     map[string]*grpc.ClientConn
	members   []string // host:port of all members as last heard
	leader    string   // host:port, "" when not known
	clusterID uint64   // 0 when not known
}

// NewPD returns a client for the endpoints, each "host:port" with or without
// http:// or https:// before it. They are connected to over TLS if there are files for it.
// Nothing is dialled yet; close it with Close.
func NewPD(endpoints []string, files Files, log *slog.Logger) (*PD, error) {
	over, err := files.Client()
	if err != nil {
		return nil, err
	}
	p := &PD{log: log, over: over, conns: map[string]*grpc.ClientConn{}}
	for _, list := range endpoints {
		for e := range strings.SplitSeq(list, ",") {
			e = strings.TrimSpace(e)
			if e == "" {
				continue
			}
			if strings.HasPrefix(e, "https://") && over == nil {
				return nil, fmt.Errorf("PD endpoint %q: %w", e, errPlain)
			}
			p.endpoints = append(p.endpoints, hostPort(e))
		}
	}
	if len(p.endpoints) == 0 {
		return nil, errors.New("no PD endpoint given")
	}
	return p, nil
}

func hostPort(url string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://"), "/")
}

// Close ends all connections.
func (p *PD) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		// A connection that fails to close is gone all the same.
		_ = c.Close()
	}
	p.conns = map[string]*grpc.ClientConn{}
}

func (p *PD) dial(addr string) (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.conns[addr]; ok {
		return c, nil
	}
	secured := insecure.NewCredentials()
	if p.over != nil {
		secured = credentials.NewTLS(p.over)
	}
	fast := backoff.Config{BaseDelay: retryDelay, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}
	// passthrough: the name is looked up at each dial, so a pod's new address is found.
	c, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(secured),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: fast, MinConnectTimeout: callTimeout}),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(Codec())),
		grpc.WithReadBufferSize(4<<10), grpc.WithWriteBufferSize(4<<10))
	if err != nil {
		return nil, fmt.Errorf("dial PD %s: %w", addr, err)
	}
	p.conns[addr] = c
	return c, nil
}

// Over is how PD and its cluster are connected to; nil without TLS.
func (p *PD) Over() *tls.Config { return p.over }

// Endpoints returns host:port of the members as last heard, the given
// endpoints before any was heard.
func (p *PD) Endpoints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.members) > 0 {
		return slices.Clone(p.members)
	}
	return slices.Clone(p.endpoints)
}

// Header returns the header for a request, with the cluster ID as last heard.
func (p *PD) Header() *pdpb.RequestHeader {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &pdpb.RequestHeader{ClusterId: p.clusterID}
}

// find asks the endpoints in turn who leads.
func (p *PD) find(ctx context.Context) (string, error) {
	all := slices.Clone(p.endpoints)
	for _, m := range p.Endpoints() {
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	var failed []error
	for _, addr := range all {
		c, err := p.dial(addr)
		if err != nil {
			return "", err
		}
		one, cancel := context.WithTimeout(ctx, callTimeout)
		res, err := pdpb.NewPDClient(c).GetMembers(one, &pdpb.GetMembersRequest{Header: &pdpb.RequestHeader{}})
		cancel()
		if err == nil {
			err = HeaderError(res.GetHeader())
		}
		if err == nil && len(res.GetLeader().GetClientUrls()) == 0 {
			err = errors.New("there is no leader")
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("ask PD %s for its members: %w", addr, err))
			continue
		}
		if err := p.heard(res); err != nil {
			return "", err
		}
		return hostPort(res.GetLeader().GetClientUrls()[0]), nil
	}
	return "", errors.Join(failed...)
}

// heard remembers an answer. A PD with another cluster ID than before is never
// followed.
func (p *PD) heard(res *pdpb.GetMembersResponse) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := res.GetHeader().GetClusterId()
	if p.clusterID != 0 && id != p.clusterID {
		return fmt.Errorf("cluster ID mismatch: PD says %d, was %d: %w", id, p.clusterID, ErrPermanent)
	}
	p.clusterID = id
	p.leader = hostPort(res.GetLeader().GetClientUrls()[0])
	p.members = p.members[:0]
	for _, m := range res.GetMembers() {
		for _, u := range m.GetClientUrls() {
			p.members = append(p.members, hostPort(u))
		}
	}
	return nil
}

// Leader returns a client of the leader. It asks again who leads after Forget.
func (p *PD) Leader(ctx context.Context) (pdpb.PDClient, error) {
	p.mu.Lock()
	addr := p.leader
	p.mu.Unlock()
	if addr == "" {
		var err error
		if addr, err = p.find(ctx); err != nil {
			return nil, err
		}
	}
	c, err := p.dial(addr)
	if err != nil {
		return nil, err
	}
	return pdpb.NewPDClient(c), nil
}

// Forget makes the next call look for the leader again.
func (p *PD) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leader = ""
}

// Do makes one call to the leader with a deadline. The leader is looked for
// again after a failure.
func (p *PD) Do(ctx context.Context, what string, call func(ctx context.Context, pd pdpb.PDClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	leader, err := p.Leader(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := call(ctx, leader); err != nil {
		p.Forget()
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Retry makes the call until it succeeds, fails for good (ErrPermanent) or ctx
// ends. It logs the first failure and then one in fifty.
func (p *PD) Retry(ctx context.Context, what string, call func(ctx context.Context, pd pdpb.PDClient) error) error {
	for try := 0; ; try++ {
		err := p.Do(ctx, what, call)
		if err == nil || errors.Is(err, ErrPermanent) {
			return err
		}
		if try%50 == 0 {
			p.log.Warn("waiting for PD", "doing", what, "error", err)
		}
		if wait := WaitFor(ctx, retryDelay); wait != nil {
			return fmt.Errorf("%w (last: %w)", wait, err)
		}
	}
}

// HeaderError is the error in an answer's header, or nil.
func HeaderError(h *pdpb.ResponseHeader) error {
	e := h.GetError()
	if e == nil || e.GetType() == pdpb.ErrorType_OK {
		return nil
	}
	return fmt.Errorf("PD answers %s: %s", e.GetType(), e.GetMessage())
}

// Get reads a JSON answer of PD's HTTP API from the first endpoint that gives
// one.
func (p *PD) Get(ctx context.Context, path string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var failed []error
	for _, addr := range p.Endpoints() {
		err := p.get(ctx, URL(p.over, addr, path), into)
		if err == nil {
			return nil
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (p *PD) get(ctx context.Context, url string, into any) (err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	res, err := Do(p.over, req)
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	defer func() { err = errors.Join(err, res.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(res.Body, 64<<20))
	if err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("get %s: %s: %s", url, res.Status, strings.TrimSpace(string(body)))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("get %s: %w", url, err)
	}
	return nil
}
