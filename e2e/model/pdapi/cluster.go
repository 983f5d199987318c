package pdapi

import (
	"net/http"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func (s *Server) clusterRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/cluster", s.withCluster(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		replyJSON(w, http.StatusOK, map[string]any{"id": s.Members.ClusterID(), "max_peer_count": c.MaxReplicas()})
	}))
	mux.HandleFunc("GET /pd/api/v1/cluster/status", s.withCluster(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		replyJSON(w, http.StatusOK, map[string]any{
			"raft_bootstrap_time": c.BootstrappedAt().UTC().Format(time.RFC3339Nano),
			"is_initialized":      isInitialized(c), "replication_status": "",
		})
	}))
	mux.HandleFunc("GET /pd/api/v1/replication_mode/status", s.bootstrapped(func(w http.ResponseWriter, _ *http.Request, _ *model.Cluster) {
		replyJSON(w, http.StatusOK, map[string]any{
			"mode":         "majority",
			"dr-auto-sync": map[string]any{"label_key": "", "state": "", "acid_consistent": false},
		})
	}))
	mux.HandleFunc("GET /pd/api/v1/min-resolved-ts", s.bootstrapped(func(w http.ResponseWriter, _ *http.Request, _ *model.Cluster) {
		replyJSON(w, http.StatusOK, map[string]any{
			"is_real_time": true, "min_resolved_ts": 0, "persist_interval": "1s", "stores_min_resolved_ts": nil,
		})
	}))
	mux.HandleFunc("GET /pd/api/v1/gc/safepoint", s.withCluster(safePoints))
	mux.HandleFunc("DELETE /pd/api/v1/gc/safepoint/{service}", s.withCluster(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		if _, err := c.UpdateServiceSafePoint(r.PathValue("service"), 0, 0); err != nil {
			replyError(w, err)
			return
		}
		replyJSON(w, http.StatusOK, "Delete service GC safepoint successfully.")
	}))
	mux.HandleFunc("GET /pd/api/v2/keyspaces", s.bootstrapped(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		at := c.BootstrappedAt().Unix()
		replyV2(w, http.StatusOK, map[string]any{
			"keyspaces": []map[string]any{{
				"id": 0, "name": "DEFAULT", "state": "ENABLED", "created_at": at, "state_changed_at": at,
			}},
			"next_page_token": "",
		})
	}))
}

// isInitialized is what PD calls initialized: every region has its replicas.
func isInitialized(c *model.Cluster) bool {
	missing, err := c.CheckRegions(model.MissPeer)
	return err == nil && len(missing) == 0
}

func safePoints(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	list := c.ServiceSafePoints()
	var lowest uint64
	for i, p := range list {
		if i == 0 || p.SafePoint < lowest {
			lowest = p.SafePoint
		}
	}
	replyJSON(w, http.StatusOK, map[string]any{
		"service_gc_safe_points": list, "min_service_gc_safe_point": lowest, "gc_safe_point": c.GCSafePoint(),
	})
}
