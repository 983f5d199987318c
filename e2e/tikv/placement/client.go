// Package placement talks with PD, whichever of its members leads.
package placement

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

const (
	// callTimeout bounds one call, retryDelay is the pause before the next try.
	callTimeout = 3 * time.Second
	retryDelay  = 100 * time.Millisecond
	// keepaliveTime is how long a connection is idle before it is tried, which PD's etcd
	// allows every 5 s; keepaliveTimeout is when it counts as lost.
	keepaliveTime    = 10 * time.Second
	keepaliveTimeout = 3 * time.Second
)

// ErrPermanent marks what no other try would change.
var ErrPermanent = errors.New("permanent")

// Client finds PD's leader and calls it.
type Client struct {
	log       *slog.Logger
	endpoints []string // as given
	over      *tls.Config

	mu        sync.Mutex
	conns     map[string]*grpc.ClientConn
	members   []string
	leader    string
	clusterID uint64

	beats chan *pdpb.RegionHeartbeatRequest
}

// beatLimit is how many heartbeats may wait for PD. What does not fit is dropped:
// each region has another one in a while.
const beatLimit = 4096

// New makes a client of PD's endpoints, with or without http://, which are connected to over
// TLS if there is a configuration for it.
func New(endpoints []string, over *tls.Config, log *slog.Logger) *Client {
	c := &Client{log: log, over: over, conns: map[string]*grpc.ClientConn{}, beats: make(chan *pdpb.RegionHeartbeatRequest, beatLimit)}
	for _, e := range endpoints {
		c.endpoints = append(c.endpoints, hostPort(e))
	}
	return c
}

func hostPort(url string) string {
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(url, "http://"), "https://"), "/")
}

// Close closes all connections.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		_ = conn.Close() // gone all the same
	}
	c.conns = map[string]*grpc.ClientConn{}
}

// Dial opens a connection to a PD or a store. The name is looked up at each try,
// so that a pod's new address is found, and tries are frequent. Without a configuration it is
// in the clear.
func Dial(addr string, over *tls.Config) (*grpc.ClientConn, error) {
	secured := insecure.NewCredentials()
	if over != nil {
		secured = credentials.NewTLS(over)
	}
	fast := backoff.Config{BaseDelay: retryDelay, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(secured),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: fast, MinConnectTimeout: callTimeout}),
		// Nothing closes the connections of a node that has lost its power.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		return nil, fmt.Errorf("dial %s: %w", addr, err)
	}
	return conn, nil
}

func (c *Client) dial(addr string) (*grpc.ClientConn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn, ok := c.conns[addr]; ok {
		return conn, nil
	}
	conn, err := Dial(addr, c.over)
	if err == nil {
		c.conns[addr] = conn
	}
	return conn, err
}

// ClusterID is PD's cluster, 0 before the first answer.
func (c *Client) ClusterID() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.clusterID
}

func (c *Client) header() *pdpb.RequestHeader { return &pdpb.RequestHeader{ClusterId: c.ClusterID()} }

func (c *Client) find(ctx context.Context) (string, error) {
	c.mu.Lock()
	all := slices.Concat(c.members, c.endpoints)
	c.mu.Unlock()
	var failed []error
	for _, addr := range all {
		conn, err := c.dial(addr)
		if err != nil {
			return "", err
		}
		one, cancel := context.WithTimeout(ctx, callTimeout/time.Duration(2))
		res, err := pdpb.NewPDClient(conn).GetMembers(one, &pdpb.GetMembersRequest{Header: &pdpb.RequestHeader{}})
		cancel()
		if err == nil {
			err = headerError(res.GetHeader())
		}
		if err == nil && len(res.GetLeader().GetClientUrls()) == 0 {
			err = errors.New("there is no leader")
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("ask PD %s for its members: %w", addr, err))
			continue
		}
		return c.heard(res)
	}
	return "", errors.Join(failed...)
}

func (c *Client) heard(res *pdpb.GetMembersResponse) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := res.GetHeader().GetClusterId()
	if c.clusterID != 0 && id != c.clusterID {
		return "", fmt.Errorf("cluster ID mismatch: PD says %d, was %d: %w", id, c.clusterID, ErrPermanent)
	}
	c.clusterID, c.leader = id, hostPort(res.Leader.ClientUrls[0])
	c.members = nil
	for _, m := range res.GetMembers() {
		for _, u := range m.GetClientUrls() {
			c.members = append(c.members, hostPort(u))
		}
	}
	return c.leader, nil
}

func (c *Client) connect(ctx context.Context) (pdpb.PDClient, error) {
	c.mu.Lock()
	addr := c.leader
	c.mu.Unlock()
	if addr == "" {
		var err error
		if addr, err = c.find(ctx); err != nil {
			return nil, err
		}
	}
	conn, err := c.dial(addr)
	if err != nil {
		return nil, err
	}
	return pdpb.NewPDClient(conn), nil
}

