package pdapi

import (
	"encoding/hex"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func (s *Server) regionRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/regions", s.bootstrapped(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		writeRegions(w, c, 0, func(model.RegionView) bool { return true })
	}))
	mux.HandleFunc("GET /pd/api/v1/regions/count", s.withCluster(func(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
		all, err := c.Regions()
		if err != nil {
			replyError(w, err)
			return
		}
		replyJSON(w, http.StatusOK, map[string]any{"count": len(all), "regions": nil})
	}))
	mux.HandleFunc("GET /pd/api/v1/regions/key", s.bootstrapped(regionsByKey))
	mux.HandleFunc("GET /pd/api/v1/regions/store/{id}", s.bootstrapped(withStore(regionsOfStore)))
	mux.HandleFunc("GET /pd/api/v1/regions/check/{check}", s.withCluster(checkRegions))
	mux.HandleFunc("GET /pd/api/v1/regions/replicated", s.bootstrapped(replicationState))
	mux.HandleFunc("POST /pd/api/v1/regions/accelerate-schedule", s.bootstrapped(accelerateRegions))
	mux.HandleFunc("POST /pd/api/v1/regions/accelerate-schedule/batch", s.bootstrapped(accelerateRegions))
	mux.HandleFunc("GET /pd/api/v1/region/id/{id}", s.bootstrapped(withStore(regionByID)))
	mux.HandleFunc("GET /pd/api/v1/stats/region", s.withCluster(statsRegion))
	mux.HandleFunc("GET /pd/api/v1/operators", s.withCluster(listOperators))
	mux.HandleFunc("GET /pd/api/v1/hotspot/stores", s.withCluster(hotStores))
	mux.HandleFunc("GET /pd/api/v1/hotspot/regions/{direction}", s.bootstrapped(hotRegions))
}

func peerJSON(p model.Peer) map[string]any {
	role := "Voter"
	out := map[string]any{"id": p.ID, "store_id": p.StoreID}
	if p.Learner {
		role = "Learner"
		out["role"], out["is_learner"] = 1, true
	}
	out["role_name"] = role
	return out
}

func peersJSON(peers []model.Peer) []map[string]any {
	out := make([]map[string]any, 0, len(peers))
	for _, p := range peers {
		out = append(out, peerJSON(p))
	}
	return out
}

func regionJSON(r model.RegionView) map[string]any {
	out := map[string]any{
		"id": r.ID, "start_key": r.Start, "end_key": r.End,
		"epoch":     map[string]any{"conf_ver": r.ConfVer, "version": r.Version},
		"peers":     peersJSON(r.Peers),
		"cpu_usage": 0, "written_bytes": 0, "read_bytes": 0, "written_keys": 0, "read_keys": 0,
		"approximate_size": model.RegionSizeMiB, "approximate_keys": model.RegionKeys,
	}
	if leader, ok := r.LeaderPeer(); ok {
		out["leader"] = peerJSON(leader)
	}
	if len(r.Down) > 0 {
		down := make([]map[string]any, 0, len(r.Down))
		for _, d := range r.Down {
			down = append(down, map[string]any{"peer": peerJSON(d.Peer), "down_seconds": d.Seconds})
		}
		out["down_peers"] = down
	}
	if len(r.Pending) > 0 {
		out["pending_peers"] = peersJSON(r.Pending)
	}
	return out
}

func regionsBody(list []model.RegionView) map[string]any {
	out := make([]map[string]any, 0, len(list))
	for _, r := range list {
		out = append(out, regionJSON(r))
	}
	return map[string]any{"count": len(out), "regions": out}
}

func writeRegions(w http.ResponseWriter, c *model.Cluster, limit int, keep func(model.RegionView) bool) {
	all, err := c.Regions()
	if err != nil {
		replyError(w, err)
		return
	}
	all = slices.DeleteFunc(all, func(r model.RegionView) bool { return !keep(r) })
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	replyRegions(w, regionsBody(all))
}

// regionsOfStore ignores a limit, as the recorded PD does.
func regionsOfStore(w http.ResponseWriter, _ *http.Request, c *model.Cluster, id uint64) {
	writeRegions(w, c, 0, func(r model.RegionView) bool {
		return slices.ContainsFunc(r.Peers, func(p model.Peer) bool { return p.StoreID == id })
	})
}

