package tidb

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdetcd"
)

// Keys in PD's etcd, as TiDB names them.
const (
	infoPrefix     = "/tidb/server/info/"
	topologyPrefix = "/topology/tidb/"
	stateKey       = "/tidb/server/global_state"
	leaseSeconds   = 45
)

// serverInfo is one server as /info and /info/all show it, and as its key in
// etcd holds it.
type serverInfo struct {
	Version        string            `json:"version"`
	GitHash        string            `json:"git_hash"`
	ID             string            `json:"ddl_id"`
	IP             string            `json:"ip"`
	Port           int               `json:"listening_port"`
	StatusPort     int               `json:"status_port"`
	Lease          string            `json:"lease"`
	StartTimestamp int64             `json:"start_timestamp"`
	ServerID       uint64            `json:"server_id"`
	Labels         map[string]string `json:"labels"`
}

// topologyInfo is the server as the dashboard reads it.
type topologyInfo struct {
	Version        string            `json:"version"`
	GitHash        string            `json:"git_hash"`
	IP             string            `json:"ip"`
	Port           int               `json:"listening_port"`
	StatusPort     int               `json:"status_port"`
	DeployPath     string            `json:"deploy_path"`
	StartTimestamp int64             `json:"start_timestamp"`
	Labels         map[string]string `json:"labels"`
}

// topology is this server's registration in PD's etcd.
type topology struct {
	log  *slog.Logger
	etcd *clientv3.Client

	mu    sync.Mutex
	info  serverInfo
	lease clientv3.LeaseID // 0 while not registered
}

// newTopology connects to PD's etcd, until close.
func newTopology(ctx context.Context, log *slog.Logger, pd *process.PD, c *Config) (*topology, error) {
	etcd, err := pdetcd.Connect(ctx, pd.Endpoints(), pd.Over())
	if err != nil {
		return nil, err
	}
	var id [16]byte
	// crypto/rand's Read ends the process rather than return an error.
	_, _ = rand.Read(id[:])
	return &topology{log: log, etcd: etcd, info: serverInfo{
		Version: c.ServerVersion(), GitHash: gitHash,
		ID: fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:]),
		IP: c.Advertise, Port: c.Port, StatusPort: c.StatusPort, Lease: c.Lease, StartTimestamp: time.Now().Unix(),
		ServerID: uint64(id[0])<<3 | uint64(id[1])>>5 | 1, Labels: maps.Clone(c.Labels),
	}}, nil
}

func (t *topology) close() error { return t.etcd.Close() }

// snapshot returns the server as it is now.
func (t *topology) snapshot() serverInfo {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.info
	s.Labels = maps.Clone(t.info.Labels)
	return s
}

// run keeps the server registered until ctx ends, and takes the keys back then.
func (t *topology) run(ctx context.Context) error {
	for ctx.Err() == nil {
		session, err := concurrency.NewSession(t.etcd, concurrency.WithTTL(leaseSeconds), concurrency.WithContext(ctx))
		if err == nil {
			t.mu.Lock()
			t.lease = session.Lease()
			t.mu.Unlock()
			err = t.publish(ctx)
		}
		if err != nil {
			if ctx.Err() == nil {
				t.log.Warn("not registered in PD's etcd", "error", err)
			}
			if process.WaitFor(ctx, time.Second) != nil {
				return nil
			}
			continue
		}
		<-session.Done()
		if ctx.Err() == nil {
			t.log.Warn("lease in PD's etcd lost")
		} else {
			stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			if _, err := t.etcd.Revoke(stop, session.Lease()); err != nil {
				t.log.Warn("lease in PD's etcd not given back", "error", err)
			}
			cancel()
		}
	}
	return nil
}

// publish writes this server's keys. All but one end with its lease: who looks at
// the topology finds the server there when it has long been gone, as with TiDB.
func (t *topology) publish(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	s := t.snapshot()
	t.mu.Lock()
	lease := clientv3.WithLease(t.lease)
	t.mu.Unlock()
	info, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode server info: %w", err)
	}
	top, err := json.Marshal(topologyInfo{
		Version: s.Version, GitHash: s.GitHash, IP: s.IP, Port: s.Port, StatusPort: s.StatusPort,
		DeployPath: "/", StartTimestamp: s.StartTimestamp, Labels: s.Labels,
	})
	if err != nil {
		return fmt.Errorf("encode topology: %w", err)
	}
	at := topologyPrefix + net.JoinHostPort(s.IP, strconv.Itoa(s.Port))
	_, err = t.etcd.Txn(ctx).Then(
		clientv3.OpPut(infoPrefix+s.ID, string(info), lease),
		clientv3.OpPut(at+"/info", string(top)),
		clientv3.OpPut(at+"/ttl", strconv.FormatInt(time.Now().UnixNano(), 10), lease),
	).Commit()
	if err != nil {
		return fmt.Errorf("register in PD's etcd: %w", err)
	}
	return nil
}

// setLabels adds labels and publishes them.
func (t *topology) setLabels(ctx context.Context, labels map[string]string) error {
	t.mu.Lock()
	if t.info.Labels == nil {
		t.info.Labels = map[string]string{}
	}
	maps.Copy(t.info.Labels, labels)
	t.mu.Unlock()
	return t.publish(ctx)
}

// servers lists all registered servers by ID. The owner, which TiDB elects, is
// the one that has been registered longest.
func (t *topology) servers(ctx context.Context) (all map[string]serverInfo, owner string, err error) {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	res, err := t.etcd.Get(ctx, infoPrefix, clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
	if err != nil {
		return nil, "", fmt.Errorf("list servers in PD's etcd: %w", err)
	}
	all = map[string]serverInfo{}
	for _, kv := range res.Kvs {
		var s serverInfo
		if err := json.Unmarshal(kv.Value, &s); err != nil {
			return nil, "", fmt.Errorf("read server %s: %w", kv.Key, err)
		}
		id := strings.TrimPrefix(string(kv.Key), infoPrefix)
		if owner == "" {
			owner = id
		}
		all[id] = s
	}
	return all, owner, nil
}

// errSameState answers a request for the state that the cluster is in.
var errSameState = errors.New("the cluster is in that state already")

// upgrading reads whether the cluster has been told that it is being upgraded.
func (t *topology) upgrading(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	res, err := t.etcd.Get(ctx, stateKey)
	if err != nil {
		return false, fmt.Errorf("read the cluster's state: %w", err)
	}
	return len(res.Kvs) > 0 && strings.Contains(string(res.Kvs[0].Value), "upgrading"), nil
}

// setUpgrading tells the cluster that it is being upgraded, or no longer is.
func (t *topology) setUpgrading(ctx context.Context, on bool) error {
	is, err := t.upgrading(ctx)
	if err != nil {
		return err
	}
	if is == on {
		return errSameState
	}
	state := `{"state":""}`
	if on {
		state = `{"state":"upgrading"}`
	}
	ctx, cancel := context.WithTimeout(ctx, pdetcd.Timeout)
	defer cancel()
	if _, err := t.etcd.Put(ctx, stateKey, state); err != nil {
		return fmt.Errorf("write the cluster's state: %w", err)
	}
	return nil
}
