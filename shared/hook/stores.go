package hook

import (
	"context"
	"net/http"
	"strings"
)

// Store is a store as PD lists it.
type Store struct {
	ID      uint64
	Address string
	State   string
	// Engine is the value of its label engine, which only stores have that have learners alone.
	Engine string
	// Started is when it has started last, in seconds by its own clock.
	Started int64
	Leaders int
	Regions int
}

// ListStores lists all stores that are no tombstones.
func (p PD) ListStores(ctx context.Context) ([]Store, error) {
	var answer struct {
		Stores []struct {
			Store struct {
				ID        uint64 `json:"id"`
				Address   string `json:"address"`
				StateName string `json:"state_name"`
				Started   int64  `json:"start_timestamp"`
				Labels    []struct {
					Key   string `json:"key"`
					Value string `json:"value"`
				} `json:"labels"`
			} `json:"store"`
			Status struct {
				Leaders int `json:"leader_count"`
				Regions int `json:"region_count"`
			} `json:"status"`
		} `json:"stores"`
	}
	if err := p.Call(ctx, http.MethodGet, "/pd/api/v1/stores", nil, &answer); err != nil {
		return nil, err
	}
	var out []Store
	for _, s := range answer.Stores {
		one := Store{ID: s.Store.ID, Address: s.Store.Address, State: s.Store.StateName, Started: s.Store.Started, Leaders: s.Status.Leaders, Regions: s.Status.Regions}
		for _, l := range s.Store.Labels {
			if strings.EqualFold(l.Key, "engine") {
				one.Engine = l.Value
			}
		}
		out = append(out, one)
	}
	return out, nil
}
