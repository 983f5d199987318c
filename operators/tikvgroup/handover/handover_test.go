package handover

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// fakePD is what a PD answers. It moves a leader with every look at the stores.
type fakePD struct {
	mu      sync.Mutex
	stores  []hook.Store
	evicted map[uint64]bool
	stuck   bool   // leaders stay where they are
	broken  bool   // it answers nothing but 500
	record  string // file that must be there when it is told to evict
	early   bool   // it was not
	hears   int    // after how many looks it has heard of every store; 0 for never
	loads   int    // after how many looks at its schedulers it has loaded them; 0 if it has
	looks   int    // how often it has told of the stores
	last    int    // after how many looks the time is over; 0 for never
	over    func() // ends the time
}

func (p *fakePD) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var id uint64
	switch {
	case p.broken:
		http.Error(w, "no leader", http.StatusInternalServerError)
	case r.Method == http.MethodGet && r.URL.Path == "/pd/api/v1/stores":
		if p.looks++; p.looks == p.last {
			p.over()
		}
		if p.hears--; p.hears == 0 {
			for i := range p.stores {
				p.stores[i].State = up
			}
		}
		all := []map[string]any{}
		for i := range p.stores {
			s := &p.stores[i]
			labels := []map[string]string{}
			if s.Engine != "" {
				labels = append(labels, map[string]string{"key": "engine", "value": "tiflash"})
			}
			all = append(all, map[string]any{
				"store":  map[string]any{"id": s.ID, "address": s.Address, "state_name": s.State, "labels": labels},
				"status": map[string]any{"leader_count": s.Leaders, "region_count": s.Regions},
			})
			if p.evicted[s.ID] && !p.stuck {
				s.Leaders = max(0, s.Leaders-1)
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"stores": all})
	case r.Method == http.MethodGet && r.URL.Path == "/pd/api/v1/schedulers":
		p.listSchedulers(w)
	case r.Method == http.MethodGet && r.URL.Path == "/pd/api/v1/config/schedule":
		p.showSchedule(w)
	case p.loads > 0 && r.Method != http.MethodPost:
		http.NotFound(w, r)
	case r.Method == http.MethodGet && len(p.evicted) > 0:
		ranges := map[string]any{}
		for id := range p.evicted {
			ranges[fmt.Sprint(id)] = []any{}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"store-id-ranges": ranges})
	case r.Method == http.MethodPost:
		var body struct {
			StoreID uint64 `json:"store_id"`
		}
		_ = json.NewDecoder(r.Body).Decode(&body)
		_, err := os.Stat(p.record)
		p.early = p.early || err != nil
		if p.loads > 0 {
			clear(p.evicted) // it makes another scheduler, and stores that
			p.loads = 0
		}
		p.evicted[body.StoreID] = true
	case r.Method == http.MethodDelete:
		if _, err := fmt.Sscanf(r.URL.Path, "/pd/api/v1/schedulers/evict-leader-scheduler-%d", &id); err != nil || !p.evicted[id] {
			http.Error(w, "scheduler not found", http.StatusNotFound)
			return
		}
		delete(p.evicted, id)
	default:
		http.NotFound(w, r)
	}
}

// listSchedulers answers which schedulers run.
func (p *fakePD) listSchedulers(w http.ResponseWriter) {
	running := []string{"balance-leader-scheduler"}
	if p.loads--; p.loads > 0 {
		running = running[:0]
	} else if len(p.evicted) > 0 {
		running = append(running, scheduler)
	}
	_ = json.NewEncoder(w).Encode(running)
}

// showSchedule answers which schedulers are to run.
func (p *fakePD) showSchedule(w http.ResponseWriter) {
	all := []map[string]any{{"type": "balance-leader", "disable": false}}
	if len(p.evicted) > 0 {
		all = append(all, map[string]any{"type": "evict-leader", "disable": false})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"schedulers-v2": all})
}

// stage is a PD with three stores, and the job for the first of them.
func stage(t *testing.T) (*fakePD, Job) {
	t.Helper()
	job := Job{Address: "b-0:20160", Record: filepath.Join(t.TempDir(), "record"), Poll: time.Millisecond}
	pd := &fakePD{evicted: map[uint64]bool{}, record: job.Record, stores: []hook.Store{
		{ID: 1, Address: "b-0:20160", State: up, Leaders: 5, Regions: 9},
		{ID: 2, Address: "b-1:20160", State: up, Leaders: 5, Regions: 9},
		{ID: 3, Address: "b-2:20160", State: up, Leaders: 5, Regions: 9},
	}}
	server := httptest.NewServer(pd)
	t.Cleanup(server.Close)
	job.PD = server.URL
	return pd, job
}

