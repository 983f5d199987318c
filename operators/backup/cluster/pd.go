package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

const (
	// ofBR begins the names of what BR has PD hold back from garbage collection.
	ofBR = "br-"
	// pausePoint ends the name of what BR has PD hold back for a task of log backup that is paused, and
	// errorPoint of what each TiKV does for one that it has paused. flushPoint begins the name
	// of what it does for any.
	pausePoint = "_pause_safepoint"
	errorPoint = "-pause-guard"
	flushPoint = "backup-stream-"
	// TidyTimeout bounds what is undone in PD: it ends, with the removal of files, before the
	// pod's grace does.
	TidyTimeout = 8 * time.Second
	// tidyPause is between two attempts to undo it.
	tidyPause = 2 * time.Second

	safePointsPath = "/pd/api/v1/gc/safepoint"
	schedulersPath = "/pd/api/v1/schedulers"
)

// SafePoint is what a service has PD hold back from garbage collection.
type SafePoint struct {
	ServiceID string `json:"service_id"`
	SafePoint uint64 `json:"safe_point"`
}

// IsHeldByBR reports whether a run of BR holds it.
func (s SafePoint) IsHeldByBR() bool { return strings.HasPrefix(s.ServiceID, ofBR) }

// IsForTask reports whether it is held for a task of log backup. What TiKV has asked for stays for up to
// a day after the task is stopped.
func (s SafePoint) IsForTask(task string) bool {
	return s.ServiceID == task+pausePoint || strings.HasPrefix(s.ServiceID, flushPoint+task+"-") ||
		strings.HasPrefix(s.ServiceID, task+"-") && strings.HasSuffix(s.ServiceID, errorPoint)
}

func (c Cluster) pd() hook.PD { return hook.NewPD(c.PD, hook.TLS{Dir: c.TLS}) }

// RemoveLeftovers removes what BR has left in PD of one run: safe points that are of it, and schedulers
// that are paused now and were not before. It does so also when the run was asked to stop. PD
// forgets both by itself, after five minutes, so that no run fails of it.
func (c Cluster) RemoveLeftovers(ctx context.Context, log io.Writer, left func(SafePoint) bool, before []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), TidyTimeout)
	defer cancel()
	for {
		err := errors.Join(c.RemoveSafePoints(ctx, left), c.resumeSchedulers(ctx, before))
		if err == nil {
			return
		}
		if !hook.Pause(ctx, tidyPause) {
			_, _ = fmt.Fprintf(log, "what BR has left in PD could not be removed, and passes after five minutes: %v\n", err)
			return
		}
	}
}

// RemoveSafePoints removes safe points, which keep old data.
func (c Cluster) RemoveSafePoints(ctx context.Context, left func(SafePoint) bool) error {
	pd := c.pd()
	var all struct {
		Points []SafePoint `json:"service_gc_safe_points"`
	}
	if err := pd.Call(ctx, http.MethodGet, safePointsPath, nil, &all); err != nil {
		return fmt.Errorf("list safe points of PD: %w", err)
	}
	var errs []error
	for _, s := range all.Points {
		if !left(s) {
			continue
		}
		if err := pd.Call(ctx, http.MethodDelete, safePointsPath+"/"+url.PathEscape(s.ServiceID), nil, nil); err != nil {
			errs = append(errs, fmt.Errorf("remove safe point %s of PD: %w", s.ServiceID, err))
		}
	}
	return errors.Join(errs...)
}

// ListPausedSchedulers lists the schedulers of PD that are paused.
func (c Cluster) ListPausedSchedulers(ctx context.Context) ([]string, error) {
	var out []string
	if err := c.pd().Call(ctx, http.MethodGet, schedulersPath+"?status=paused", nil, &out); err != nil {
		return nil, fmt.Errorf("list paused schedulers of PD: %w", err)
	}
	return out, nil
}

// resumeSchedulers resumes schedulers. BR does so itself, unless it was killed.
func (c Cluster) resumeSchedulers(ctx context.Context, before []string) error {
	now, err := c.ListPausedSchedulers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range now {
		if slices.Contains(before, name) {
			continue
		}
		if err := c.pd().Call(ctx, http.MethodPost, schedulersPath+"/"+url.PathEscape(name), map[string]int{"delay": 0}, nil); err != nil {
			errs = append(errs, fmt.Errorf("resume scheduler %s of PD: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
