package pdapi

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

type memberJSON struct {
	Name           string   `json:"name,omitempty"`
	MemberID       uint64   `json:"member_id,omitempty"`
	PeerURLs       []string `json:"peer_urls,omitempty"`
	ClientURLs     []string `json:"client_urls,omitempty"`
	LeaderPriority int      `json:"leader_priority,omitempty"`
	DeployPath     string   `json:"deploy_path,omitempty"`
	BinaryVersion  string   `json:"binary_version,omitempty"`
	GitHash        string   `json:"git_hash,omitempty"`
}

func (s *Server) memberRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/members", s.members)
	mux.HandleFunc("DELETE /pd/api/v1/members/name/{name}", s.deleteByName)
	mux.HandleFunc("DELETE /pd/api/v1/members/id/{id}", s.deleteByID)
	mux.HandleFunc("POST /pd/api/v1/members/name/{name}", s.setPriority)
	mux.HandleFunc("GET /pd/api/v1/leader", func(w http.ResponseWriter, _ *http.Request) {
		leader, _ := s.Members.Leader()
		m := s.member(leader, false)
		replyJSON(w, http.StatusOK, m)
	})
	mux.HandleFunc("POST /pd/api/v1/leader/resign", func(w http.ResponseWriter, r *http.Request) {
		s.transfer(w, r, "", "The resign command is submitted.")
	})
	mux.HandleFunc("POST /pd/api/v1/leader/transfer/{name}", func(w http.ResponseWriter, r *http.Request) {
		s.transfer(w, r, r.PathValue("name"), "The transfer command is submitted.")
	})
}

// member renders a member; build tells whether its binary is shown too.
func (s *Server) member(m model.Member, build bool) memberJSON {
	out := memberJSON{
		Name: m.Name, MemberID: m.ID, PeerURLs: m.PeerURLs, ClientURLs: m.ClientURLs, LeaderPriority: m.LeaderPriority,
	}
	// What has not started yet has not told which binary it is.
	if build && m.Name != "" {
		out.DeployPath, out.BinaryVersion, out.GitHash = "/", s.Build.Version, s.Build.GitHash
	}
	return out
}

func (s *Server) members(w http.ResponseWriter, r *http.Request) {
	list, err := s.Members.List(r.Context())
	if err != nil {
		replyError(w, err)
		return
	}
	priority := map[uint64]int{}
	shown := make([]memberJSON, 0, len(list))
	for _, m := range list {
		priority[m.ID] = m.LeaderPriority
		shown = append(shown, s.member(m, true))
	}
	body := map[string]any{
		"header":  map[string]any{"cluster_id": s.Members.ClusterID()},
		"members": shown,
	}
	if leader, ok := s.Members.Leader(); ok {
		leader.LeaderPriority = priority[leader.ID]
		body["leader"] = s.member(leader, true)
	}
	if leader, ok := s.Members.RaftLeader(); ok {
		leader.LeaderPriority = priority[leader.ID]
		body["etcd_leader"] = s.member(leader, true)
	}
	replyJSON(w, http.StatusOK, body)
}

// health is 200 whatever it says: only the body tells.
func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	list, err := s.Members.List(r.Context())
	if err != nil {
		replyError(w, err)
		return
	}
	healthy := s.Members.Healthy(r.Context(), list)
	body := make([]map[string]any, 0, len(list))
	for _, m := range list {
		body = append(body, map[string]any{
			"name": m.Name, "member_id": m.ID, "client_urls": m.ClientURLs, "health": healthy[m.ID],
		})
	}
	replyJSON(w, http.StatusOK, body)
}

func (s *Server) transfer(w http.ResponseWriter, r *http.Request, name, done string) {
	if err := s.Members.Transfer(r.Context(), name); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, done)
}

// find returns the member of a name, or answers 404 itself.
func (s *Server) find(w http.ResponseWriter, r *http.Request, name string) (model.Member, bool) {
	list, err := s.Members.List(r.Context())
	if err != nil {
		replyError(w, err)
		return model.Member{}, false
	}
	for _, m := range list {
		if m.Name == name {
			return m, true
		}
	}
	replyJSON(w, http.StatusNotFound, "not found, pd: "+name)
	return model.Member{}, false
}

func (s *Server) deleteByName(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if m, ok := s.find(w, r, name); ok {
		s.remove(w, r, m.ID, name)
	}
}

func (s *Server) deleteByID(w http.ResponseWriter, r *http.Request) {
	text := r.PathValue("id")
	id, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		replyJSON(w, http.StatusBadRequest, err.Error())
		return
	}
	s.remove(w, r, id, text)
}

func (s *Server) remove(w http.ResponseWriter, r *http.Request, id uint64, shown string) {
	if err := s.Members.Remove(r.Context(), id); err != nil {
		var known *model.Error
		if errors.As(err, &known) {
			replyError(w, known)
			return
		}
		// The text of etcd's error comes twice, as in a real PD.
		replyJSON(w, http.StatusInternalServerError, fmt.Sprintf("[PD:etcd:ErrEtcdMemberRemove]%v: %v", err, err))
		return
	}
	replyJSON(w, http.StatusOK, "removed, pd: "+shown)
}

func (s *Server) setPriority(w http.ResponseWriter, r *http.Request) {
	m, ok := s.find(w, r, r.PathValue("name"))
	if !ok {
		return
	}
	var body map[string]any
	if !tryDecode(w, r, &body) {
		return
	}
	if v, set := body["leader-priority"]; set {
		p, isNumber := v.(float64)
		if !isNumber {
			replyJSON(w, http.StatusBadRequest, "bad format leader priority")
			return
		}
		if err := s.Members.SetPriority(r.Context(), m.ID, int(p)); err != nil {
			replyError(w, err)
			return
		}
	}
	replyJSON(w, http.StatusOK, "success")
}
