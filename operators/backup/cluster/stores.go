package cluster

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// engineLabel is by which PD knows stores that have learners only.
const engineLabel = "engine"

// TiKV is a TiKV of the cluster, as it has started last.
type TiKV struct {
	ID      uint64
	Address string
	// Started is when, in seconds by its own clock.
	Started int64
}

// ListTiKVs lists the TiKVs that PD knows. It asks again until a timeout has passed: PD may be without a leader
// for a moment.
func (c Cluster) ListTiKVs(ctx context.Context, timeout time.Duration) ([]TiKV, error) {
	ctx, cancel := context.WithTimeout(ctx, max(timeout, tidyPause))
	defer cancel()
	for {
		out, err := c.listTiKVs(ctx)
		if err == nil || !hook.Pause(ctx, tidyPause) {
			return out, err
		}
	}
}

func (c Cluster) listTiKVs(ctx context.Context) ([]TiKV, error) {
	var all struct {
		Stores []struct {
			Store struct {
				ID      uint64 `json:"id"`
				Address string `json:"address"`
				Started int64  `json:"start_timestamp"`
				Labels  []struct {
					Key   string `json:"key"`
					Value string `json:"value"`
				} `json:"labels"`
			} `json:"store"`
		} `json:"stores"`
	}
	if err := c.pd().Call(ctx, http.MethodGet, storesPath, nil, &all); err != nil {
		return nil, fmt.Errorf("list stores of PD: %w", err)
	}
	var out []TiKV
	for _, s := range all.Stores {
		learns := false
		for _, l := range s.Store.Labels {
			learns = learns || strings.EqualFold(l.Key, engineLabel) && v1alpha1.HasLearnersOnly(l.Value)
		}
		if !learns {
			out = append(out, TiKV{s.Store.ID, s.Store.Address, s.Store.Started})
		}
	}
	return out, nil
}

// ConfirmNoStart fails if a TiKV has started since others were listed. BR writes a log in no order, and
// switches garbage collection off for it in every TiKV that runs: one that starts collects again, and
// may remove what the rest of the log needs.
func (c Cluster) ConfirmNoStart(ctx context.Context, before []TiKV, timeout time.Duration) error {
	now, err := c.ListTiKVs(ctx, timeout)
	if err != nil {
		return fmt.Errorf("everything is written, but it is not known whether a TiKV has started meanwhile: %w", err)
	}
	var started []string
	for _, s := range now {
		if !slices.ContainsFunc(before, func(b TiKV) bool { return b.ID == s.ID && b.Started == s.Started }) {
			started = append(started, s.Address)
		}
	}
	if len(started) > 0 {
		return fmt.Errorf("TiKV %s has started while the log was restored, with garbage collection on, which BR had switched off: rows may be missing or wrong: find out why it started, drop the databases, and recreate this Restore", strings.Join(started, ", "))
	}
	return nil
}