func (c *Client) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leader = ""
}

func (c *Client) do(ctx context.Context, what string, call func(ctx context.Context, pd pdpb.PDClient) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pd, err := c.connect(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := call(ctx, pd); err != nil {
		c.forget()
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// retry calls until it succeeds, fails for good, or ctx ends.
func (c *Client) retry(ctx context.Context, what string, call func(ctx context.Context, pd pdpb.PDClient) error) error {
	for try := 0; ; try++ {
		err := c.do(ctx, what, call)
		if err == nil || errors.Is(err, ErrPermanent) {
			return err
		}
		if try%50 == 0 {
			c.log.Warn("waiting for PD", "doing", what, "error", err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w (last: %w)", ctx.Err(), err)
		case <-time.After(retryDelay):
		}
	}
}

func headerError(h *pdpb.ResponseHeader) error {
	e := h.GetError()
	if e == nil || e.GetType() == pdpb.ErrorType_OK {
		return nil
	}
	return fmt.Errorf("PD answers %s: %s", e.GetType(), e.GetMessage())
}

// Connect waits for PD to have a leader and returns the cluster's ID.
func (c *Client) Connect(ctx context.Context) (uint64, error) {
	err := c.retry(ctx, "look for the cluster", func(context.Context, pdpb.PDClient) error { return nil })
	return c.ClusterID(), err
}

// AllocID gets a new ID.
func (c *Client) AllocID(ctx context.Context) (id uint64, err error) {
	err = c.retry(ctx, "allocate an ID", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.AllocID(ctx, &pdpb.AllocIDRequest{Header: c.header()})
		if err != nil {
			return err
		}
		id = res.GetId()
		return headerError(res.GetHeader())
	})
	return id, err
}

// Bootstrapped says whether the cluster has its first region.
func (c *Client) Bootstrapped(ctx context.Context) (yes bool, err error) {
	err = c.retry(ctx, "ask whether the cluster is bootstrapped", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.IsBootstrapped(ctx, &pdpb.IsBootstrappedRequest{Header: c.header()})
		if err != nil {
			return err
		}
		yes = res.GetBootstrapped()
		return headerError(res.GetHeader())
	})
	return yes, err
}

// Bootstrap offers the cluster its first region; false when it has one already.
func (c *Client) Bootstrap(ctx context.Context, store *metapb.Store, region *metapb.Region) (mine bool, err error) {
	err = c.retry(ctx, "bootstrap the cluster", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.Bootstrap(ctx, &pdpb.BootstrapRequest{Header: c.header(), Store: store, Region: region})
		if err != nil {
			return err
		}
		if res.GetHeader().GetError().GetType() == pdpb.ErrorType_ALREADY_BOOTSTRAPPED {
			return nil
		}
		mine = true
		return headerError(res.GetHeader())
	})
	return mine, err
}

// LiftLimit lets PD give the store, and take from it, as many peers as it likes. PD
// allows 15 a minute, which protects the disks of a real TiKV. The regions of this one
// hold next to nothing, and TiDB makes some seventy before PD has replicated any.
func (c *Client) LiftLimit(ctx context.Context, id uint64) error {
	return c.retry(ctx, "lift the store's limit", func(ctx context.Context, _ pdpb.PDClient) error {
		c.mu.Lock()
		leader := c.leader
		c.mu.Unlock()
		scheme := "http"
		if c.over != nil {
			scheme = "https"
		}
		url := fmt.Sprintf("%s://%s/pd/api/v1/store/%d/limit", scheme, leader, id)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(`{"rate": 2000}`))
		if err != nil {
			return err
		}
		transport := &http.Transport{TLSClientConfig: c.over, DisableKeepAlives: true}
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }() // nothing of it is read
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("PD answers %s", res.Status)
		}
		return nil
	})
}

// PutStore registers the store. A tombstone is refused for good.
func (c *Client) PutStore(ctx context.Context, store *metapb.Store) error {
	return c.retry(ctx, "register the store", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.PutStore(ctx, &pdpb.PutStoreRequest{Header: c.header(), Store: store})
		if err != nil {
			return err
		}
		err = headerError(res.GetHeader())
		if t := res.GetHeader().GetError().GetType(); t == pdpb.ErrorType_STORE_TOMBSTONE || t == pdpb.ErrorType_INVALID_VALUE || t == pdpb.ErrorType_DUPLICATED_ENTRY {
			return fmt.Errorf("%w: %w", err, ErrPermanent)
		}
		return err
	})
}

// Store finds a store's address.
func (c *Client) Store(ctx context.Context, id uint64) (store *metapb.Store, err error) {
	err = c.do(ctx, "look for a store", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.GetStore(ctx, &pdpb.GetStoreRequest{Header: c.header(), StoreId: id})
		if err != nil {
			return err
		}
		store = res.GetStore()
		return headerError(res.GetHeader())
	})
	return store, err
}

