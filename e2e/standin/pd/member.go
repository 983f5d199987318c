package pd

import (
	"context"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

var _ model.Members = (*Server)(nil)

// pingTimeout is how long a member may take to say that it is there.
const pingTimeout = time.Second

// ClusterID implements model.Members.
func (s *Server) ClusterID() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.clusterID
}

// Self implements model.Members.
func (s *Server) Self() model.Member {
	m, _ := s.member(uint64(s.etcd.Server.MemberID()))
	m.ID, m.Name = uint64(s.etcd.Server.MemberID()), s.cfg.Name
	m.ClientURLs = strings.Split(s.cfg.AdvertiseClientURLs, ",")
	m.PeerURLs = strings.Split(s.cfg.AdvertisePeerURLs, ",")
	return m
}

// IsLeader implements model.Members.
func (s *Server) IsLeader() bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.term != nil
}

// Leader implements model.Members.
func (s *Server) Leader() (model.Member, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.known == nil {
		return model.Member{}, false
	}
	return *s.known, true
}

// RaftLeader implements model.Members.
func (s *Server) RaftLeader() (model.Member, bool) {
	return s.member(uint64(s.etcd.Server.Leader()))
}

func (s *Server) member(id uint64) (model.Member, bool) {
	for _, m := range s.members() {
		if m.ID == id {
			return m, true
		}
	}
	return model.Member{}, false
}

// List implements model.Members with what this member knows, quorum or not.
func (s *Server) List(context.Context) ([]model.Member, error) {
	return s.members(), nil
}

func (s *Server) members() []model.Member {
	priorities := s.priorities()
	raft := s.etcd.Server.Cluster().Members()
	out := make([]model.Member, 0, len(raft))
	for _, m := range raft {
		id := uint64(m.ID)
		out = append(out, model.Member{
			Name: m.Name, ID: id, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, LeaderPriority: priorities[id],
		})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// priorities are read from this member's own data. A member that can't read
// them any more has none to tell.
func (s *Server) priorities() map[uint64]int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	prefix := s.key("member/")
	res, err := s.client.Get(ctx, prefix, clientv3.WithPrefix(), clientv3.WithSerializable())
	if err != nil {
		return nil
	}
	out := map[uint64]int{}
	for _, kv := range res.Kvs {
		id, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(string(kv.Key), prefix), "/leader_priority"), 10, 64)
		if err != nil {
			continue
		}
		if n, err := strconv.Atoi(string(kv.Value)); err == nil {
			out[id] = n
		}
	}
	return out
}

// Healthy implements model.Members: it asks every member whether it is there,
// and says nothing about quorum.
func (s *Server) Healthy(ctx context.Context, members []model.Member) map[uint64]bool {
	var mu sync.Mutex
	var all sync.WaitGroup
	out := map[uint64]bool{}
	for _, m := range members {
		all.Go(func() {
			ok := m.ID == uint64(s.etcd.Server.MemberID()) || s.ping(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			out[m.ID] = ok
		})
	}
	all.Wait()
	return out
}

func (s *Server) ping(ctx context.Context, m model.Member) bool {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	for _, u := range m.ClientURLs {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u+"/pd/api/v1/ping", nil)
		if err != nil {
			continue
		}
		res, err := s.http.Do(req)
		if err != nil {
			continue
		}
		// Nothing is read from it.
		_ = res.Body.Close()
		if res.StatusCode == http.StatusOK {
			return true
		}
	}
	return false
}

// Transfer implements model.Members by moving etcd's leader; PD's follows.
func (s *Server) Transfer(ctx context.Context, name string) error {
	self := uint64(s.etcd.Server.MemberID())
	for _, m := range s.members() {
		if m.Name == name && name != "" || name == "" && m.ID != self && s.ping(ctx, m) {
			ctx, cancel := context.WithTimeout(ctx, requestTimeout)
			defer cancel()
			if err := s.etcd.Server.MoveLeader(ctx, uint64(s.etcd.Server.Leader()), m.ID); err != nil {
				return &model.Error{Code: "PD:etcd:ErrEtcdMoveLeader", Text: err.Error(), Status: http.StatusInternalServerError}
			}
			return nil
		}
	}
	return &model.Error{Text: "no valid pd to transfer etcd leader", Status: http.StatusInternalServerError}
}

// Remove implements model.Members; etcd decides whether it may be.
func (s *Server) Remove(ctx context.Context, id uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := s.client.Delete(ctx, s.priorityKey(id)); err != nil {
		return err
	}
	_, err := s.client.MemberRemove(ctx, id)
	return err
}

// SetPriority implements model.Members.
func (s *Server) SetPriority(ctx context.Context, id uint64, priority int) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err := s.client.Put(ctx, s.priorityKey(id), strconv.Itoa(priority))
	return err
}

func (s *Server) priorityKey(id uint64) string {
	return s.key("member/" + strconv.FormatUint(id, 10) + "/leader_priority")
}