// KV-16.
func TestALeaderlessStoreIsStoppedAndLeadsAgainWhenItIsBack(t *testing.T) {
	pd, job := stage(t)
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, 0, pd.stores[0].Leaders)
	assert.True(t, pd.evicted[1])
	assert.False(t, pd.early, "PD was told before it was recorded")

	require.NoError(t, job.Start(t.Context(), time.Minute))
	assert.Empty(t, pd.evicted)
	assert.NoFileExists(t, job.Record)
}

// PD lets a new store have the address of one that was removed as destroyed, and lists both until
// that has no region left.
func TestALostStoreAtItsAddressKeepsNoStoreFromGivingItsLeadersAway(t *testing.T) {
	for _, lostIsLast := range []bool{true, false} {
		pd, job := stage(t)
		lost := hook.Store{ID: 9, Address: pd.stores[0].Address, State: "Offline", Regions: 3}
		if lostIsLast {
			pd.stores = append(pd.stores, lost)
		} else {
			pd.stores = append([]hook.Store{lost}, pd.stores...)
		}
		require.NoError(t, job.Stop(t.Context()))
		assert.Equal(t, map[uint64]bool{1: true}, pd.evicted)
	}
}

func TestAnEvictionByAnotherClientStays(t *testing.T) {
	pd, job := stage(t)
	pd.evicted[1] = true
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, 0, pd.stores[0].Leaders, "it waits for them all the same")
	require.NoError(t, job.Start(t.Context(), time.Minute))
	assert.True(t, pd.evicted[1])
}

// A new leader of PD that has not loaded its schedulers makes another one of that name, with the one
// store alone, and forgets the others (Handler.AddEvictOrGrant in PD's sources server).
func TestAnEvictionByAnotherClientStaysAlthoughPDHasANewLeader(t *testing.T) {
	pd, job := stage(t)
	pd.evicted[3], pd.loads = true, 5
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, map[uint64]bool{1: true, 3: true}, pd.evicted)
	assert.Equal(t, 0, pd.stores[0].Leaders)
}

// Nor is it stopped meanwhile as if PD did not answer.
func TestAStoreWaitsUntilPDHasLoadedItsSchedulers(t *testing.T) {
	pd, job := stage(t)
	pd.evicted[3], pd.loads = true, 2*maxFailures
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, map[uint64]bool{1: true, 3: true}, pd.evicted)
	assert.Equal(t, 0, pd.stores[0].Leaders)
}

func TestNoOrderIsSentToPDFor(t *testing.T) {
	for name, change := range map[string]func(*fakePD){
		"a store that PD does not list": func(p *fakePD) { p.stores = p.stores[1:] },
		"a store that leaves":           func(p *fakePD) { p.stores[0].State = "Offline" },
		"a store that is down":          func(p *fakePD) { p.stores[0].State = "Down" },
		"a store without regions":       func(p *fakePD) { p.stores[0].Leaders, p.stores[0].Regions = 0, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			pd, job := stage(t)
			change(pd)
			require.NoError(t, job.Stop(t.Context()))
			assert.Empty(t, pd.evicted)
			assert.NoFileExists(t, job.Record)
		})
	}
}

// A drain may take PD's leader together with a store: who leads next has not heard of
// any store yet.
func TestAStoreWaitsUntilPDsNewLeaderHasHeardOfTheStores(t *testing.T) {
	for name, deaf := range map[string][]int{"of it": {0}, "of the others": {1, 2}, "of any": {0, 1, 2}} {
		t.Run(name, func(t *testing.T) {
			pd, job := stage(t)
			job.Poll = 50 * time.Millisecond // the bound is 80 of them, also on a busy machine
			for _, i := range deaf {
				pd.stores[i].State = disconnected
			}
			pd.hears = 5
			require.NoError(t, job.Stop(t.Context()))
			assert.Equal(t, 0, pd.stores[0].Leaders)
		})
	}
}

// All stores of a cluster may be stopped at once, and so may the only one.
func TestAStoreStopsAtOnceWhereNoOtherCouldLead(t *testing.T) {
	for name, change := range map[string]func(*fakePD){
		"all others are down":               func(p *fakePD) { p.stores[1].State, p.stores[2].State = "Down", "Offline" },
		"all others are to lead nothing":    func(p *fakePD) { p.evicted[2], p.evicted[3] = true, true },
		"all others are stopped meanwhile":  func(p *fakePD) { p.evicted[1], p.evicted[2], p.evicted[3] = true, true, true },
		"all others are TiFlash":            func(p *fakePD) { p.stores = p.stores[:2]; p.stores[1].Engine = "tiflash" },
		"it is the only store of a cluster": func(p *fakePD) { p.stores = p.stores[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			pd, job := stage(t)
			pd.stuck = true
			change(pd)
			assert.ErrorContains(t, job.Stop(t.Context()), "no other store could lead")
		})
	}
}

