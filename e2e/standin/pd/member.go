package pd

import (
	"context"
	"maps"
	"net/http"
	"sort"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

var _ model.Members = (*Server)(nil)

// pingTimeout is how long a member may take to say that it is there.
const pingTimeout = 3 * time.Second

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

// IsLoaded implements model.Members: what there is to load is small.
func (s *Server) IsLoaded() bool { return true }

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

// priorities are those that watchPriorities has heard of.
func (s *Server) priorities() map[uint64]int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return maps.Clone(s.priority)
}

// watchPriorities keeps the leader priorities of all members at hand, so that
// the members can be listed without a quorum and by a member that was removed.
func (s *Server) watchPriorities(ctx context.Context) {
	prefix := s.key("member/")
	for ctx.Err() == nil {
		from, err := s.readPriorities(ctx, prefix)
		if err != nil {
			// The request has waited for a quorum already; a stopped server never has one again.
			select {
			case <-s.etcd.Server.StopNotify():
				return
			default:
				continue
			}
		}
		for res := range s.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(from+1)) {
			for _, ev := range res.Events {
				s.setPriority(prefix, string(ev.Kv.Key), string(ev.Kv.Value))
			}
		}
		select {
		case <-s.etcd.Server.StopNotify():
			return
		default:
		}
	}
}

func (s *Server) readPriorities(ctx context.Context, prefix string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := s.client.Get(ctx, prefix, clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	for _, kv := range res.Kvs {
		s.setPriority(prefix, string(kv.Key), string(kv.Value))
	}
	return res.Header.Revision, nil
}

// setPriority takes over one key; a deleted one has no value.
func (s *Server) setPriority(prefix, key, value string) {
	id, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(key, prefix), "/leader_priority"), 10, 64)
	if err != nil {
		return
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		n = 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.priority[id] = n
}

// Healthy implements model.Members: as the real one it asks one member after the other whether it
// is there, and says nothing about quorum.
func (s *Server) Healthy(ctx context.Context, members []model.Member) map[uint64]bool {
	out := map[uint64]bool{}
	for _, m := range members {
		out[m.ID] = m.ID == uint64(s.etcd.Server.MemberID()) || s.answersPing(ctx, m)
	}
	return out
}

func (s *Server) answersPing(ctx context.Context, m model.Member) bool {
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
		if m.Name == name && name != "" || name == "" && m.ID != self && s.answersPing(ctx, m) {
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
	_, listed := s.member(id)
	_, err := s.client.MemberRemove(ctx, id)
	if _, still := s.member(id); err != nil && listed && !still {
		// A leader that removes itself may stop before it has its own answer.
		return nil
	}
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
