package handover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// scheduler is PD's one scheduler that keeps leaders away from stores.
const scheduler = "evict-leader-scheduler"

// errLoading is the error of a PD that keeps leaders away from stores once it has loaded its
// schedulers. A new leader of PD waits up to five minutes for the heartbeats of nearly all
// regions before, and says 404 until then.
var errLoading = errors.New("PD has a new leader, which has not loaded its schedulers yet")

// pdServer is a PD, by its HTTP API.
type pdServer struct{ hook.PD }

// evictedStores returns the stores that PD keeps leaders away from. Without any PD has no
// such scheduler and says 404.
func (p pdServer) evictedStores(ctx context.Context) (map[uint64]bool, error) {
	var answer struct {
		Stores map[uint64]json.RawMessage `json:"store-id-ranges"`
	}
	if err := p.Call(ctx, http.MethodGet, "/pd/api/v1/scheduler-config/"+scheduler+"/list", nil, &answer); err != nil && !hook.IsNotFound(err) {
		return nil, fmt.Errorf("list stores without leaders: %w", err)
	}
	out := map[uint64]bool{}
	for id := range answer.Stores {
		out[id] = true
	}
	return out, nil
}

// evict has PD take the leaders of a store away and keep them away.
func (p pdServer) evict(ctx context.Context, id uint64) error {
	body := map[string]any{"name": scheduler, "store_id": id}
	if err := p.Call(ctx, http.MethodPost, "/pd/api/v1/schedulers", body, nil); err != nil {
		return fmt.Errorf("evict leaders of store %d: %w", id, err)
	}
	return nil
}

// checkLoaded returns errLoading while PD runs no scheduler at all, and is to run that one.
func (p pdServer) checkLoaded(ctx context.Context) error {
	var running []string
	if err := p.Call(ctx, http.MethodGet, "/pd/api/v1/schedulers", nil, &running); err != nil || len(running) > 0 {
		return err
	}
	type entry struct {
		Type     string `json:"type"`
		Disabled bool   `json:"disable"`
	}
	var configured struct {
		Schedulers []entry `json:"schedulers-v2"`
	}
	if err := p.Call(ctx, http.MethodGet, "/pd/api/v1/config/schedule", nil, &configured); err != nil {
		return err
	}
	if slices.Contains(configured.Schedulers, entry{Type: "evict-leader"}) {
		return errLoading
	}
	return nil
}

// restoreLeaders lets a store lead again; harmless if it may.
func (p pdServer) restoreLeaders(ctx context.Context, id uint64) error {
	if err := p.checkLoaded(ctx); err != nil {
		return fmt.Errorf("let store %d lead again: %w", id, err)
	}
	err := p.Call(ctx, http.MethodDelete, fmt.Sprintf("/pd/api/v1/schedulers/%s-%d", scheduler, id), nil, nil)
	if err != nil && !hook.IsNotFound(err) {
		return fmt.Errorf("let store %d lead again: %w", id, err)
	}
	return nil
}
