package ticdc

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdetcd"
)

// maxAsked bounds a request, in bytes.
const maxAsked = 1 << 16

// Run is a capture until ctx ends.
func Run(ctx context.Context, log *slog.Logger, cfg *Config) (err error) {
	over, err := cfg.TLS.Client()
	if err != nil {
		return err
	}
	etcd, err := pdetcd.Connect(ctx, cfg.PD, over)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, etcd.Close()) }()
	api, err := cfg.TLS.Listen(ctx, cfg.Addr)
	if err != nil {
		return err
	}
	c, err := registerCapture(ctx, log, etcd, cfg.Advertise)
	if err != nil {
		return errors.Join(err, api.Close())
	}
	err = process.RunAll(ctx, c.look, c.campaign, func(ctx context.Context) error { return process.ServeHTTP(ctx, api, c.handler()) })
	return errors.Join(err, c.leave(context.WithoutCancel(ctx)))
}

// handler answers what operators and probes ask, by TiCDC's documentation of its HTTP API.
func (c *capture) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) {
		switch seen := c.seen.Load(); {
		case seen == nil:
			replyJSON(w, http.StatusServiceUnavailable, map[string]any{"error_msg": "PD has not answered yet"})
		case seen.failed != "":
			replyJSON(w, http.StatusInternalServerError, map[string]any{"error_msg": seen.failed})
		default:
			replyJSON(w, http.StatusOK, map[string]any{"id": c.id, "is_owner": c.owns.Load()})
		}
	})
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		replyJSON(w, http.StatusOK, map[string]any{"id": c.id, "is_owner": c.owns.Load()})
	})
	mux.HandleFunc("GET /api/v1/captures", c.list)
	mux.HandleFunc("POST /api/v1/owner/resign", func(w http.ResponseWriter, _ *http.Request) {
		if !c.owns.Load() {
			replyJSON(w, http.StatusServiceUnavailable, map[string]any{"error_msg": "this capture is not the owner"})
			return
		}
		select {
		case c.resign <- struct{}{}:
		default: // it has been asked already
		}
		replyJSON(w, http.StatusAccepted, nil)
	})
	mux.HandleFunc("PUT /api/v1/captures/drain", c.drain)
	return mux
}

func (c *capture) list(w http.ResponseWriter, r *http.Request) {
	now, err := c.read(r.Context())
	if err != nil {
		replyJSON(w, http.StatusInternalServerError, map[string]any{"error_msg": err.Error()})
		return
	}
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(now.captures)) {
		list = append(list, map[string]any{"id": id, "is_owner": id == now.owner, "address": now.captures[id]})
	}
	replyJSON(w, http.StatusOK, list)
}

// drain has the owner move the tables of a capture away, and tells how many are left. One is
// drained at a time.
func (c *capture) drain(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID string `json:"capture_id"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAsked)).Decode(&asked); err != nil {
		replyJSON(w, http.StatusBadRequest, map[string]any{"error_msg": err.Error()})
		return
	}
	now, err := c.read(r.Context())
	switch {
	case err != nil:
		replyJSON(w, http.StatusInternalServerError, map[string]any{"error_msg": err.Error()})
		return
	case now.captures[asked.ID] == "":
		replyJSON(w, http.StatusBadRequest, map[string]any{"error_msg": "there is no such capture"})
		return
	case now.owner == "", len(now.stopping) > 0 && !now.stopping[asked.ID]:
		replyJSON(w, http.StatusServiceUnavailable, map[string]any{"error_msg": "there is no owner, or another capture is being drained"})
		return
	}
	// It ends with the capture that was asked.
	if err := c.put(r.Context(), "stopping/"+asked.ID, c.id, clientv3.WithLease(c.session.Lease())); err != nil {
		replyJSON(w, http.StatusInternalServerError, map[string]any{"error_msg": err.Error()})
		return
	}
	replyJSON(w, http.StatusAccepted, map[string]any{"current_table_count": now.count(asked.ID)})
}

func replyJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body) // who asked may have gone
	}
}
