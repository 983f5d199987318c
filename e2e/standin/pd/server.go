package pd

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/pdpb"
	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"google.golang.org/grpc"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/pdapi"
)

// clusterIDKey holds the id that is born once, where the real PD keeps it too.
const clusterIDKey = "/pd/cluster_id"

// requestTimeout bounds every request to the etcd inside.
const requestTimeout = 3 * time.Second

// Server is one running PD member.
type Server struct {
	cfg     Config
	log     *slog.Logger
	etcd    *embed.Etcd
	client  *clientv3.Client
	http    *http.Client
	peers   []url.URL
	relay   *relay
	started time.Time
	cancel  context.CancelFunc
	done    sync.WaitGroup

	mu        sync.RWMutex
	clusterID uint64
	known     *model.Member // the leader that this member last heard of
	term      *term         // non-nil while this member leads
	ready     bool
	priority  map[uint64]int // of leaders, by member
}

// Start starts a member and returns once it answers, or when ctx is done.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	log, etcdLog, err := openLog(cfg)
	if err != nil {
		return nil, err
	}
	if err := cfg.Complete(); err != nil {
		return nil, err
	}
	tlsConfig, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	if err := cfg.prepareJoin(ctx, tlsConfig, etcdLog); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, log: log, started: time.Now(), priority: map[uint64]int{},
		http: &http.Client{Transport: &http.Transport{TLSClientConfig: tlsConfig, DisableKeepAlives: true}},
	}
	ecfg, err := s.etcdConfig()
	if err != nil {
		return nil, err
	}
	ecfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(etcdLog)
	if s.etcd, err = embed.StartEtcd(ecfg); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	runCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.client = v3client.New(s.etcd.Server)
	if s.relay, err = startRelay(ctx, s.peers, s.etcd.Peers[0].Addr()); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.waitReady(ctx); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.initCluster(ctx); err != nil {
		s.Close()
		return nil, err
	}
	s.done.Go(func() { s.watchPriorities(runCtx) })
	s.done.Go(func() { s.leaderLoop(runCtx) })
	s.log.Info("ready", "cluster", s.ClusterID(), "member-id", uint64(s.etcd.Server.MemberID()))
	return s, nil
}

func (s *Server) waitReady(ctx context.Context) error {
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case err := <-s.etcd.Err():
		return fmt.Errorf("start etcd: %w", err)
	case <-s.etcd.Server.StopNotify():
		return errors.New("start etcd: the server stopped, which it does when the member has been removed")
	case <-ctx.Done():
		return fmt.Errorf("start etcd: %w", ctx.Err())
	}
}

// Close gives leadership away and stops the member.
func (s *Server) Close() {
	s.cancel()
	s.done.Wait()
	// A client in process has nothing to close but its watches.
	_ = s.client.Close()
	select {
	case <-s.etcd.Server.ReadyNotify():
	default:
		// It waits for a majority, and etcd's Close would wait with it.
		s.etcd.Server.HardStop()
	}
	s.etcd.Close()
	if s.relay != nil {
		s.relay.close()
	}
	s.log.Info("stopped")
}

// Stopped is closed when the etcd inside has stopped for good, which is what
// happens to a member that was removed. It goes on answering HTTP, as PD does.
func (s *Server) Stopped() <-chan struct{} { return s.etcd.Server.StopNotify() }

// Err reports what the listeners died of.
func (s *Server) Err() <-chan error { return s.etcd.Err() }

// Cluster is what the leader knows; nil on any other member.
func (s *Server) Cluster() *model.Cluster {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.term == nil {
		return nil
	}
	return s.term.cluster
}

func (c *Config) tls() (*tls.Config, error) {
	if c.Cert == "" {
		return nil, nil
	}
	info := transport.TLSInfo{CertFile: c.Cert, KeyFile: c.Key, TrustedCAFile: c.CACert}
	cfg, err := info.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("load TLS: %w", err)
	}
	return cfg, nil
}