func regionsByKey(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	start := strings.ToUpper(hex.EncodeToString([]byte(r.URL.Query().Get("key"))))
	end := strings.ToUpper(hex.EncodeToString([]byte(r.URL.Query().Get("end_key"))))
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		limit = 16
	}
	writeRegions(w, c, limit, func(v model.RegionView) bool {
		return (v.End == "" || v.End > start) && (end == "" || v.Start < end)
	})
}

func regionByID(w http.ResponseWriter, _ *http.Request, c *model.Cluster, id uint64) {
	all, err := c.Regions()
	if err != nil {
		replyError(w, err)
		return
	}
	for _, r := range all {
		if r.ID == id {
			replyRegions(w, regionJSON(r))
			return
		}
	}
	replyRegions(w, nil)
}

func checkRegions(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	check := model.RegionCheck(r.PathValue("check"))
	switch check {
	case model.MissPeer, model.ExtraPeer, model.DownPeers, model.PendingPeer, model.OfflinePeer,
		model.LearnerPeer, model.EmptyRegion:
	default:
		notFound(w)
		return
	}
	list, err := c.CheckRegions(check)
	if err != nil {
		replyError(w, err)
		return
	}
	replyRegions(w, regionsBody(list))
}

func replicationState(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	missing, err := c.CheckRegions(model.MissPeer)
	if err != nil {
		replyError(w, err)
		return
	}
	state := "REPLICATED"
	if len(missing) > 0 {
		state = "INPROGRESS"
	}
	replyJSON(w, http.StatusOK, state)
}

func accelerateRegions(w http.ResponseWriter, _ *http.Request, _ *model.Cluster) {
	replyJSON(w, http.StatusOK, "Accelerate regions scheduling in a given range [, )")
}

func statsRegion(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	all, err := c.Regions()
	if err != nil {
		replyError(w, err)
		return
	}
	leaders, peers := map[uint64]int{}, map[uint64]int{}
	for _, r := range all {
		if p, ok := r.LeaderPeer(); ok {
			leaders[p.StoreID]++
		}
		for _, p := range r.Peers {
			peers[p.StoreID]++
		}
	}
	times := func(m map[uint64]int, by int) map[uint64]int {
		out := make(map[uint64]int, len(m))
		for k, v := range m {
			out[k] = v * by
		}
		return out
	}
	replyJSON(w, http.StatusOK, map[string]any{
		"count": len(all), "empty_count": 0, "storage_size": len(all) * model.RegionSizeMiB, "user_storage_size": 0,
		"storage_keys":       len(all) * model.RegionKeys,
		"store_leader_count": leaders, "store_peer_count": peers,
		"store_leader_size": times(leaders, model.RegionSizeMiB), "store_leader_keys": times(leaders, model.RegionKeys),
		"store_peer_size": times(peers, model.RegionSizeMiB), "store_peer_keys": times(peers, model.RegionKeys),
	})
}

// listOperators is always empty: what PD would do step by step happens at once here.
func listOperators(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	if !c.IsBootstrapped() {
		replyError(w, model.ErrNotBootstrapped)
		return
	}
	if r.URL.Query().Has("kind") {
		replyJSON(w, http.StatusOK, nil)
		return
	}
	replyJSON(w, http.StatusOK, []string{})
}

func hotStores(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	views, err := c.Stores()
	if err != nil {
		replyError(w, err)
		return
	}
	zero := map[uint64]float64{}
	for _, v := range views {
		if v.State != model.StoreTombstone {
			zero[v.Meta.ID] = 0
		}
	}
	body := map[string]any{}
	for _, key := range []string{
		"bytes-write-rate", "bytes-read-rate", "keys-write-rate", "keys-read-rate",
		"query-write-rate", "query-read-rate", "cpu-read-rate",
	} {
		body[key] = zero
	}
	replyJSON(w, http.StatusOK, body)
}

func hotRegions(w http.ResponseWriter, _ *http.Request, _ *model.Cluster) {
	replyJSON(w, http.StatusOK, map[string]any{"as_peer": map[string]any{}, "as_leader": map[string]any{}})
}
