package pdapi

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func (s *Server) storeRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/stores", s.withCluster(listStores))
	mux.HandleFunc("GET /pd/api/v1/stores/check", s.bootstrapped(storesCheck))
	mux.HandleFunc("GET /pd/api/v1/stores/limit", s.withCluster(storeLimits))
	mux.HandleFunc("POST /pd/api/v1/stores/limit", s.withCluster(setAllLimits))
	mux.HandleFunc("GET /pd/api/v1/stores/progress", s.withCluster(showProgress))
	mux.HandleFunc("DELETE /pd/api/v1/stores/remove-tombstone", s.withCluster(removeTombstones))
	mux.HandleFunc("GET /pd/api/v1/store/{id}", s.bootstrapped(withStore(showStore)))
	mux.HandleFunc("DELETE /pd/api/v1/store/{id}", s.bootstrapped(withStore(deleteStore)))
	mux.HandleFunc("POST /pd/api/v1/store/{id}/state", s.bootstrapped(withStore(setState)))
	mux.HandleFunc("POST /pd/api/v1/store/{id}/label", s.bootstrapped(withStore(setLabels)))
	mux.HandleFunc("DELETE /pd/api/v1/store/{id}/label", s.bootstrapped(withStore(deleteLabel)))
	mux.HandleFunc("POST /pd/api/v1/store/{id}/weight", s.bootstrapped(withStore(setWeight)))
	mux.HandleFunc("POST /pd/api/v1/store/{id}/limit", s.bootstrapped(withStore(setLimit)))
	mux.HandleFunc("POST /pd/api/v1/admin/unsafe/remove-failed-stores", s.bootstrapped(removeFailedStores))
	mux.HandleFunc("GET /pd/api/v1/labels", s.withCluster(listLabels))
	mux.HandleFunc("GET /pd/api/v1/labels/stores", s.withCluster(labelStores))
}

// withStore reads the store id of the path.
func withStore(h func(http.ResponseWriter, *http.Request, *model.Cluster, uint64)) func(http.ResponseWriter, *http.Request, *model.Cluster) {
	return func(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
		id, err := strconv.ParseUint(r.PathValue("id"), 10, 64)
		if err != nil {
			replyInput(w, err)
			return
		}
		h(w, r, c, id)
	}
}

func storeJSON(v model.StoreView) map[string]any {
	meta := map[string]any{"id": v.Meta.ID, "address": v.Meta.Address, "state_name": v.StateName}
	status := map[string]any{
		"capacity": bytesText(v.Stats.Capacity), "available": bytesText(v.Stats.Available), "used_size": bytesText(v.Stats.Used),
		"leader_count": v.Leaders, "leader_weight": v.LeaderWeight, "region_count": v.Regions, "region_weight": v.RegionWeight,
	}
	addNonEmpty(meta, map[string]any{
		"version": v.Meta.Version, "peer_address": v.Meta.PeerAddress, "status_address": v.Meta.StatusAddress,
		"git_hash": v.Meta.GitHash, "deploy_path": v.Meta.DeployPath,
	})
	if len(v.Meta.Labels) > 0 {
		meta["labels"] = v.Meta.Labels
	}
	if v.Meta.StartTimestamp != 0 {
		meta["start_timestamp"] = v.Meta.StartTimestamp
	}
	// PD leaves zeroes out, so that Up has no state and a store never heard of no node_state.
	if v.State != model.StoreUp {
		meta["state"] = v.State
	}
	if v.Node != model.NodePreparing {
		meta["node_state"] = v.Node
	}
	if v.PhysicallyDestroyed {
		meta["physically_destroyed"] = true
	}
	started := time.Unix(v.Meta.StartTimestamp, 0).UTC()
	status["start_ts"] = started.Format(time.RFC3339Nano)
	beat := time.Unix(0, 0).UTC()
	if !v.LastHeartbeat.IsZero() {
		beat = v.LastHeartbeat.UTC()
		meta["last_heartbeat"] = beat.UnixNano()
		if up := beat.Sub(started); up > 0 {
			status["uptime"] = up.String()
		}
	}
	status["last_heartbeat_ts"] = beat.Format(time.RFC3339Nano)
	size := 0
	if v.Sized {
		size = model.RegionSizeMiB
	}
	status["leader_score"] = float64(v.Leaders) / positiveWeight(v.LeaderWeight)
	status["leader_size"] = v.Leaders * size
	status["region_score"] = float64(v.Regions*size) / positiveWeight(v.RegionWeight)
	status["region_size"] = v.Regions * size
	if v.Learners > 0 {
		status["learner_count"] = v.Learners
	}
	return map[string]any{"store": meta, "status": status}
}

