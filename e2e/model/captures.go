package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
)

const (
	// tables are how many tables the changefeeds of a cluster copy.
	tables = 9
	// tablesPerCall are how many of them a call to drain a capture moves.
	tablesPerCall = 3
)

// Captures are the TiCDC captures of one cluster, and what they know together: a real TiCDC
// keeps it in PD's etcd.
type Captures struct {
	mu    sync.Mutex
	have  map[string]int // tables, by capture
	owner string
	// draining is the capture that is being drained; empty if none is.
	draining string
	// stopping are those that were drained: they are given nothing any more.
	stopping map[string]bool
	owners   []string
}

// Start is a capture's process that starts. The first one takes all tables.
func (c *Captures) Start(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.have == nil {
		c.have, c.stopping = map[string]int{}, map[string]bool{}
	}
	if len(c.have) == 0 {
		c.have[name] = tables
	} else if _, runs := c.have[name]; !runs {
		// The owner gives a new capture its share.
		c.have[name] = 0
		for _, other := range c.names() {
			if share := c.have[other] - tables/len(c.have); other != name && share > 0 {
				c.have[other] -= share
				c.have[name] += share
			}
		}
	}
	c.elect()
}

// Stop is a capture's process that ends. It returns what it still had and could have
// handed over; empty if nothing.
func (c *Captures) Stop(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	had, owned := c.have[name], c.owner == name
	delete(c.have, name)
	delete(c.stopping, name)
	if c.draining == name {
		c.draining = ""
	}
	if owned {
		c.owner = ""
		c.elect()
	}
	takers := c.takers(name)
	if len(takers) == 0 {
		if names := c.names(); len(names) > 0 {
			c.have[names[0]] += had
		}
		return ""
	}
	c.have[takers[0]] += had
	if had > 0 || owned {
		return fmt.Sprintf("capture %s ends with %d tables, owner: %t", name, had, owned)
	}
	return ""
}

// Owners are the captures that have been the owner, one after the other.
func (c *Captures) Owners() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.owners)
}

// API answers what a capture answers, by TiCDC's documentation of its HTTP API.
func (c *Captures) API(name string) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /api/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		replyJSON(w, http.StatusOK, map[string]any{"id": name, "is_owner": c.owner == name})
	})
	mux.HandleFunc("GET /api/v1/captures", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		list := []map[string]any{}
		for _, each := range c.names() {
			list = append(list, map[string]any{"id": each, "is_owner": each == c.owner})
		}
		replyJSON(w, http.StatusOK, list)
	})
	mux.HandleFunc("POST /api/v1/owner/resign", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		former := c.owner
		c.owner = ""
		c.elect(former)
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("PUT /api/v1/captures/drain", c.drain)
	return mux
}

// drain moves some tables away at each call.
func (c *Captures) drain(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		ID string `json:"capture_id"`
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		replyJSON(w, http.StatusBadRequest, map[string]any{"error_msg": err.Error()})
		return
	}
	if c.draining != "" && c.draining != asked.ID {
		replyJSON(w, http.StatusServiceUnavailable, map[string]any{"error_msg": "another capture is being drained"})
		return
	}
	c.draining, c.stopping[asked.ID] = asked.ID, true
	if takers := c.takers(asked.ID); len(takers) > 0 && c.have[asked.ID] > 0 {
		moved := min(tablesPerCall, c.have[asked.ID])
		c.have[asked.ID] -= moved
		c.have[takers[0]] += moved
	}
	if c.have[asked.ID] == 0 {
		c.draining = ""
	}
	replyJSON(w, http.StatusAccepted, map[string]any{"current_table_count": c.have[asked.ID]})
}

// elect makes the last capture by name the owner, not the one that has just resigned, if
// there is none.
func (c *Captures) elect(not ...string) {
	names := c.takers(not...)
	if c.owner != "" || len(names) == 0 {
		return
	}
	c.owner = names[len(names)-1]
	c.owners = append(c.owners, c.owner)
}

// takers are the captures that may be given something.
func (c *Captures) takers(not ...string) []string {
	return slices.DeleteFunc(c.names(), func(n string) bool { return c.stopping[n] || slices.Contains(not, n) })
}

func (c *Captures) names() []string { return slices.Sorted(maps.Keys(c.have)) }

func replyJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // who asked may have gone
}
