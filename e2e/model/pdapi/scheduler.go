package pdapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func (s *Server) schedulerRoutes(mux *http.ServeMux) {
	mux.HandleFunc("GET /pd/api/v1/schedulers", s.withCluster(listSchedulers))
	mux.HandleFunc("POST /pd/api/v1/schedulers", s.bootstrapped(addScheduler))
	mux.HandleFunc("POST /pd/api/v1/schedulers/{name}", s.bootstrapped(pauseScheduler))
	mux.HandleFunc("DELETE /pd/api/v1/schedulers/{name}", s.bootstrapped(deleteScheduler))
	mux.HandleFunc("/pd/api/v1/scheduler-config/"+model.EvictLeader, s.bootstrapped(evictRoot))
	mux.HandleFunc("GET /pd/api/v1/scheduler-config/{name}/list", s.bootstrapped(schedulerConfig))
	mux.HandleFunc("POST /pd/api/v1/scheduler-config/"+model.EvictLeader+"/config", s.bootstrapped(evictConfig))
	mux.HandleFunc("DELETE /pd/api/v1/scheduler-config/"+model.EvictLeader+"/delete/{id}", s.bootstrapped(withStore(evictDelete)))
}

func listSchedulers(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	names, err := c.Schedulers(r.URL.Query().Get("status"))
	if err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, names)
}

func addScheduler(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	var body struct {
		Name  string   `json:"name"`
		Store *float64 `json:"store_id"`
	}
	if !tryDecode(w, r, &body) {
		return
	}
	switch {
	case body.Name == "":
		replyJSON(w, http.StatusBadRequest, "missing scheduler name")
		return
	case body.Name != model.EvictLeader:
		if err := c.AddScheduler(body.Name); err != nil {
			replyError(w, err)
			return
		}
		replyJSON(w, http.StatusOK, "The scheduler is created.")
		return
	case body.Store == nil:
		replyJSON(w, http.StatusBadRequest, "missing store id")
		return
	}
	existed, err := c.AddEvictLeader(uint64(*body.Store))
	var known *model.Error
	switch {
	case err != nil && existed && errors.As(err, &known):
		// The answer of the scheduler's own endpoint is wrapped once more.
		text, encodeErr := json.Marshal(known.Error())
		if encodeErr != nil {
			replyError(w, encodeErr)
			return
		}
		replyJSON(w, known.Status, string(text)+"\n")
	case err != nil:
		replyError(w, err)
	case existed:
		replyJSON(w, http.StatusOK, "The scheduler has been applied to the store.")
	default:
		replyJSON(w, http.StatusOK, "The scheduler is created.")
	}
}

func pauseScheduler(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	var body struct {
		Delay *float64 `json:"delay"`
	}
	if !tryDecode(w, r, &body) {
		return
	}
	if body.Delay == nil {
		replyJSON(w, http.StatusBadRequest, "missing pause time")
		return
	}
	pause := time.Duration(*body.Delay * float64(time.Second))
	if err := c.PauseScheduler(r.PathValue("name"), pause); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "Pause or resume the scheduler successfully.")
}

func deleteScheduler(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	name := r.PathValue("name")
	if id, ok := model.EvictLeaderStore(name); ok {
		evictDelete(w, r, c, id)
		return
	}
	if err := c.RemoveScheduler(name); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The scheduler is removed.")
}

// evictRoot redirects to the path with a slash, while there is such a scheduler.
func evictRoot(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	_, ok, err := c.Evicted()
	if err != nil {
		replyError(w, err)
		return
	}
	if !ok {
		notFound(w)
		return
	}
	http.Redirect(w, r, r.URL.Path+"/", http.StatusTemporaryRedirect)
}

func schedulerConfig(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	everything := []map[string]string{{"start-key": "", "end-key": ""}}
	switch r.PathValue("name") {
	case model.EvictLeader:
		ids, ok, err := c.Evicted()
		if err != nil {
			replyError(w, err)
			return
		}
		if !ok {
			notFound(w)
			return
		}
		ranges := map[string]any{}
		for _, id := range ids {
			ranges[strconv.FormatUint(id, 10)] = everything
		}
		replyJSON(w, http.StatusOK, map[string]any{"store-id-ranges": ranges, "batch": 3})
	case "balance-leader-scheduler":
		replyJSON(w, http.StatusOK, map[string]any{"ranges": everything, "batch": 4})
	default:
		notFound(w)
	}
}

func evictConfig(w http.ResponseWriter, r *http.Request, c *model.Cluster) {
	var body struct {
		Store *float64 `json:"store_id"`
	}
	if !tryDecode(w, r, &body) {
		return
	}
	_, ok, err := c.Evicted()
	switch {
	case err != nil:
		replyError(w, err)
		return
	case !ok:
		notFound(w)
		return
	case body.Store == nil:
		replyJSON(w, http.StatusBadRequest, "missing store id")
		return
	}
	if _, err := c.AddEvictLeader(uint64(*body.Store)); err != nil {
		replyError(w, err)
		return
	}
	replyJSON(w, http.StatusOK, "The scheduler has been applied to the store.")
}

func evictDelete(w http.ResponseWriter, _ *http.Request, c *model.Cluster, id uint64) {
	status := http.StatusOK
	switch err := c.RemoveEvictLeader(id); {
	case errors.Is(err, model.ErrSchedulerNotFound):
		status = http.StatusNotFound
	case err != nil:
		replyError(w, err)
		return
	}
	replyJSON(w, status, nil)
}
