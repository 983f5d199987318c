package pdserver

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/stretchr/testify/require"
	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

// PD is a running PD of one member, and its state.
type PD struct {
	pdpb.UnimplementedPDServer

	// Addr is host:port of everything.
	Addr string
	// Beats gets the ID of every store that sent a heartbeat, Regions every
	// region heartbeat; Orders are sent to the sender of the last one.
	Beats   chan uint64
	Regions chan *pdpb.RegionHeartbeatRequest
	Orders  chan *pdpb.RegionHeartbeatResponse

	mu        sync.Mutex
	clusterID uint64
	last      uint64
	stores    map[uint64]*metapb.Store
	boot      bool
	rules     bool
	down      bool
	refused   map[uint64]pdpb.ErrorType
}

// Start runs a PD until the test ends.
func Start(t *testing.T) *PD {
	t.Helper()
	p := &PD{
		Addr: loopback.Address(t), Beats: make(chan uint64, 1024), Regions: make(chan *pdpb.RegionHeartbeatRequest, 1024),
		Orders: make(chan *pdpb.RegionHeartbeatResponse, 16), clusterID: 7000000000000000001,
		stores: map[uint64]*metapb.Store{}, rules: true, refused: map[uint64]pdpb.ErrorType{},
	}
	cfg := embed.NewConfig()
	cfg.Dir = t.TempDir()
	cfg.LogLevel = "panic"
	cfg.TickMs, cfg.ElectionMs = 10, 100
	client, peer := url.URL{Scheme: "http", Host: p.Addr}, url.URL{Scheme: "http", Host: loopback.Address(t)}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	cfg.ServiceRegister = func(s *grpc.Server) { pdpb.RegisterPDServer(s, p) }
	cfg.UserHandlers = map[string]http.Handler{"/pd/": http.HandlerFunc(p.http)}
	e, err := embed.StartEtcd(cfg)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case <-time.After(20 * time.Second):
		require.Fail(t, "etcd did not start")
	}
	return p
}

// StartWithStore runs a PD, and a listener that stands for a TiKV registered there.
func StartWithStore(t *testing.T) *PD {
	t.Helper()
	p := Start(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	p.Put(&metapb.Store{Id: 1, Address: l.Addr().String()})
	return p
}

// SetClusterID makes it another cluster.
func (p *PD) SetClusterID(id uint64) { p.locked(func() { p.clusterID = id }) }

// SetRules turns placement rules on or off.
func (p *PD) SetRules(on bool) { p.locked(func() { p.rules = on }) }

// SetDown makes every call fail, as without quorum.
func (p *PD) SetDown(down bool) { p.locked(func() { p.down = down }) }

// Refuse answers the store's requests with an error from now on.
func (p *PD) Refuse(store uint64, why pdpb.ErrorType) { p.locked(func() { p.refused[store] = why }) }

// Put registers a store that is not there, and marks the cluster bootstrapped.
func (p *PD) Put(s *metapb.Store) {
	p.locked(func() { p.stores[s.GetId()] = s; p.boot = true; p.last = max(p.last, s.GetId()) })
}

// Store returns a registered store, or nil.
func (p *PD) Store(id uint64) *metapb.Store {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stores[id]
}

// Count is the number of registered stores.
func (p *PD) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.stores)
}

func (p *PD) locked(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// header checks the request's cluster and makes the answer's header.
func (p *PD) header(r *pdpb.RequestHeader) (*pdpb.ResponseHeader, error) {
	if p.down {
		return nil, status.Error(codes.Unavailable, "no leader")
	}
	if id := r.GetClusterId(); id != p.clusterID {
		return nil, status.Errorf(codes.FailedPrecondition, "mismatch cluster id, need %d but got %d", p.clusterID, id)
	}
	return &pdpb.ResponseHeader{ClusterId: p.clusterID}, nil
}

func setError(h *pdpb.ResponseHeader, why pdpb.ErrorType) *pdpb.ResponseHeader {
	h.Error = &pdpb.Error{Type: why, Message: why.String()}
	return h
}

// GetMembers implements pdpb.PDServer.
func (p *PD) GetMembers(context.Context, *pdpb.GetMembersRequest) (*pdpb.GetMembersResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return nil, status.Error(codes.Unavailable, "no leader")
	}
	self := &pdpb.Member{Name: "pd", MemberId: 1, ClientUrls: []string{"http://" + p.Addr}}
	return &pdpb.GetMembersResponse{
		Header: &pdpb.ResponseHeader{ClusterId: p.clusterID}, Members: []*pdpb.Member{self}, Leader: self, EtcdLeader: self,
	}, nil
}