func TestAStoreIsStoppedWithItsLeadersWhen(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fakePD)
		says   string
	}{
		"they take too long":       {func(p *fakePD) { p.stuck, p.last = true, 3 }, "with 5 leaders"},
		"PD has no leader for 5 s": {func(p *fakePD) { p.broken = true }, "PD answers 500: no leader"},
		"PD does not hear of it":   {func(p *fakePD) { p.stores[0].State = disconnected }, "PD has not heard of store 1"},
		"PD hears of no other one": {func(p *fakePD) { p.stores[1].State, p.stores[2].State = disconnected, disconnected }, "PD has not heard of any other store"},
	} {
		t.Run(name, func(t *testing.T) {
			pd, job := stage(t)
			c.change(pd)
			ctx, cancel := context.WithCancel(t.Context())
			pd.over = cancel
			command := Command{Line: hook.Line{Verb: "stop"}, Job: job, Within: time.Hour}
			assert.ErrorContains(t, command.Run(ctx, nil), c.says)
			assert.Equal(t, pd.last > 0, ctx.Err() != nil, "the others end before their time")
			cancel()
		})
	}
}

func TestAStoreIsStoppedWhenItsTimeIsOver(t *testing.T) {
	pd, job := stage(t)
	pd.stuck = true
	command := Command{Line: hook.Line{Verb: "stop"}, Job: job, Within: 100 * time.Millisecond}
	assert.ErrorContains(t, command.Run(t.Context(), nil), "the store is stopped with")
}

func TestAStoreIsStartedAgainUntilPDLetsItLead(t *testing.T) {
	pd, job := stage(t)
	require.NoError(t, job.Stop(t.Context()))
	pd.broken = true
	command := Command{Line: hook.Line{Verb: "start"}, Job: job, Within: 50 * time.Millisecond}
	require.Error(t, command.Run(t.Context(), nil))
	assert.FileExists(t, job.Record)
	pd.broken = false
	require.NoError(t, command.Run(t.Context(), nil))
	assert.Empty(t, pd.evicted)
}

// tikv/pd#4707: until a new leader of PD has loaded its schedulers it says 404 to who takes an eviction
// back, and loads it afterwards.
func TestAStoreLeadsAgainOnceANewLeaderOfPDHasLoadedItsSchedulers(t *testing.T) {
	pd, job := stage(t)
	require.NoError(t, job.Stop(t.Context()))
	pd.loads = 5
	command := Command{Line: hook.Line{Verb: "start"}, Job: job, Within: time.Minute}
	require.NoError(t, command.Run(t.Context(), nil))
	assert.Empty(t, pd.evicted)
	assert.NoFileExists(t, job.Record)
}

// PD waits up to five minutes: as long as it answers the store is not started again for it.
func TestAStoreIsNotStartedAgainWhilePDLoadsItsSchedulers(t *testing.T) {
	pd, job := stage(t)
	require.NoError(t, job.Stop(t.Context()))
	pd.loads = 50
	command := Command{Line: hook.Line{Verb: "start"}, Job: job, Within: 20 * time.Millisecond}
	require.NoError(t, command.Run(t.Context(), nil))
	assert.Empty(t, pd.evicted)
}

func TestAStoreLeadsAgainThoughPDHasNoSchedulerAtAll(t *testing.T) {
	pd, job := stage(t)
	require.NoError(t, os.WriteFile(job.Record, []byte("1\n"), 0o600))
	pd.loads = 1 << 20
	command := Command{Line: hook.Line{Verb: "start"}, Job: job, Within: time.Minute}
	require.NoError(t, command.Run(t.Context(), nil))
	assert.NoFileExists(t, job.Record)
}

func TestAnUnfinishedRecordIsIgnored(t *testing.T) {
	_, job := stage(t)
	require.NoError(t, os.WriteFile(job.Record, nil, 0o600))
	require.NoError(t, job.Start(t.Context(), time.Minute))
}

func TestTheCommandLine(t *testing.T) {
	env := func(name string) string { return map[string]string{"POD_NAME": "b-0", "NAMESPACE": "shop"}[name] }
	c, err := Parse([]string{"stop", "--pd=http://a:2379", "--address=$(POD_NAME).b.$(NAMESPACE).svc:20160", "--record=/data/r", "--within=30s"}, env)
	require.NoError(t, err)
	assert.Equal(t, Command{Line: hook.Line{Verb: "stop"}, Within: 30 * time.Second, Job: Job{PD: "http://a:2379", Address: "b-0.b.shop.svc:20160", Record: "/data/r"}}, c)
	for _, wrong := range [][]string{nil, {"install"}, {"go"}, {"stop"}, {"stop", "--pd=x", "--address=y", "--record=z"}, {"start", "--pd=x", "--record=z", "--within=1s", "more"}} {
		_, err := Parse(wrong, env)
		assert.Error(t, err, "%v", wrong)
	}
}
