package pdsim

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"sort"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/pdapi"
)

// healthInterval is how long a member must have been up for etcd to count on it.
const healthInterval = 5 * time.Second

var errMemberNotFound = errors.New("etcdserver: member not found")

// ErrUnhealthy is etcd's word for a change of the members that it refuses because they
// are not connected, or have not been for long enough.
var ErrUnhealthy = errors.New("etcdserver: unhealthy cluster")

func (n *node) clientURL() string {
	if n.peerURL != "" || n.unpublished {
		return ""
	}
	if f := n.pd.opts.ClientURL; f != nil {
		return f(n.name)
	}
	return "http://" + n.addr
}

func (n *node) member() model.Member {
	if n.peerURL != "" {
		return model.Member{ID: n.id, PeerURLs: []string{n.peerURL}}
	}
	peer := "http://" + n.name + ":2380"
	if f := n.pd.opts.PeerURL; f != nil {
		peer = f(n.name)
	}
	peers := []string{peer}
	if len(n.peers) > 0 {
		peers = n.peers
	}
	if n.unpublished {
		return model.Member{Name: n.name, ID: n.id, PeerURLs: peers}
	}
	return model.Member{
		Name: n.name, ID: n.id, LeaderPriority: n.priority,
		ClientURLs: []string{n.clientURL()}, PeerURLs: peers,
	}
}

// view is what one member sees of the members.
type view struct{ n *node }

var _ model.Members = view{}

func (v view) lock() func() {
	v.n.pd.mu.Lock()
	v.n.pd.settle()
	return v.n.pd.mu.Unlock
}

// ClusterID implements model.Members.
func (v view) ClusterID() uint64 { return v.n.pd.id }

// Self implements model.Members.
func (v view) Self() model.Member {
	defer v.lock()()
	return v.n.member()
}

// IsLeader implements model.Members.
func (v view) IsLeader() bool {
	defer v.lock()()
	return v.n.pd.leader == v.n
}

// IsLoaded implements model.Members.
func (v view) IsLoaded() bool {
	defer v.lock()()
	return v.n.isLoaded()
}

// isLoaded reports whether a member that runs has all regions in memory.
func (n *node) isLoaded() bool {
	return n.alive && !n.pd.clock.Now().Before(n.upSince.Add(n.pd.opts.Load))
}

// Leader implements model.Members.
func (v view) Leader() (model.Member, bool) {
	defer v.lock()()
	if v.n.known == nil {
		return model.Member{}, false
	}
	return v.n.known.member(), true
}

// RaftLeader implements model.Members.
func (v view) RaftLeader() (model.Member, bool) {
	defer v.lock()()
	if v.n.pd.leader == nil {
		return model.Member{}, false
	}
	return v.n.pd.leader.member(), true
}

