package resign

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// fakePD is what a member answers.
type fakePD struct {
	mu        sync.Mutex
	leader    string          // empty: there is none, and PD answers 500
	unhealthy map[string]bool // members that do not answer the leader
	deaf      map[string]bool // members that never come to lead
	loading   map[string]bool // members that have not loaded the regions
	url       string          // of all members, each below its name
	pending   string          // who leads from the next look on
	slow      time.Duration   // how long it takes to ask all members
	asked     []string        // who was asked to lead
	over      func()          // ends the time once two have been asked; nil for never
}

func (p *fakePD) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to, transfer := strings.CutPrefix(r.URL.Path, "/pd/api/v1/leader/transfer/")
	switch {
	case p.leader == "":
		http.Error(w, "no leader", http.StatusInternalServerError)
	case r.Method == http.MethodPost && transfer:
		p.asked = append(p.asked, to)
		if p.over != nil && len(p.asked) == 2 {
			p.over()
		}
		if !p.deaf[to] {
			p.pending = to
		}
	case r.URL.Path == "/pd/api/v1/leader":
		_ = json.NewEncoder(w).Encode(map[string]any{"name": p.leader})
		if p.pending != "" {
			p.leader = p.pending
		}
	case strings.HasSuffix(r.URL.Path, "/pd/api/v2/ready"):
		if name := strings.Split(r.URL.Path, "/")[1]; p.loading[name] {
			w.WriteHeader(http.StatusInternalServerError)
		}
	case r.URL.Path == "/pd/api/v1/health":
		select {
		case <-time.After(p.slow):
		case <-r.Context().Done():
			return
		}
		var all []map[string]any
		for _, name := range []string{"b-0", "b-1", "b-2"} {
			all = append(all, map[string]any{"name": name, "health": !p.unhealthy[name], "client_urls": []string{p.url + "/" + name}})
		}
		_ = json.NewEncoder(w).Encode(all)
	default:
		http.NotFound(w, r)
	}
}

// stage is a PD of three members led by b-0, and the job of that one.
func stage(t *testing.T) (*fakePD, Job) {
	t.Helper()
	pd := &fakePD{leader: "b-0", unhealthy: map[string]bool{}, deaf: map[string]bool{}, loading: map[string]bool{}}
	server := httptest.NewServer(pd)
	pd.url = server.URL
	t.Cleanup(server.Close)
	return pd, Job{PD: server.URL, Name: "b-0", Poll: time.Millisecond}
}

func TestTheLeaderHandsOverBeforeItIsStopped(t *testing.T) {
	pd, job := stage(t)
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, "b-1", pd.leader, "it returns when another one leads, not before")
	assert.Equal(t, []string{"b-1"}, pd.asked)
}

func TestAHealthyMemberIsAskedToLead(t *testing.T) {
	pd, job := stage(t)
	pd.unhealthy["b-1"] = true
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, []string{"b-2"}, pd.asked)
}

// Of the members that PD calls healthy one may have just been started: as the leader it would know of
// no region, in a large cluster for minutes (Ready in PD's sources server/apiv2/handlers).
func TestAMemberThatHasLoadedTheRegionsIsAskedFirst(t *testing.T) {
	for name, c := range map[string]struct {
		loading map[string]bool
		asked   string
	}{
		"the first has not":      {map[string]bool{"b-1": true}, "b-2"},
		"the second has not":     {map[string]bool{"b-2": true}, "b-1"},
		"none has: one leads":    {map[string]bool{"b-1": true, "b-2": true}, "b-1"},
		"all have":               {nil, "b-1"},
		"the one that stops not": {map[string]bool{"b-0": true}, "b-1"},
	} {
		t.Run(name, func(t *testing.T) {
			pd, job := stage(t)
			pd.loading = c.loading
			require.NoError(t, job.Stop(t.Context()))
			assert.Equal(t, []string{c.asked}, pd.asked)
		})
	}
}

// The leader waits three seconds for each member that a dead node keeps from answering.
func TestTheLeaderHandsOverWhileAnotherMemberDoesNotAnswer(t *testing.T) {
	pd, job := stage(t)
	pd.slow, pd.unhealthy["b-1"] = 3100*time.Millisecond, true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, job.Stop(ctx))
	assert.Equal(t, "b-2", pd.leader)
}

func TestTheNextMemberIsAskedWhenTheFirstDoesNotBecomeLeader(t *testing.T) {
	pd, job := stage(t)
	pd.deaf["b-1"] = true
	require.NoError(t, job.Stop(t.Context()))
	assert.Equal(t, []string{"b-1", "b-2"}, pd.asked)
	assert.Equal(t, "b-2", pd.leader)
}

func TestNoMemberIsAskedToLeadBy(t *testing.T) {
	for name, change := range map[string]func(*fakePD){
		"a member that follows":                        func(p *fakePD) { p.leader = "b-1" },
		"a member that knows of no leader":             func(p *fakePD) { p.leader = "" },
		"a leader beside whom no other one is healthy": func(p *fakePD) { p.unhealthy["b-1"], p.unhealthy["b-2"] = true, true },
	} {
		t.Run(name, func(t *testing.T) {
			pd, job := stage(t)
			change(pd)
			require.NoError(t, job.Stop(t.Context()))
			assert.Empty(t, pd.asked)
		})
	}
}

func TestALeaderIsStoppedWhenTheTimeIsOver(t *testing.T) {
	pd, job := stage(t)
	pd.deaf["b-1"], pd.deaf["b-2"] = true, true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pd.over = cancel
	require.ErrorContains(t, job.Stop(ctx), "member b-0 is stopped while it leads")
}

func TestTheCommandLine(t *testing.T) {
	env := func(name string) string { return map[string]string{"POD_NAME": "b-0", "NAMESPACE": "shop"}[name] }
	c, err := Parse([]string{"stop", "--pd=http://127.0.0.1:2379", "--name=$(POD_NAME)", "--within=15s"}, env)
	require.NoError(t, err)
	assert.Equal(t, Command{Line: hook.Line{Verb: "stop"}, Within: 15 * time.Second, Job: Job{PD: "http://127.0.0.1:2379", Name: "b-0"}}, c)
	c, err = Parse([]string{"install", "/tools/resign"}, env)
	require.NoError(t, err)
	assert.Equal(t, Command{Line: hook.Line{Verb: "install", Into: "/tools/resign"}}, c)
	for _, wrong := range [][]string{nil, {"install"}, {"go"}, {"stop"}, {"stop", "--pd=x", "--name=y"}, {"stop", "--pd=x", "--name=z", "--within=1s", "more"}} {
		_, err := Parse(wrong, env)
		assert.Error(t, err, "%v", wrong)
	}
}
