package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// ListTiKVs lists the TiKVs that PD knows. It asks again until a timeout has passed: PD may be without a leader
// for a moment.
func (c Cluster) ListTiKVs(ctx context.Context, timeout time.Duration) ([]hook.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, max(timeout, tidyPause))
	defer cancel()
	for {
		out, err := c.listTiKVs(ctx)
		if err == nil || !hook.Pause(ctx, tidyPause) {
			return out, err
		}
	}
}

func (c Cluster) listTiKVs(ctx context.Context) ([]hook.Store, error) {
	all, err := c.pd().ListStores(ctx)
	if err != nil {
		return nil, fmt.Errorf("list stores of PD: %w", err)
	}
	return slices.DeleteFunc(all, func(s hook.Store) bool { return v1alpha1.HasLearnersOnly(s.Engine) }), nil
}

// ConfirmNoStart fails if a TiKV has started since others were listed. BR writes a log in no order, and
// switches garbage collection off for it in every TiKV that runs: one that starts collects again, and
// may remove what the rest of the log needs.
func (c Cluster) ConfirmNoStart(ctx context.Context, before []hook.Store, timeout time.Duration) error {
	now, err := c.ListTiKVs(ctx, timeout)
	if err != nil {
		return fmt.Errorf("everything is written, but it is not known whether a TiKV has started meanwhile: %w", err)
	}
	var started []string
	for _, s := range now {
		if !slices.ContainsFunc(before, func(b hook.Store) bool { return b.ID == s.ID && b.Started == s.Started }) {
			started = append(started, s.Address)
		}
	}
	if len(started) > 0 {
		return fmt.Errorf("TiKV %s has started while the log was restored, with garbage collection on, which BR had switched off: rows may be missing or wrong: find out why it started, drop the databases, and recreate this Restore", strings.Join(started, ", "))
	}
	return nil
}