// List implements model.Members.
func (v view) List(context.Context) ([]model.Member, error) {
	defer v.lock()()
	var out []model.Member
	for _, n := range v.n.pd.voters() {
		out = append(out, n.member())
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out, nil
}

// Healthy implements model.Members: one member after the other is asked, and one whose node is off
// the network is waited for.
func (v view) Healthy(ctx context.Context, members []model.Member) map[uint64]bool {
	healthy, unreachable := v.askMembers(members)
	wait := time.NewTimer(time.Duration(unreachable) * v.n.pd.opts.Ping)
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	return healthy
}

// askMembers returns which members run, and how many neither answer nor refuse to.
func (v view) askMembers(members []model.Member) (healthy map[uint64]bool, unreachable int) {
	defer v.lock()()
	healthy = map[uint64]bool{}
	for _, m := range members {
		for _, n := range v.n.pd.nodes {
			if n.id != m.ID {
				continue
			}
			if healthy[m.ID] = n.alive; n.unreachable {
				unreachable++
			}
		}
	}
	return healthy, unreachable
}

// Transfer implements model.Members.
func (v view) Transfer(_ context.Context, name string) error {
	defer v.lock()()
	p := v.n.pd
	for _, n := range p.voters() {
		if n.name == name || name == "" && n != p.leader {
			if name != "" {
				p.checkLoaded(n)
			}
			p.pending, p.pendingAt = n, p.clock.Now()
			return nil
		}
	}
	return &model.Error{Text: "no valid pd to transfer etcd leader", Status: http.StatusInternalServerError}
}

// Remove implements model.Members with etcd's rules for it.
func (v view) Remove(_ context.Context, id uint64) error {
	defer v.lock()()
	p := v.n.pd
	var member *node
	active := 0
	voters := p.voters()
	for _, n := range voters {
		if n.id == id {
			member = n
		}
		if n == p.leader || n.alive && p.clock.Now().Sub(n.upSince) >= healthInterval {
			active++
		}
	}
	if member == nil {
		return errMemberNotFound
	}
	// A dead member is no part of the quorum and may always go.
	if member.alive && active-1 < 1+(len(voters)-1)/2 {
		return ErrUnhealthy
	}
	member.removed = true
	return nil
}

// SetPriority implements model.Members.
func (v view) SetPriority(_ context.Context, id uint64, priority int) error {
	defer v.lock()()
	for _, n := range v.n.pd.voters() {
		if n.id == id {
			n.priority = priority
		}
	}
	return nil
}

// areMembersConnected reports whether etcd adds a member: all that are listed have been
// connected to each other for long enough. One alone has no other to be connected to.
func (p *PD) areMembersConnected() bool {
	voters := p.voters()
	return len(voters) == 1 || !slices.ContainsFunc(voters, func(n *node) bool {
		return !n.alive || p.clock.Now().Sub(n.upSince) < healthInterval
	})
}

// handler answers as the one client port of a PD does.
func (n *node) handler() http.Handler {
	api := &pdapi.Server{
		Members: view{n},
		Cluster: n.pd.Cluster,
		Build:   n.pd.opts.Build,
		Started: n.started,
		Local: map[string]any{
			"name": n.name, "client-urls": n.clientURL(), "advertise-client-urls": n.clientURL(),
			"peer-urls": n.member().PeerURLs[0], "advertise-peer-urls": n.member().PeerURLs[0],
			"data-dir": "/var/lib/pd", "initial-cluster": "", "initial-cluster-state": "new",
			"initial-cluster-token": "pd-cluster", "join": "", "force-new-cluster": false,
		},
		Transport: n.pd.Transport(),
	}
	mux := http.NewServeMux()
	mux.Handle("/pd/", api.Handler())
	mux.HandleFunc("GET /health", n.etcdHealth)
	mux.HandleFunc("POST /v3/cluster/member/update", n.updateMember)
	// No simulated TiDB registers in etcd: nothing but its gateway is there.
	mux.HandleFunc("POST /v3/kv/range", func(w http.ResponseWriter, _ *http.Request) {
		if n.pd.Cluster() == nil {
			http.Error(w, `{"error":"etcdserver: no leader","code":14}`, http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"header":{}}`) // the reader is gone if it fails
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "404 page not found", http.StatusNotFound)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", "*")
		h.Set("Access-Control-Allow-Methods", "POST, GET, OPTIONS, PUT, DELETE")
		h.Set("Access-Control-Allow-Headers", "accept, content-type, authorization")
		mux.ServeHTTP(w, r)
	})
}

// updateMember answers as etcd's gateway does when a member is given other peer URLs.
func (n *node) updateMember(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID       uint64   `json:"ID,string"`
		PeerURLs []string `json:"peerURLs"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.PeerURLs) == 0 {
		http.Error(w, `{"error":"invalid request","code":3}`, http.StatusBadRequest)
		return
	}
	n.pd.mu.Lock()
	defer n.pd.mu.Unlock()
	n.pd.settle()
	at := slices.IndexFunc(n.pd.nodes, func(o *node) bool { return o.id == asked.ID && !o.removed })
	switch {
	case n.pd.leader == nil:
		http.Error(w, `{"error":"etcdserver: no leader","code":14}`, http.StatusServiceUnavailable)
	case at < 0:
		http.Error(w, `{"error":"etcdserver: member not found","code":5}`, http.StatusNotFound)
	default:
		n.pd.nodes[at].peers = asked.PeerURLs
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"header":{}}`) // the reader is gone if it fails
	}
}

// PeerURLs returns those of each member.
func (p *PD) PeerURLs() map[string][]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string][]string{}
	for _, n := range p.nodes {
		if !n.removed {
			out[n.name] = n.member().PeerURLs
		}
	}
	return out
}

// etcdHealth is etcd's own endpoint, the only one that tells of lost quorum.
func (n *node) etcdHealth(w http.ResponseWriter, _ *http.Request) {
	n.pd.mu.Lock()
	n.pd.settle()
	ok := n.pd.leader != nil
	n.pd.mu.Unlock()
	if !ok {
		http.Error(w, `{"health":"false","reason":"RAFT NO LEADER"}`, http.StatusServiceUnavailable)
		return
	}
	if _, err := w.Write([]byte(`{"health":"true","reason":""}`)); err != nil {
		return
	}
}
