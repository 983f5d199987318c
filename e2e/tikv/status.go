package tikv

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/pprof"

	"github.com/pingcap/kvproto/pkg/metapb"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/settings"
)

// statusHandler is the status port.
func statusHandler(store *raftstore.Store, meta *metapb.Store, online *settings.Online) http.Handler {
	mux := http.NewServeMux()
	ok := func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) }
	mux.HandleFunc("GET /status", ok)
	mux.HandleFunc("GET /ready", ok)
	mux.Handle("/config", online)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/regions", func(w http.ResponseWriter, r *http.Request) {
		// ?checksum=false leaves out what takes long.
		regions, err := store.Reports(r.Context(), r.URL.Query().Get("checksum") != "false")
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(regions) // who asked may have gone
	})
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		count, err := store.Count(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = fmt.Fprintf(w, `# HELP tikv_raftstore_region_count Number of regions collected in region_collector
# TYPE tikv_raftstore_region_count gauge
tikv_raftstore_region_count{type="leader"} %d
tikv_raftstore_region_count{type="region"} %d
# HELP tikv_server_info Indicate the tikv server info, and the value is the server startup timestamp(s since unix epoch).
# TYPE tikv_server_info gauge
tikv_server_info{git_hash="%s",release_version="%s"} %d
`, count.Leaders, count.Regions, meta.GitHash, meta.Version, meta.StartTimestamp) // who asked may have gone
	})
	return mux
}