// AllocID implements pdpb.PDServer.
func (p *PD) AllocID(_ context.Context, r *pdpb.AllocIDRequest) (*pdpb.AllocIDResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.header(r.GetHeader())
	p.last++
	return &pdpb.AllocIDResponse{Header: h, Id: p.last}, err
}

// IsBootstrapped implements pdpb.PDServer.
func (p *PD) IsBootstrapped(_ context.Context, r *pdpb.IsBootstrappedRequest) (*pdpb.IsBootstrappedResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.header(r.GetHeader())
	return &pdpb.IsBootstrappedResponse{Header: h, Bootstrapped: p.boot}, err
}

// Bootstrap implements pdpb.PDServer.
func (p *PD) Bootstrap(_ context.Context, r *pdpb.BootstrapRequest) (*pdpb.BootstrapResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.header(r.GetHeader())
	if err == nil && p.boot {
		setError(h, pdpb.ErrorType_ALREADY_BOOTSTRAPPED)
	}
	p.boot = true
	return &pdpb.BootstrapResponse{Header: h}, err
}

// PutStore implements pdpb.PDServer.
func (p *PD) PutStore(_ context.Context, r *pdpb.PutStoreRequest) (*pdpb.PutStoreResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.header(r.GetHeader())
	if err != nil {
		return nil, err
	}
	if why := p.refused[r.GetStore().GetId()]; why != pdpb.ErrorType_OK {
		return &pdpb.PutStoreResponse{Header: setError(h, why)}, nil
	}
	p.stores[r.GetStore().GetId()] = r.GetStore()
	return &pdpb.PutStoreResponse{Header: h}, nil
}

// GetStore implements pdpb.PDServer.
func (p *PD) GetStore(_ context.Context, r *pdpb.GetStoreRequest) (*pdpb.GetStoreResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.header(r.GetHeader())
	return &pdpb.GetStoreResponse{Header: h, Store: p.stores[r.GetStoreId()]}, err
}

// GetAllStores implements pdpb.PDServer.
func (p *PD) GetAllStores(_ context.Context, r *pdpb.GetAllStoresRequest) (*pdpb.GetAllStoresResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.header(r.GetHeader())
	res := &pdpb.GetAllStoresResponse{Header: h}
	for _, s := range p.stores {
		res.Stores = append(res.Stores, s)
	}
	return res, err
}

// StoreHeartbeat implements pdpb.PDServer.
func (p *PD) StoreHeartbeat(_ context.Context, r *pdpb.StoreHeartbeatRequest) (*pdpb.StoreHeartbeatResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h, err := p.header(r.GetHeader())
	if err != nil {
		return nil, err
	}
	select {
	case p.Beats <- r.GetStats().GetStoreId():
	default: // the test does not look
	}
	return &pdpb.StoreHeartbeatResponse{Header: h}, nil
}

// RegionHeartbeat implements pdpb.PDServer.
func (p *PD) RegionHeartbeat(s pdpb.PD_RegionHeartbeatServer) error {
	for {
		r, err := s.Recv()
		if err != nil {
			return err
		}
		select {
		case p.Regions <- r:
		default: // the test does not look
		}
		select {
		case order := <-p.Orders:
			order.Header, order.RegionId, order.TargetPeer = &pdpb.ResponseHeader{ClusterId: p.clusterID}, r.GetRegion().GetId(), r.GetLeader()
			if err := s.Send(order); err != nil {
				return err
			}
		default:
		}
	}
}

func (p *PD) http(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	rules, down := p.rules, p.down
	p.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case down:
		w.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/pd/api/v1/config/replicate":
		// A client that went away is no concern of a test.
		_, _ = fmt.Fprintf(w, `{"max-replicas":3,"enable-placement-rules":"%t"}`, rules)
	case strings.HasPrefix(r.URL.Path, "/pd/api/v1/store/"):
		_, _ = fmt.Fprint(w, `{"status":{"leader_count":33,"region_count":104}}`)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}
