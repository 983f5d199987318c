package storetest

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/tidb-groups/tidb-groups/shared/pd"
)

// ClusterID of every made-up PD.
const ClusterID = "7480000000000000001"

// PD is a made-up PD.
type PD struct {
	mu     sync.Mutex
	view   pd.View
	nextID int
	refuse error
	calls  []string
	polls  int
}

func newPD() *PD {
	return &PD{nextID: 1, view: pd.View{
		ClusterID: ClusterID, Leader: "pd-0", Members: []pd.Member{{Name: "pd-0", ID: "1", Healthy: true}},
		LocationLabels: []string{"zone", "host"}, MaxReplicas: 3, PlacementRules: true,
	}}
}

// Change changes what PD says.
func (p *PD) Change(change func(*pd.View)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(&p.view)
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
	p.view.Stores = append(slices.Clone(p.view.Stores), pd.Store{ID: id, Address: address, State: pd.StateUp, Started: true})
	return id
}

// State changes the state of every store, or of those with the given IDs.
func (p *PD) State(state string, ids ...string) {
	p.Change(func(v *pd.View) {
		v.Stores = slices.Clone(v.Stores)
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

// Refuse has every order refused with an error, nil for none.
func (p *PD) Refuse(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = err
}

// Calls returns the orders that were given, in turn.
func (p *PD) Calls() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// Polls returns how often PD was asked.
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
	return p.view, nil
}

// SetStoreLabels implements pd.Client.
func (p *PD) SetStoreLabels(_ context.Context, id string, labels map[string]string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return p.refuse
	}
	p.calls = append(p.calls, "labels "+id)
	p.view.Stores = slices.Clone(p.view.Stores)
	for i, store := range p.view.Stores {
		if store.ID == id {
			merged := map[string]string{}
			maps.Copy(merged, store.Labels)
			maps.Copy(merged, labels)
			p.view.Stores[i].Labels = merged
		}
	}
	return nil
}

// EnablePlacementRules implements pd.Client.
func (p *PD) EnablePlacementRules(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refuse != nil {
		return p.refuse
	}
	p.calls = append(p.calls, "placement-rules")
	p.view.PlacementRules = true
	return nil
}

// Close implements pd.Client.
func (p *PD) Close() {}
