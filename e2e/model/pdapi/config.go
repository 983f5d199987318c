package pdapi

import (
	"net/http"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func (s *Server) configRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/config", s.withCluster(s.config))
	mux.HandleFunc("POST /pd/api/v1/config", s.withCluster(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		setItems(w, r, c.SetConfig)
	}))
	mux.HandleFunc("GET /pd/api/v1/config/cluster-version", s.withCluster(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		replyJSON(w, http.StatusOK, c.ClusterVersion())
	}))
	for path, section := range map[string]string{
		"schedule": "schedule", "replicate": "replication", "pd-server": "pd-server", "replication-mode": "replication-mode",
	} {
		mux.HandleFunc("GET /pd/api/v1/config/"+path, s.withCluster(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
			replyJSON(w, http.StatusOK, c.ConfigSection(section))
		}))
		if section == "replication" {
			continue
		}
		mux.HandleFunc("POST /pd/api/v1/config/"+path, s.withCluster(func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
			setItems(w, r, func(items map[string]any) error { return c.SetConfigSection(section, items) })
		}))
	}
	mux.HandleFunc("POST /pd/api/v1/config/replicate", s.withCluster(setReplication))
}

// config is the leader's configuration together with what is its own.
func (s *Server) config(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	body := map[string]any{}
	for k, v := range c.Config() {
		body[k] = v
	}
	for k, v := range s.Local {
		body[k] = v
	}
	replyJSON(w, http.StatusOK, body)
}

func setItems(w http.ResponseWriter, r *http.Request, set func(map[string]any) error) {
	var items map[string]any
	if !tryDecode(w, r, &items) {
		return
	}
	if len(items) == 0 {
		replyJSON(w, http.StatusBadRequest, "The input is empty.")
		return
	}
	if err := set(items); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The config is updated.")
}

// ReplicationConfig has the name of PD's own type, which error messages show.
type ReplicationConfig struct {
	MaxReplicas          *uint64 `json:"max-replicas"`
	LocationLabels       *string `json:"location-labels"`
	StrictlyMatchLabel   *string `json:"strictly-match-label"`
	EnablePlacementRules *string `json:"enable-placement-rules"`
	IsolationLevel       *string `json:"isolation-level"`
}

// setReplication is read before PD looks whether there is a cluster at all.
func setReplication(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	var body ReplicationConfig
	if !tryDecode(w, r, &body) {
		return
	}
	if !c.IsBootstrapped() {
		replyError(w, model.ErrNotBootstrapped)
		return
	}
	items := map[string]any{}
	if body.MaxReplicas != nil {
		items["max-replicas"] = float64(*body.MaxReplicas)
	}
	for key, v := range map[string]*string{
		"location-labels": body.LocationLabels, "strictly-match-label": body.StrictlyMatchLabel,
		"enable-placement-rules": body.EnablePlacementRules, "isolation-level": body.IsolationLevel,
	} {
		if v != nil {
			items[key] = *v
		}
	}
	if err := c.SetConfigSection("replication", items); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The config is updated.")
}
