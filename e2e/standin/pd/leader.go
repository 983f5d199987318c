package pd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// term is one time of leading.
type term struct {
	cluster *model.Cluster
	tso     *clock
	lease   clientv3.LeaseID
	// created is the revision of the leader key, which guards every write.
	created int64
	lost    chan struct{}
}

// errNotLeader is what a write gets that comes after another member took over.
var errNotLeader = errors.New("not leader")

func (s *Server) key(name string) string {
	return fmt.Sprintf("/pd/%d/%s", s.ClusterID(), name)
}

// leaderLoop campaigns while this member leads etcd, as PD does, and follows
// any other leader.
func (s *Server) leaderLoop(ctx context.Context) {
	watch := s.client.Watch(ctx, s.key("leader"))
	for ctx.Err() == nil {
		raftChanged := s.etcd.Server.LeaderChangedNotify()
		free, _ := s.followLeader(ctx) // what cannot be read now is read again soon
		if free && s.leadsRaft() {
			if err := s.lead(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("leading ended", "err", err)
			}
			continue
		}
		priority := time.NewTimer(s.cfg.PriorityInterval)
		select {
		case <-ctx.Done():
		case <-raftChanged:
		case _, ok := <-watch:
			if !ok && ctx.Err() == nil {
				watch = s.client.Watch(ctx, s.key("leader"))
			}
		case <-priority.C:
			s.claimByPriority(ctx)
		case <-s.etcd.Server.StopNotify():
			// Removed: what it knows stays what it was.
			return
		}
		priority.Stop()
	}
}

func (s *Server) leadsRaft() bool {
	return s.etcd.Server.Leader() == s.etcd.Server.MemberID()
}

// followLeader reads who leads, and remembers it. free says that no member does.
func (s *Server) followLeader(ctx context.Context) (free bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := s.client.Get(ctx, s.key("leader"))
	if err != nil {
		return false, err
	}
	if len(res.Kvs) == 0 {
		return true, nil
	}
	var m model.Member
	if err := json.Unmarshal(res.Kvs[0].Value, &m); err != nil {
		s.log.Error("leader key is unreadable", "err", err)
		return false, err
	}
	if m.ID == uint64(s.etcd.Server.MemberID()) {
		// A key of an earlier life of this process; it must not be waited for.
		if _, err := s.client.Delete(ctx, s.key("leader")); err != nil {
			return false, err
		}
		return true, nil
	}
	s.mu.Lock()
	s.known = &m
	s.mu.Unlock()
	return false, nil
}

// lead takes the leader key, loads the state and leads until something ends it.
func (s *Server) lead(ctx context.Context) error {
	t, err := s.campaign(ctx)
	if err != nil || t == nil {
		return err
	}
	defer s.stepDown(t)
	alive, err := s.client.KeepAlive(ctx, t.lease)
	if err != nil {
		return fmt.Errorf("keep lease alive: %w", err)
	}
	if err := s.load(ctx, t); err != nil {
		return err
	}
	self := s.Self()
	s.mu.Lock()
	s.known, s.term = &self, t
	s.mu.Unlock()
	s.log.Info("leading")
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		raftChanged := s.etcd.Server.LeaderChangedNotify()
		if !s.leadsRaft() {
			return errors.New("another member leads etcd")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-raftChanged:
		case _, ok := <-alive:
			if !ok {
				return errors.New("lease lost")
			}
		case <-t.lost:
			return errNotLeader
		case <-s.etcd.Server.StopNotify():
			return errors.New("removed from the cluster")
		case <-tick.C:
			if err := t.cluster.Tick(); err != nil {
				return err
			}
			if err := t.tso.save(); err != nil {
				return err
			}
		}
	}
}

// campaign returns nil without an error when another member was faster.
func (s *Server) campaign(ctx context.Context) (*term, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease, err := s.client.Grant(ctx, int64(s.cfg.LeaderLease.Seconds()))
	if err != nil {
		return nil, fmt.Errorf("grant lease: %w", err)
	}
	value, err := json.Marshal(s.Self())
	if err != nil {
		return nil, fmt.Errorf("encode leader: %w", err)
	}
	res, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.key("leader")), "=", 0)).
		Then(clientv3.OpPut(s.key("leader"), string(value), clientv3.WithLease(lease.ID))).
		Commit()
	if err != nil {
		return nil, fmt.Errorf("take leader key: %w", err)
	}
	if !res.Succeeded {
		return nil, nil
	}
	return &term{lease: lease.ID, created: res.Header.Revision, lost: make(chan struct{})}, nil
}

// stepDown lets the next one lead at once rather than after the lease.
func (s *Server) stepDown(t *term) {
	s.mu.Lock()
	s.term = nil
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := s.client.Revoke(ctx, t.lease); err != nil {
		s.log.Info("lease not given back, it will expire", "err", err)
	}
}

// load takes over what the last leader saved.
func (s *Server) load(ctx context.Context, t *term) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	res, err := s.client.Get(ctx, s.key("stand-in/state"))
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	opts := model.Options{
		Clock: s.cfg.Clock, Timing: s.cfg.Timing, Regions: s.cfg.Regions, Config: s.cfg.Sections,
		Save: func(data []byte) error { return s.put(t, "stand-in/state", data) },
		OnAlarm: func(a model.Alarm) {
			s.log.Error("ALARM", "kind", a.Kind, "subject", a.Subject, "message", a.Message)
		},
	}
	if len(res.Kvs) == 0 {
		t.cluster, err = model.NewCluster(opts)
	} else {
		t.cluster, err = model.LoadCluster(res.Kvs[0].Value, opts)
	}
	if err != nil {
		return fmt.Errorf("load state: %w", err)
	}
	t.tso, err = s.loadClock(ctx, t)
	return err
}

// put writes under the leader's name only while it still is the leader.
func (s *Server) put(t *term, name string, data []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), requestTimeout)
	defer cancel()
	res, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.key("leader")), "=", t.created)).
		Then(clientv3.OpPut(s.key(name), string(data))).
		Commit()
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	if !res.Succeeded {
		s.mu.Lock()
		defer s.mu.Unlock()
		select {
		case <-t.lost:
		default:
			close(t.lost)
		}
		return errNotLeader
	}
	return nil
}

// claimByPriority asks for leadership when this member is to have it before
// the one that leads.
func (s *Server) claimByPriority(ctx context.Context) {
	raft, ok := s.RaftLeader()
	self := s.Self()
	if !ok || raft.ID == self.ID || self.LeaderPriority <= raft.LeaderPriority {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if err := s.etcd.Server.MoveLeader(ctx, raft.ID, self.ID); err != nil {
		s.log.Info("leadership not moved to the higher priority", "err", err)
	}
}
