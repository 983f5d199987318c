package pdtest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// PD is a made-up PD. All its methods may be used concurrently.
type PD struct {
	mu      sync.Mutex
	view    pd.View
	regions []pd.Region
	placed  []pd.Region
	removed []string
	servers []pd.Server
	config  map[string]any
	nextID  int
	refuse  error
	calls   []string
	polls   int
	slow    int
	held    bool
	leaving map[string]int // polls until a store that is Offline is gone
	gone    []string       // stores that are tombstones
}

var _ pd.Client = (*PD)(nil)

// New returns a PD that says what view says.
func New(view pd.View) *PD {
	return &PD{nextID: 1, view: view, config: map[string]any{}, leaving: map[string]int{}}
}

// Change changes what PD says. The slices of the View are the test's to change.
func (p *PD) Change(change func(*pd.View)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.view)
}

// Fail has PD not answer to View, for an error, or answer again with nil.
func (p *PD) Fail(err error) { p.Change(func(v *pd.View) { v.Err = err }) }

// Refuse has every order refused with an error, nil for none.
func (p *PD) Refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = err
}

// DelayRemoval has a store that is deleted be seen Offline by that many polls; by
// default it goes at once.
func (p *PD) DelayRemoval(polls int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.slow = polls
}

// HoldLeaders has leaders stay where they are whatever evicts them, or move again.
func (p *PD) HoldLeaders(held bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = held
}

// SetRegions says what UnhealthyRegions returns.
func (p *PD) SetRegions(regions ...pd.Region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.regions = regions
}

// Register adds a store that is Up at an address, unless there is one, and
// returns its ID.
func (p *PD) Register(address string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if store, ok := p.view.StoreAt(address); ok {
		return store.ID
	}
	id := strconv.Itoa(p.nextID)
	p.nextID++
	p.view.Bootstrapped = true
	p.view.Stores = append(p.view.Stores, pd.Store{ID: id, Address: address, State: pd.StateUp, Started: true})
	return id
}

// SetState changes the state of every store, or of those with the given IDs.
func (p *PD) SetState(state string, ids ...string) {
	p.Change(func(v *pd.View) {
		for i := range v.Stores {
			if len(ids) == 0 || slices.Contains(ids, v.Stores[i].ID) {
				v.Stores[i].State = state
			}
		}
	})
}

// Labels returns the labels of a store.
func (p *PD) Labels(id string) map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	store, _ := p.view.Store(id)
	return maps.Clone(store.Labels)
}

// Config returns what SetConfig has set.
func (p *PD) Config() map[string]any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.config)
}

// Calls returns the orders that were given and not refused, in turn.
func (p *PD) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Polls returns how often PD was asked for a View.
func (p *PD) Polls() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.polls
}

// View implements pd.Client.
func (p *PD) View(context.Context) (pd.View, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.polls++
	if p.view.Err != nil {
		return pd.View{Err: p.view.Err}, p.view.Err
	}
	for id, left := range p.leaving {
		if p.leaving[id] = left - 1; left <= 0 {
			p.makeTombstone(id)
		}
	}
	v := p.view
	v.Members, v.Stores = slices.Clone(v.Members), slices.Clone(v.Stores)
	v.EvictLeader, v.Rules = slices.Clone(v.EvictLeader), slices.Clone(v.Rules)
	return v, nil
}

// Refresh implements pd.Client.
func (p *PD) Refresh(ctx context.Context, before pd.View) (pd.View, error) {
	v, err := p.View(ctx)
	v, _ = v.WithSettings(before)
	return v, err
}

// UnhealthyRegions implements pd.Client.
func (p *PD) UnhealthyRegions(context.Context) ([]pd.Region, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.regions), p.view.Err
}

// SetPlaced says which regions the stores have, for FindRegion.
func (p *PD) SetPlaced(regions ...pd.Region) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.placed = regions
}

// SetRemoved says which stores were removed by force, for RemovedStores.
func (p *PD) SetRemoved(ids ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.removed = ids
}

// RemovedStores implements pd.Client.
func (p *PD) RemovedStores(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.removed), p.view.Err
}

// FindRegion implements pd.Client.
func (p *PD) FindRegion(_ context.Context, storeID string, sought func(pd.Region) bool) (pd.Region, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.placed {
		if slices.ContainsFunc(r.Peers, func(q pd.Peer) bool { return q.StoreID == storeID }) && sought(r) {
			return r, true, nil
		}
	}
	return pd.Region{}, false, p.view.Err
}

// Close implements pd.Client.
func (p *PD) Close() {}