func positiveWeight(w float64) float64 {
	if w <= 0 {
		return 1e-6
	}
	return w
}

func addNonEmpty(into map[string]any, values map[string]any) {
	for k, v := range values {
		if v != "" {
			into[k] = v
		}
	}
}

// bytesText renders bytes as PD does, with four significant digits.
func bytesText(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.4g%s", f, units[i])
}

func storesBody(views []model.StoreView) map[string]any {
	list := make([]map[string]any, 0, len(views))
	for _, v := range views {
		list = append(list, storeJSON(v))
	}
	return map[string]any{"count": len(list), "stores": list}
}

// listStores leaves tombstones out unless they are asked for.
func listStores(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	views, err := c.Stores()
	if err != nil {
		replyError(w, err)
		return
	}
	wanted := map[model.StoreState]bool{}
	for _, text := range r.URL.Query()["state"] {
		n, err := strconv.Atoi(text)
		if err != nil {
			replyJSON(w, http.StatusBadRequest, err.Error())
			return
		}
		wanted[model.StoreState(n)] = true
	}
	if len(wanted) == 0 {
		wanted = map[model.StoreState]bool{model.StoreUp: true, model.StoreOffline: true}
	}
	var shown []model.StoreView
	for _, v := range views {
		if wanted[v.State] {
			shown = append(shown, v)
		}
	}
	replyJSON(w, http.StatusOK, storesBody(shown))
}

func storesCheck(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	wanted := map[string]bool{}
	for _, text := range r.URL.Query()["state"] {
		switch strings.ToLower(text) {
		case "up", "disconnected", "down", "offline", "tombstone":
			wanted[strings.ToLower(text)] = true
		default:
			replyJSON(w, http.StatusBadRequest, "unknown StoreState: "+text)
			return
		}
	}
	views, err := c.Stores()
	if err != nil {
		replyError(w, err)
		return
	}
	var shown []model.StoreView
	for _, v := range views {
		if wanted[strings.ToLower(v.StateName)] {
			shown = append(shown, v)
		}
	}
	replyJSON(w, http.StatusOK, storesBody(shown))
}

func removeFailedStores(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	var body struct {
		Stores []uint64 `json:"stores"`
	}
	if !tryDecode(w, r, &body) {
		return
	}
	if err := c.RemoveFailedStores(body.Stores); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "Request has been accepted.")
}

func showStore(w http.ResponseWriter, _ *http.Request, c *model.Cluster, id uint64) {
	v, err := c.Store(id)
	if err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, storeJSON(v))
}

func deleteStore(w http.ResponseWriter, r *http.Request, c *model.Cluster, id uint64) {
	_, force := r.URL.Query()["force"]
	if err := c.RemoveStore(id, force); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The store is set as Offline.")
}

func setState(w http.ResponseWriter, r *http.Request, c *model.Cluster, id uint64) {
	if err := c.SetStoreState(id, r.URL.Query().Get("state")); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The store's state is updated.")
}

func setLabels(w http.ResponseWriter, r *http.Request, c *model.Cluster, id uint64) {
	var body map[string]string
	if !tryDecode(w, r, &body) {
		return
	}
	list := make([]model.Label, 0, len(body))
	for k, v := range body {
		list = append(list, model.Label{Key: k, Value: v})
	}
	_, replace := r.URL.Query()["force"]
	if err := c.SetStoreLabels(id, list, replace); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The store's label is updated.")
}

func deleteLabel(w http.ResponseWriter, r *http.Request, c *model.Cluster, id uint64) {
	var key string
	if !tryDecode(w, r, &key) {
		return
	}
	if err := c.DeleteStoreLabel(id, key); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, fmt.Sprintf("The label %s is deleted for store %d.", key, id))
}