// StoreHeartbeat tells PD how the store is. ErrPermanent when PD wants it no more.
func (c *Client) StoreHeartbeat(ctx context.Context, stats *pdpb.StoreStats) error {
	return c.do(ctx, "send the store's heartbeat", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.StoreHeartbeat(ctx, &pdpb.StoreHeartbeatRequest{Header: c.header(), Stats: stats})
		if err != nil {
			return err
		}
		err = headerError(res.GetHeader())
		if res.GetHeader().GetError().GetType() == pdpb.ErrorType_STORE_TOMBSTONE {
			return fmt.Errorf("%w: %w", err, ErrPermanent)
		}
		return err
	})
}

// RegionByID is nil for a region that PD doesn't know.
func (c *Client) RegionByID(ctx context.Context, id uint64) (region *metapb.Region, err error) {
	err = c.do(ctx, "look for a region", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.GetRegionByID(ctx, &pdpb.GetRegionByIDRequest{Header: c.header(), RegionId: id})
		if err != nil {
			return err
		}
		region = res.GetRegion()
		return headerError(res.GetHeader())
	})
	return region, err
}

// KnownRegion is RegionByID that waits for PD to answer.
func (c *Client) KnownRegion(ctx context.Context, id uint64) (region *metapb.Region, err error) {
	err = c.retry(ctx, "look for the first region", func(context.Context, pdpb.PDClient) (err error) {
		region, err = c.RegionByID(ctx, id)
		return err
	})
	return region, err
}

// splitTimeout is how long PD may take to know a region that asks to be split.
const splitTimeout = 5 * time.Second

// AskBatchSplit gets the IDs that a split needs.
func (c *Client) AskBatchSplit(ctx context.Context, region *metapb.Region, count int) (ids []*pdpb.SplitID, err error) {
	ctx, cancel := context.WithTimeout(ctx, splitTimeout)
	defer cancel()
	err = c.retry(ctx, "ask for a split", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.AskBatchSplit(ctx, &pdpb.AskBatchSplitRequest{Header: c.header(), Region: region, SplitCount: uint32(count)})
		if err != nil {
			return err
		}
		ids = res.GetIds()
		return headerError(res.GetHeader())
	})
	return ids, err
}

// ReportBatchSplit tells PD the parts of a region that was split.
func (c *Client) ReportBatchSplit(ctx context.Context, regions []*metapb.Region) error {
	return c.do(ctx, "report a split", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.ReportBatchSplit(ctx, &pdpb.ReportBatchSplitRequest{Header: c.header(), Regions: regions})
		if err != nil {
			return err
		}
		return headerError(res.GetHeader())
	})
}

// SafePoint is the timestamp below which no client reads any more.
func (c *Client) SafePoint(ctx context.Context) (ts uint64, err error) {
	err = c.do(ctx, "ask for the safe point", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.GetGCSafePoint(ctx, &pdpb.GetGCSafePointRequest{Header: c.header()})
		if err != nil {
			return err
		}
		ts = res.GetSafePoint()
		return headerError(res.GetHeader())
	})
	return ts, err
}

// Heartbeat hands over a region's heartbeat and does not wait.
func (c *Client) Heartbeat(beat *pdpb.RegionHeartbeatRequest) {
	select {
	case c.beats <- beat:
	default:
	}
}

// Beat sends regions' heartbeats to PD's leader and gives its orders to obey, until
// ctx ends. renew is called for each new stream: the new leader knows nothing of
// what the old one was told last.
func (c *Client) Beat(ctx context.Context, renew func(), obey func(*pdpb.RegionHeartbeatResponse)) error {
	for ctx.Err() == nil {
		err := c.beat(ctx, renew, obey)
		if ctx.Err() != nil {
			break
		}
		c.log.Info("the stream of region heartbeats ended", "error", err)
		c.forget()
		select {
		case <-ctx.Done():
		case <-time.After(retryDelay):
		}
	}
	return nil
}

func (c *Client) beat(ctx context.Context, renew func(), obey func(*pdpb.RegionHeartbeatResponse)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	connect, done := context.WithTimeout(ctx, callTimeout)
	defer done()
	pd, err := c.connect(connect)
	if err != nil {
		return err
	}
	stream, err := pd.RegionHeartbeat(ctx)
	if err != nil {
		return err
	}
	renew()
	received := make(chan error, 1)
	go func() {
		for {
			order, err := stream.Recv()
			if err == nil {
				err = headerError(order.GetHeader())
			}
			if err != nil {
				received <- err
				return
			}
			obey(order)
		}
	}()
	for {
		select {
		case err := <-received:
			return err
		case <-ctx.Done():
			return ctx.Err()
		case beat := <-c.beats:
			beat.Header = c.header()
			if err := stream.Send(beat); err != nil {
				return <-received
			}
		}
	}
}
