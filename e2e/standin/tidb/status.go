package tidb

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
)

// status is the status port.
type status struct {
	log      *slog.Logger
	topology *topology
	engine   *engine
	in       *interceptor
	config   *settings.Config
	stopping atomic.Bool
}

func (s *status) handler() http.Handler {
	mux := http.NewServeMux()
	for path, answer := range map[string]http.HandlerFunc{
		"/status": s.status, "/info": s.info, "/info/all": s.infoAll, "/labels": s.labels, "/settings": s.config.TiDB,
		"/schema": s.schema, "/metrics": s.metrics,
		"/upgrade/start": s.upgrade(true), "/upgrade/finish": s.upgrade(false), "/upgrade/show": s.upgradeShow,
	} {
		mux.HandleFunc(path, answer)
	}
	return mux
}

func (s *status) answer(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	s.write(w, string(text))
}

// refuse answers as TiDB does: 400, with nothing but the text.
func (s *status) refuse(w http.ResponseWriter, err error) {
	w.WriteHeader(http.StatusBadRequest)
	s.write(w, err.Error())
}

func (s *status) write(w io.Writer, text string) {
	if _, err := io.WriteString(w, text); err != nil {
		s.log.Debug("answer not sent", "error", err)
	}
}

// status is 500 once the server is told to stop, so that it gets no new
// clients while it finishes with the old ones.
func (s *status) status(w http.ResponseWriter, _ *http.Request) {
	self := s.topology.snapshot()
	text, err := json.Marshal(map[string]any{
		"connections": s.engine.open.count(), "version": self.Version, "git_hash": self.GitHash,
		"status": map[string]any{"init_stats_percentage": 100},
	})
	if err != nil {
		s.refuse(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if s.stopping.Load() {
		w.WriteHeader(http.StatusInternalServerError)
	}
	s.write(w, string(text))
}

func (s *status) info(w http.ResponseWriter, r *http.Request) {
	_, owner, err := s.topology.servers(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	self := s.topology.snapshot()
	s.answer(w, struct {
		IsOwner  bool `json:"is_owner"`
		MaxProcs int  `json:"max_procs"`
		GOGC     int  `json:"gogc"`
		serverInfo
	}{owner == self.ID, 2, 500, self})
}

func (s *status) infoAll(w http.ResponseWriter, r *http.Request) {
	all, owner, err := s.topology.servers(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	answer := map[string]any{
		"servers_num": len(all), "owner_id": owner, "is_all_server_version_consistent": true, "all_servers_info": all,
	}
	versions := map[string]struct{}{}
	for _, one := range all {
		versions[one.Version+one.GitHash] = struct{}{}
	}
	if len(versions) > 1 {
		different := make([]string, 0, len(versions))
		for v := range versions {
			different = append(different, v)
		}
		slices.Sort(different)
		answer["is_all_server_version_consistent"] = false
		answer["all_servers_diff_versions"] = different
	}
	s.answer(w, answer)
}

var errPostOnly = errors.New("This api only support POST method") //nolint:staticcheck // TiDB's words

func (s *status) labels(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.refuse(w, errPostOnly)
		return
	}
	labels := map[string]string{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&labels); err != nil {
		s.refuse(w, err)
		return
	}
	if len(labels) > 0 {
		if err := s.topology.setLabels(r.Context(), labels); err != nil {
			s.refuse(w, err)
			return
		}
	}
	s.answer(w, s.topology.snapshot().Labels)
}

// database is one entry of /schema.
type database struct {
	ID        uint64   `json:"id"`
	Name      name     `json:"db_name"`
	Charset   string   `json:"charset"`
	Collate   string   `json:"collate"`
	Old       struct{} `json:"Deprecated"`
	State     int      `json:"state"` // 5 is public, 0 that of TiDB's virtual ones
	PolicyRef *string  `json:"policy_ref_info"`
}

type name struct {
	O string `json:"O"`
	L string `json:"L"`
}

func (s *status) schema(w http.ResponseWriter, _ *http.Request) {
	known := map[string]uint64{
		"test": 2, "sys": 102, "mysql": 1, "METRICS_SCHEMA": 4611686018427407904,
		"INFORMATION_SCHEMA": 4611686018427387905, "PERFORMANCE_SCHEMA": 4611686018427397904,
	}
	names := []string{"test", "sys", "mysql", "METRICS_SCHEMA", "INFORMATION_SCHEMA", "PERFORMANCE_SCHEMA"}
	for _, db := range s.engine.data.AllDatabases(nil) {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, db.Name()) }) {
			names = append(names, db.Name())
		}
	}
	all := make([]database, 0, len(names))
	next := uint64(104)
	for _, n := range names {
		one := database{ID: known[n], Name: name{n, strings.ToLower(n)}, Charset: "utf8mb4", Collate: "utf8mb4_bin", State: 5}
		if one.ID > 1<<62 {
			one.State = 0
		}
		if one.ID == 0 {
			one.ID = next
			next += 2
		}
		all = append(all, one)
	}
	s.answer(w, all)
}

func (s *status) metrics(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	self := s.topology.snapshot()
	s.write(w, fmt.Sprintf(`# HELP tidb_server_connections Number of connections.
# TYPE tidb_server_connections gauge
tidb_server_connections{resource_group="default"} %d
# HELP tidb_server_info Indicate the tidb server info, and the value is the start timestamp (s).
# TYPE tidb_server_info gauge
tidb_server_info{hash="%s",version="%s"} %d
# HELP tidb_server_stand_in_statements_total Statements of all clients
# TYPE tidb_server_stand_in_statements_total counter
tidb_server_stand_in_statements_total %d
`, s.engine.open.count(), self.GitHash, self.Version, self.StartTimestamp, s.in.total.Load()))
}

func (s *status) upgrade(on bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			s.refuse(w, errPostOnly)
			return
		}
		switch err := s.topology.setUpgrading(r.Context(), on); {
		case errors.Is(err, errSameState):
			s.answer(w, "It's a duplicated operation and the cluster is already in "+map[bool]string{true: "upgrading", false: "normal"}[on]+" state.")
		case err != nil:
			s.refuse(w, err)
		default:
			s.answer(w, "success!")
		}
	}
}

func (s *status) upgradeShow(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		s.refuse(w, errPostOnly)
		return
	}
	on, err := s.topology.upgrading(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	if !on {
		s.answer(w, "The cluster state is normal.")
		return
	}
	all, owner, err := s.topology.servers(r.Context())
	if err != nil {
		s.refuse(w, err)
		return
	}
	self, same := s.topology.snapshot(), 0
	for _, one := range all {
		if one.Version == self.Version {
			same++
		}
	}
	s.answer(w, map[string]any{
		"servers_num": len(all), "owner_id": owner, "upgraded_percent": same * 100 / max(len(all), 1), "is_all_server_version_consistent": same == len(all),
	})
}
