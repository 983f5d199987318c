package pdapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// Build says which PD it wants to be taken for.
type Build struct {
	Version string
	GitHash string
	BuildTS string
}

// DefaultBuild is the build of the PD whose answers were recorded.
func DefaultBuild() Build {
	return Build{Version: "v8.5.7", GitHash: "6dce4a68e3e93b523657bd05cba89a86d64de117", BuildTS: "2026-06-17 00:00:00"}
}

// Server answers for one PD member.
type Server struct {
	// Members is this member's view of the members. Required.
	Members model.Members
	// Cluster returns what the leader knows; it is asked of the leader only.
	// nil means that this member has just stopped leading. Required.
	Cluster func() *model.Cluster
	// Build is what /version and /members show.
	Build Build
	// Local is the member's own part of the configuration (name, addresses, …).
	Local map[string]any
	// Started is when the process started.
	Started time.Time
	// Transport carries requests to the leader; nil means http.DefaultTransport.
	Transport http.RoundTripper
}

// Headers by which members talk to each other about redirects.
const (
	redirectorHeader     = "PD-Redirector"
	followerHandleHeader = "PD-Allow-follower-handle"
)

const (
	redirectFailed      = "[PD:apiutil:ErrRedirect]redirect failed"
	redirectNoLeader    = "[PD:apiutil:ErrRedirectNoLeader]redirect finds no leader"
	redirectToNotLeader = "[PD:apiutil:ErrRedirectToNotLeader]redirect to not leader"
)

// leaderWait is how long a member that knows of no leader waits for one, since v8.5.
const leaderWait = 3 * time.Second

// Handler returns the handler of all paths below /pd.
func (s *Server) Handler() http.Handler {
	local := http.NewServeMux()
	s.localRoutes(local)
	leader := http.NewServeMux()
	s.memberRoutes(leader)
	s.storeRoutes(leader)
	s.regionRoutes(leader)
	s.schedulerRoutes(leader)
	s.configRoutes(leader)
	s.ruleRoutes(leader)
	s.clusterRoutes(leader)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := local.Handler(r); pattern != "" {
			local.ServeHTTP(w, r)
			return
		}
		if !s.Members.IsLeader() && r.Header.Get(followerHandleHeader) == "" {
			s.redirect(w, r)
			return
		}
		if _, pattern := leader.Handler(r); pattern == "" {
			notFound(w)
			return
		}
		leader.ServeHTTP(w, r)
	})
}

// localRoutes are the paths that each member answers for itself.
func (s *Server) localRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/health", s.health)
	mux.HandleFunc("GET /pd/health", s.health)
	mux.HandleFunc("GET /pd/api/v1/ping", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /pd/ping", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /pd/api/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		replyJSON(w, http.StatusOK, map[string]any{
			"build_ts": s.Build.BuildTS, "version": s.Build.Version, "git_hash": s.Build.GitHash,
			"start_timestamp": s.Started.Unix(),
		})
	})
	mux.HandleFunc("GET /pd/api/v1/version", func(w http.ResponseWriter, _ *http.Request) {
		replyJSON(w, http.StatusOK, map[string]any{"version": s.Build.Version, "build_time": "", "hash": "", "branch": ""})
	})
	mux.HandleFunc("GET /pd/api/v2/ready", s.ready)
}

// ready is about loading regions, and says nothing about quorum.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	loaded := s.Members.IsLoaded()
	if s.Members.IsLeader() {
		c := s.Cluster()
		loaded = loaded && c != nil && c.IsBootstrapped()
	}
	status := http.StatusOK
	if !loaded {
		status = http.StatusInternalServerError
	}
	if !r.URL.Query().Has("verbose") {
		w.WriteHeader(status)
		return
	}
	replyV2(w, status, map[string]any{"region_loaded": loaded})
}