func setWeight(w http.ResponseWriter, r *http.Request, c *model.Cluster, id uint64) {
	var body struct {
		Leader *float64 `json:"leader"`
		Region *float64 `json:"region"`
	}
	if !tryDecode(w, r, &body) {
		return
	}
	if body.Leader == nil || body.Region == nil {
		replyJSON(w, http.StatusBadRequest, "leader weight unset")
		return
	}
	if err := c.SetStoreWeight(id, *body.Leader, *body.Region); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The store's weight is updated.")
}

type limitBody struct {
	Type string  `json:"type"`
	Rate float64 `json:"rate"`
}

func (b limitBody) over(l model.StoreLimit) model.StoreLimit {
	if b.Type != "remove-peer" {
		l.AddPeer = b.Rate
	}
	if b.Type != "add-peer" {
		l.RemovePeer = b.Rate
	}
	return l
}

func setLimit(w http.ResponseWriter, r *http.Request, c *model.Cluster, id uint64) {
	var body limitBody
	if !tryDecode(w, r, &body) {
		return
	}
	limits, err := c.StoreLimits()
	if err != nil {
		replyError(w, err)
		return
	}
	if err := c.SetStoreLimit(id, body.over(limits[id])); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The store's label is updated.")
}

func setAllLimits(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	var body limitBody
	if !tryDecode(w, r, &body) {
		return
	}
	if err := c.SetStoreLimit(0, body.over(model.StoreLimit{AddPeer: 15, RemovePeer: 15})); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "Set store limit successfully.")
}

func storeLimits(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	limits, err := c.StoreLimits()
	if err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, limits)
}

func showProgress(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	all, err := c.Progresses()
	if err != nil {
		replyError(w, err)
		return
	}
	q := r.URL.Query()
	if text := q.Get("id"); text != "" {
		id, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			replyJSON(w, http.StatusBadRequest, err.Error())
			return
		}
		for _, p := range all {
			if p.StoreID == id {
				replyJSON(w, http.StatusOK, map[string]any{
					"action": p.Action, "store_id": p.StoreID, "progress": p.Done,
					"current_speed": p.Speed, "left_seconds": p.LeftSecs,
				})
				return
			}
		}
		noProgress(w, "store ID", text)
		return
	}
	action := q.Get("action")
	if action == "" {
		replyJSON(w, http.StatusBadRequest, "need query parameters")
		return
	}
	n := 0
	var sum model.Progress
	for _, p := range all {
		if p.Action == action {
			n++
			sum.Done += p.Done
			sum.Speed += p.Speed
			sum.LeftSecs = max(sum.LeftSecs, p.LeftSecs)
		}
	}
	if n == 0 {
		noProgress(w, "action", action)
		return
	}
	replyJSON(w, http.StatusOK, map[string]any{
		"action": action, "progress": sum.Done / float64(n),
		"current_speed": sum.Speed / float64(n), "left_seconds": sum.LeftSecs,
	})
}

func noProgress(w http.ResponseWriter, what, value string) {
	text := "no progress found for the action: " + value
	if what == "store ID" {
		text = "no progress found for the given store ID: " + value
	}
	replyError(w, &model.Error{Code: "PD:progress:ErrProgressNotFound", Text: text, Status: http.StatusNotFound})
}

func removeTombstones(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	if err := c.RemoveTombstones(); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "Remove tombstone successfully.")
}

func listLabels(w http.ResponseWriter, _ *http.Request, c *model.Cluster) {
	views, err := c.Stores()
	if err != nil {
		replyError(w, err)
		return
	}
	seen := map[model.Label]bool{}
	out := []model.Label{}
	for _, v := range views {
		for _, l := range v.Meta.Labels {
			if !seen[l] {
				seen[l] = true
				out = append(out, l)
			}
		}
	}
	replyJSON(w, http.StatusOK, out)
}

func labelStores(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	views, err := c.Stores()
	if err != nil {
		replyError(w, err)
		return
	}
	name, value := r.URL.Query().Get("name"), r.URL.Query().Get("value")
	var shown []model.StoreView
	for _, v := range views {
		for _, l := range v.Meta.Labels {
			if v.State != model.StoreTombstone && l.Key == name && (value == "" || l.Value == value) {
				shown = append(shown, v)
				break
			}
		}
	}
	replyJSON(w, http.StatusOK, storesBody(shown))
}
