package polling

import (
	"context"
	"slices"
	"time"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

const (
	// outagePause is for how long at least it is not asked again whether regions have lost
	// their majority while the same stores are missed, and outageEase how many times
	// as long as the last answer took: it is as long as the stores have regions.
	outagePause, outageEase = 15 * time.Second, 10
	// outageDeadline bounds one question.
	outageDeadline = 20 * time.Second
)

// outage is what is known of regions without a majority in one PD. The Poller's lock
// guards it.
type outage struct {
	found  bool
	asking bool
	begun  bool      // it is known which stores PD had removed by force before it was watched
	failed bool      // PD did not answer when it was last asked
	stores []string  // that were missed when PD was last asked, by ID
	next   time.Time // when it is asked again
	// removed are stores that PD had removed by force before it was watched, by ID, until PD has
	// said whether regions lack a majority with them.
	removed []string
}

// missedStores returns the stores, by ID, with which regions may have lost their majority, and notes
// those in the view that PD has removed since they did.
func (o outage) missedStores(view *pd.View) (ids []string) {
	removed := o.removed
	if o.found {
		removed = slices.Concat(o.stores, removed)
	}
	for _, id := range removed {
		if _, listed := view.Store(id); !listed && view.Bootstrapped {
			view.ForceRemoved = append(view.ForceRemoved, id)
		}
	}
	for _, s := range view.UnreachableStores() {
		ids = append(ids, s.ID)
	}
	return append(ids, view.ForceRemoved...)
}

// askRemoved asks a PD that this process has not watched before which stores it has removed by force:
// what another process knew of them ended with it. Before there are stores none is.
func (p *Poller) askRemoved(ctx context.Context, w *watch, view pd.View) {
	p.mu.Lock()
	begun, client := w.outage.begun, w.client
	p.mu.Unlock()
	if begun || client == nil || view.Err != nil {
		return
	}
	var removed []string
	if view.Bootstrapped {
		ctx, cancel := context.WithTimeout(ctx, p.timing.Deadline)
		defer cancel()
		var err error
		if removed, err = client.RemovedStores(ctx); err != nil {
			return // the next poll asks again
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.outage.begun, w.outage.removed = true, removed
}

// checkOutage notes in a view whether a region has lost its majority, by what PD said last,
// and asks it beside the polls when that is due. The caller holds the lock.
func (p *Poller) checkOutage(w *watch, view *pd.View) {
	if view.Err != nil {
		return
	}
	ids := w.outage.missedStores(view)
	if len(ids) == 0 {
		w.outage.found, w.outage.stores = false, nil
		view.MajorityUnknown = !w.outage.begun
		return
	}
	view.MajorityLost, view.MajorityUnknown = w.outage.found, w.outage.failed || !slices.Equal(w.outage.stores, ids)
	if w.outage.asking || p.ctx == nil || p.ctx.Err() != nil || slices.Equal(w.outage.stores, ids) && time.Now().Before(w.outage.next) {
		return
	}
	client, err := w.open(p.dial)
	if err != nil {
		return
	}
	w.outage.asking = true
	seen := *view
	// A region without its majority has that many peers on missed stores: it is found
	// without the last of them.
	look := ids[:max(len(ids)-view.FatalStoreCount()+1, 0)]
	p.running.Go(func() {
		begin := time.Now()
		found, err := p.hasRegionWithoutMajority(client, seen, look)
		p.mu.Lock()
		defer p.mu.Unlock()
		w.outage.asking, w.outage.failed, w.outage.stores = false, err != nil, ids
		w.outage.next = time.Now().Add(max(outagePause, outageEase*time.Since(begin)))
		if err == nil {
			w.outage.found, w.outage.removed = found, nil
			if w.view.MajorityLost != found || w.view.MajorityUnknown {
				w.kick() // the next View has it
			}
		}
	})
}

// hasRegionWithoutMajority asks PD for a region without a majority on some stores.
func (p *Poller) hasRegionWithoutMajority(client pd.Client, view pd.View, stores []string) (bool, error) {
	ctx, cancel := context.WithTimeout(p.ctx, outageDeadline)
	defer cancel()
	for _, id := range stores {
		_, found, err := client.FindRegion(ctx, id, view.LacksMajority)
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}