// awaitLeader waits for a leader that can be asked.
func (s *Server) awaitLeader(ctx context.Context) (model.Member, bool) {
	ctx, cancel := context.WithTimeout(ctx, leaderWait)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		if leader, ok := s.Members.Leader(); ok && len(leader.ClientURLs) > 0 {
			return leader, true
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return model.Member{}, false
		}
	}
}

func (s *Server) redirect(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(redirectorHeader) != "" {
		http.Error(w, redirectToNotLeader, http.StatusInternalServerError)
		return
	}
	leader, ok := s.awaitLeader(r.Context())
	if !ok {
		http.Error(w, redirectNoLeader, http.StatusServiceUnavailable)
		return
	}
	if leader.ID == s.Members.Self().ID {
		// It led once, and has heard of no other leader since.
		http.Error(w, redirectFailed, http.StatusInternalServerError)
		return
	}
	target, err := url.Parse(leader.ClientURLs[0])
	if err != nil {
		http.Error(w, redirectFailed, http.StatusInternalServerError)
		return
	}
	r.Header.Set(redirectorHeader, s.Members.Self().Name)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
		},
		ModifyResponse: func(res *http.Response) error {
			// The outer server sets these itself; twice would be once too many.
			for key := range res.Header {
				if strings.HasPrefix(key, "Access-Control-") {
					res.Header.Del(key)
				}
			}
			return nil
		},
		Transport: s.Transport,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			http.Error(w, redirectFailed, http.StatusInternalServerError)
		},
	}
	proxy.ServeHTTP(w, r)
}

// withCluster runs a handler with the leader's cluster.
func (s *Server) withCluster(h func(http.ResponseWriter, *http.Request, *model.Cluster)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := s.Cluster()
		if c == nil {
			http.Error(w, redirectFailed, http.StatusInternalServerError)
			return
		}
		h(w, r, c)
	}
}

// bootstrapped is withCluster for what needs a first store.
func (s *Server) bootstrapped(h func(http.ResponseWriter, *http.Request, *model.Cluster)) http.HandlerFunc {
	return s.withCluster(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		if !c.IsBootstrapped() {
			replyError(w, model.ErrNotBootstrapped)
			return
		}
		h(w, r, c)
	})
}

func replyJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(status)
	writeBody(w, append(data, '\n'))
}

// replyV2 has the spelling of the content type of API version 2.
func replyV2(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	writeBody(w, data)
}

// replyRegions has the content type that PD gives to regions, which it encodes otherwise.
func replyRegions(w http.ResponseWriter, body any) {
	data, err := json.Marshal(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	writeBody(w, data)
}

// writeBody sends the body. That a reader went away is no error.
func writeBody(w io.Writer, data []byte) {
	if _, err := w.Write(data); err != nil {
		return
	}
}

// replyError answers with the status that PD gives to an error, its text as a JSON string.
func replyError(w http.ResponseWriter, err error) {
	var e *model.Error
	if errors.As(err, &e) {
		replyJSON(w, e.Status, e.Error())
		return
	}
	replyJSON(w, http.StatusInternalServerError, err.Error())
}

// replyInput answers to what can't even be read.
func replyInput(w http.ResponseWriter, err error) {
	w.Header().Set("Tidb-Error-Code", "input")
	var data any = map[string]any{}
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		data = map[string]any{
			"Value": wrongType.Value, "Type": map[string]any{}, "Offset": wrongType.Offset,
			"Struct": wrongType.Struct, "Field": wrongType.Field,
		}
	}
	replyJSON(w, http.StatusBadRequest, map[string]any{"code": "input", "msg": err.Error(), "data": data})
}

func notFound(w http.ResponseWriter) {
	http.Error(w, "404 page not found", http.StatusNotFound)
}

// tryDecode reads a JSON body. It answers itself and returns false when it can't.
func tryDecode(w http.ResponseWriter, r *http.Request, into any) bool {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		replyInput(w, err)
		return false
	}
	if err := json.Unmarshal(data, into); err != nil {
		replyInput(w, err)
		return false
	}
	return true
}