func (s *Server) etcdConfig() (*embed.Config, error) {
	c := s.cfg
	e := embed.NewConfig()
	e.Name, e.Dir = c.Name, c.DataDir
	e.InitialCluster, e.ClusterState, e.InitialClusterToken = c.InitialCluster, c.InitialClusterState, c.InitialClusterToken
	e.ForceNewCluster = c.ForceNewCluster
	e.TickMs, e.ElectionMs = uint(c.TickInterval.Milliseconds()), uint(c.ElectionInterval.Milliseconds())
	e.AutoCompactionMode, e.AutoCompactionRetention = embed.CompactorModeRevision, "1000"
	e.UnsafeNoFsync = true
	e.StrictReconfigCheck = true
	e.MaxRequestBytes = 64 << 20
	if c.Cert != "" {
		info := transport.TLSInfo{CertFile: c.Cert, KeyFile: c.Key, TrustedCAFile: c.CACert, ClientCertAuth: c.CACert != ""}
		e.ClientTLSInfo, e.PeerTLSInfo = info, info
		// All members come from the relay's address, which no certificate names.
		e.PeerTLSInfo.SkipClientSANVerify = true
	}
	var err error
	for text, into := range map[*string]*[]url.URL{
		&c.ClientURLs:          &e.ListenClientUrls,
		&c.AdvertiseClientURLs: &e.AdvertiseClientUrls, &c.AdvertisePeerURLs: &e.AdvertisePeerUrls,
	} {
		if *into, err = parseURLs(*text); err != nil {
			return nil, err
		}
	}
	if s.peers, err = parseURLs(c.PeerURLs); err != nil {
		return nil, err
	}
	// The members' port is the relay's; see there.
	e.ListenPeerUrls = []url.URL{{Scheme: s.peers[0].Scheme, Host: "127.0.0.1:0"}}
	api := &pdapi.Server{
		Members: s, Cluster: s.Cluster, Build: c.Build, Local: c.local(), Started: s.started, Transport: s.http.Transport,
	}
	handler := api.Handler()
	e.UserHandlers = map[string]http.Handler{"/pd/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.isReady() {
			http.Error(w, "[PD:server:ErrServerNotStarted]server not started", http.StatusInternalServerError)
			return
		}
		handler.ServeHTTP(w, r)
	})}
	e.ServiceRegister = func(g *grpc.Server) {
		pdpb.RegisterPDServer(g, &service{s: s})
	}
	return e, nil
}

func parseURLs(list string) ([]url.URL, error) {
	var out []url.URL
	for _, text := range strings.Split(list, ",") {
		u, err := url.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("parse URL: %w", err)
		}
		out = append(out, *u)
	}
	return out, nil
}

// initCluster finds the cluster id or lets it be born, once for all members.
func (s *Server) initCluster(ctx context.Context) error {
	fresh, err := newClusterID()
	if err != nil {
		return err
	}
	value := make([]byte, 8)
	binary.BigEndian.PutUint64(value, fresh)
	for {
		tctx, cancel := context.WithTimeout(ctx, requestTimeout)
		res, err := s.client.Txn(tctx).
			If(clientv3.Compare(clientv3.CreateRevision(clusterIDKey), "=", 0)).
			Then(clientv3.OpPut(clusterIDKey, string(value))).
			Else(clientv3.OpGet(clusterIDKey)).
			Commit()
		cancel()
		if err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("find cluster id: %w", errors.Join(err, ctx.Err()))
			}
			select {
			case <-s.etcd.Server.StopNotify():
				return fmt.Errorf("find cluster id: %w", err)
			default:
			}
			// Without a quorum there is none yet; the timeout above paces this.
			continue
		}
		id := fresh
		if !res.Succeeded {
			id = binary.BigEndian.Uint64(res.Responses[0].GetResponseRange().Kvs[0].Value)
		}
		s.mu.Lock()
		s.clusterID = id
		s.mu.Unlock()
		// A member that joins knows the leader from the first answer on.
		_, _ = s.followLeader(ctx) // its loop reads it again
		s.mu.Lock()
		s.ready = true
		s.mu.Unlock()
		return nil
	}
}

// newClusterID puts the time in the upper half, so that ids of different
// clusters differ even when chance fails.
func newClusterID() (uint64, error) {
	low := make([]byte, 4)
	if _, err := rand.Read(low); err != nil {
		return 0, fmt.Errorf("draw cluster id: %w", err)
	}
	return uint64(time.Now().Unix())<<32 + uint64(binary.BigEndian.Uint32(low)), nil
}

func (s *Server) isReady() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.ready
}
