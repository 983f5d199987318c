package model

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// EvictLeader is the name of the one scheduler that keeps leaders off stores.
const EvictLeader = "evict-leader-scheduler"

// Scheduler is one scheduler of PD.
type Scheduler struct {
	Name        string    `json:"name"`
	PausedUntil time.Time `json:"pausedUntil,omitzero"`
	// Stores are the stores that evict-leader-scheduler works on.
	Stores []uint64 `json:"stores,omitempty"`
}

func defaultSchedulers() []*Scheduler {
	return []*Scheduler{
		{Name: "balance-region-scheduler"},
		{Name: "balance-leader-scheduler"},
		{Name: "balance-hot-region-scheduler"},
		{Name: "evict-slow-store-scheduler"},
		{Name: "evict-stopping-store-scheduler"},
	}
}

// Schedulers returns the names of the schedulers; status is empty for all,
// "paused" or "disabled".
func (c *Cluster) Schedulers(status string) ([]string, error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return nil, ErrNotBootstrapped
	}
	names := []string{}
	for _, s := range c.st.Schedulers {
		paused := s.PausedUntil.After(c.now())
		if status == "" || status == "paused" && paused {
			names = append(names, s.Name)
		}
	}
	return names, nil
}

// Evicted returns the stores in evict-leader-scheduler, and false when there is
// no such scheduler.
func (c *Cluster) Evicted() ([]uint64, bool, error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return nil, false, ErrNotBootstrapped
	}
	if s := c.scheduler(EvictLeader); s != nil {
		return slices.Clone(s.Stores), true, nil
	}
	return nil, false, nil
}

// AddEvictLeader puts a store into evict-leader-scheduler. It says whether the
// scheduler was there already, in which case PD answers differently.
func (c *Cluster) AddEvictLeader(store uint64) (existed bool, err error) {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return false, ErrNotBootstrapped
	}
	s := c.scheduler(EvictLeader)
	if c.st.Stores[store] == nil {
		e := storeNotFound(store)
		e.Status = http.StatusInternalServerError
		return s != nil, e
	}
	if s == nil {
		c.st.Schedulers = append(c.st.Schedulers, &Scheduler{Name: EvictLeader, Stores: []uint64{store}})
		return false, c.save()
	}
	if !slices.Contains(s.Stores, store) {
		s.Stores = append(s.Stores, store)
		slices.Sort(s.Stores)
	}
	return true, c.save()
}

// RemoveEvictLeader takes a store out of evict-leader-scheduler; the scheduler
// goes with its last store.
func (c *Cluster) RemoveEvictLeader(store uint64) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	s := c.scheduler(EvictLeader)
	if s == nil || !slices.Contains(s.Stores, store) {
		return ErrSchedulerNotFound
	}
	c.dropFromSchedulers(store)
	return c.save()
}

// AddScheduler adds a scheduler that the model knows by name only.
func (c *Cluster) AddScheduler(name string) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	if c.scheduler(name) == nil {
		c.st.Schedulers = append(c.st.Schedulers, &Scheduler{Name: name})
	}
	return c.save()
}

// RemoveScheduler removes a scheduler with all its stores.
func (c *Cluster) RemoveScheduler(name string) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	if c.scheduler(name) == nil {
		return ErrSchedulerNotFound
	}
	c.st.Schedulers = slices.DeleteFunc(c.st.Schedulers, func(s *Scheduler) bool { return s.Name == name })
	return c.save()
}

// PauseScheduler stops a scheduler for a while; 0 lets it go on. The name "all"
// means every scheduler.
func (c *Cluster) PauseScheduler(name string, pause time.Duration) error {
	c.lock()
	defer c.mu.Unlock()
	if !c.isBootstrapped() {
		return ErrNotBootstrapped
	}
	found := false
	for _, s := range c.st.Schedulers {
		if name == "all" || s.Name == name {
			s.PausedUntil = c.now().Add(pause)
			found = true
		}
	}
	if !found {
		return ErrSchedulerNotFound
	}
	return c.save()
}

func (c *Cluster) scheduler(name string) *Scheduler {
	for _, s := range c.st.Schedulers {
		if s.Name == name {
			return s
		}
	}
	return nil
}

func (c *Cluster) evicted() map[uint64]bool {
	out := map[uint64]bool{}
	s := c.scheduler(EvictLeader)
	if s == nil || s.PausedUntil.After(c.now()) {
		return out
	}
	for _, id := range s.Stores {
		out[id] = true
	}
	return out
}

func (c *Cluster) dropFromSchedulers(store uint64) {
	s := c.scheduler(EvictLeader)
	if s == nil {
		return
	}
	s.Stores = slices.DeleteFunc(s.Stores, func(id uint64) bool { return id == store })
	if len(s.Stores) == 0 {
		c.st.Schedulers = slices.DeleteFunc(c.st.Schedulers, func(o *Scheduler) bool { return o == s })
	}
}

// EvictLeaderStore splits a name such as evict-leader-scheduler-4 into its store id.
func EvictLeaderStore(name string) (uint64, bool) {
	rest, ok := strings.CutPrefix(name, EvictLeader+"-")
	if !ok {
		return 0, false
	}
	var id uint64
	if _, err := fmt.Sscanf(rest, "%d", &id); err != nil {
		return 0, false
	}
	return id, true
}
