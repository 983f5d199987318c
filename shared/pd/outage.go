package pd

import (
	"context"
	"slices"
	"time"
)

const (
	// outagePause is for how long at least it is not asked again whether regions have lost
	// their majority while the same stores are missed, and outageEase how many times
	// as long as the last answer took: it is as long as the stores have regions.
	outagePause, outageEase = 15 * time.Second, 10
	// outageDeadline bounds one question.
	outageDeadline = 20 * time.Second
)

// UnreachableStores returns the stores with voters that PD does not hear of and that have regions, if
// they are so many that a region may have lost its majority with them; else nil.
// Placement rules may want fewer replicas of some regions, which are not seen then.
func (v View) UnreachableStores() []Store {
	if v.Err != nil {
		return nil
	}
	var out []Store
	for _, s := range v.Stores {
		if s.LacksProcess() && s.Regions > 0 && !s.HasLearnersOnly() {
			out = append(out, s)
		}
	}
	if len(out)+len(v.ForceRemoved) < v.FatalStoreCount() {
		return nil
	}
	return out
}

// FatalStoreCount is with how many stores a region may lose its majority.
func (v View) FatalStoreCount() int { return max(1, v.MaxReplicas-Majority(v.MaxReplicas)+1) }

// lacksMajority reports whether the voters of a region on stores that PD hears of are no
// majority.
func (v View) lacksMajority(r Region) bool {
	voters, alive := 0, 0
	for _, p := range r.Peers {
		if !p.Voter {
			continue
		}
		voters++
		if s, listed := v.Store(p.StoreID); listed && !p.Down && !s.LacksProcess() {
			alive++
		}
	}
	return voters > 0 && alive < Majority(voters)
}

// outage is what is known of regions without a majority in one PD. The Poller's lock
// guards it.
type outage struct {
	found  bool
	asking bool
	stores []string  // that were missed when PD was last asked, by ID
	next   time.Time // when it is asked again
}

// missedStores returns the stores, by ID, with which regions may have lost their majority, and notes
// those in the view that PD has removed since they did.
func (o outage) missedStores(view *View) (ids []string) {
	for _, id := range o.stores {
		if _, listed := view.Store(id); o.found && !listed && view.Bootstrapped {
			view.ForceRemoved = append(view.ForceRemoved, id)
		}
	}
	for _, s := range view.UnreachableStores() {
		ids = append(ids, s.ID)
	}
	return append(ids, view.ForceRemoved...)
}

// checkOutage notes in a view whether a region has lost its majority, by what PD said last,
// and asks it beside the polls when that is due. The caller holds the lock.
func (p *Poller) checkOutage(w *watch, view *View) {
	if view.Err != nil {
		return
	}
	ids := w.outage.missedStores(view)
	if len(ids) == 0 {
		w.outage.found, w.outage.stores = false, nil
		return
	}
	view.MajorityLost = w.outage.found
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
		w.outage.asking, w.outage.stores = false, ids
		w.outage.next = time.Now().Add(max(outagePause, outageEase*time.Since(begin)))
		changed := err == nil && p.watches[w.pd] == w && w.known && len(w.view.UnreachableStores())+len(w.view.ForceRemoved) > 0 && w.view.MajorityLost != found
		if err == nil {
			w.outage.found = found
		}
		if changed {
			w.view.MajorityLost = found
		}
		p.mu.Unlock()
		if changed {
			p.notifySubscribers(w.pd)
		}
	})
}

// hasRegionWithoutMajority asks PD for a region without a majority on some stores.
func (p *Poller) hasRegionWithoutMajority(client Client, view View, stores []string) (bool, error) {
	ctx, cancel := context.WithTimeout(p.ctx, outageDeadline)
	defer cancel()
	for _, id := range stores {
		_, found, err := client.FindRegion(ctx, id, view.lacksMajority)
		if found || err != nil {
			return found, err
		}
	}
	return false, nil
}
