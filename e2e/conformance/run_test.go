package conformance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// scenarioRun is a scenario that runs against a backend.
type scenarioRun struct {
	b      backend
	clock  *model.ManualClock // nil for a real PD, whose clock cannot be moved
	alive  map[uint64]bool
	recs   map[string]recording
	played map[string]bool
	agreed int
	// skipped is how many steps a real PD was not held to.
	skipped int
	met     map[int]bool      // known differences of a real PD that were met
	ids     map[string]string // recorded member id → name of the member
}

func newScenarioRun(b backend, clock *model.ManualClock) *scenarioRun {
	return &scenarioRun{b: b, clock: clock, alive: map[uint64]bool{}, played: map[string]bool{}, met: map[int]bool{}, ids: map[string]string{
		"2194382149107567694": "pd-2",
	}}
}

// call makes a request of a member and returns the whole answer.
func (p *scenarioRun) call(t *testing.T, method, member, path, body string) (int, map[string]string, []byte) {
	t.Helper()
	status, header, data, err := p.try(t, method, member, path, body)
	require.NoError(t, err, "%s %s of %s", method, path, member)
	return status, header, data
}

// try makes a request of a member that may be about to end or to begin.
func (p *scenarioRun) try(t *testing.T, method, member, path, body string) (status int, header map[string]string, data []byte, err error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, p.b.URL(member)+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := httpClient.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	data, err = io.ReadAll(res.Body)
	header = map[string]string{}
	for k := range res.Header {
		header[k] = strings.Join(res.Header[k], ",")
	}
	return res.StatusCode, header, data, errors.Join(err, res.Body.Close())
}

// get reads JSON of a member that answers 200.
func (p *scenarioRun) get(t *testing.T, member, path string, into any) {
	t.Helper()
	status, _, body := p.call(t, http.MethodGet, member, path, "")
	require.Equal(t, http.StatusOK, status, "%s: %s", path, body)
	require.NoError(t, json.Unmarshal(body, into))
}

// rec plays recorded calls, one after the other, and compares the answers.
func (p *scenarioRun) rec(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		r, ok := p.recs[name]
		require.True(t, ok, "no recording %s", name)
		require.False(t, p.played[name], "%s is played twice", name)
		p.played[name] = true
		found := p.compare(t, r)
		if assert.Empty(t, found, "%s: %s %s", name, r.Request.Method, r.Request.URL) {
			p.agreed++
		}
	}
}

// eventually plays one recorded call until the answers agree.
func (p *scenarioRun) eventually(t *testing.T, name string) {
	t.Helper()
	r, ok := p.recs[name]
	require.True(t, ok, "no recording %s", name)
	p.played[name] = true
	var found []string
	ok = assert.Eventually(t, func() bool {
		found = p.compare(t, r)
		return len(found) == 0
	}, time.Minute, 100*time.Millisecond, name)
	if assert.True(t, ok, "%s: %v", name, found) {
		p.agreed++
	}
}

func (p *scenarioRun) compare(t *testing.T, r recording) []string {
	t.Helper()
	member := "pd-" + r.Request.URL[len("http://127.0.0.1:2790"):][:1]
	path := r.Request.URL[len("http://127.0.0.1:27901"):]
	for recorded, name := range p.ids {
		if strings.Contains(path, recorded) {
			id, err := p.memberID(t, member, name)
			if err != nil {
				return []string{err.Error()}
			}
			path = strings.ReplaceAll(path, recorded, id)
		}
	}
	body := ""
	if r.Request.Body != nil {
		body = *r.Request.Body
	}
	status, header, data, err := p.try(t, r.Request.Method, member, path, body)
	if err != nil {
		return []string{err.Error()}
	}
	found := compare(p, r, status, header, data)
	if p.isReal() {
		return strange(r.Name, found, p.met)
	}
	return found
}

type membersBody struct {
	Header struct {
		ClusterID json.Number `json:"cluster_id"`
	} `json:"header"`
	Members []memberBody `json:"members"`
	Leader  memberBody   `json:"leader"`
}

type memberBody struct {
	Name string      `json:"name"`
	ID   json.Number `json:"member_id"`
}

// members asks a member that may have no leader at the moment.
func (p *scenarioRun) members(t *testing.T, ask string) (membersBody, error) {
	t.Helper()
	var m membersBody
	status, _, body, err := p.try(t, http.MethodGet, ask, "/pd/api/v1/members", "")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("read members of %s: %d: %s", ask, status, body)
	}
	if err != nil {
		return m, err
	}
	return m, json.Unmarshal(body, &m)
}

func (p *scenarioRun) memberID(t *testing.T, ask, name string) (string, error) {
	t.Helper()
	m, err := p.members(t, ask)
	if err != nil {
		return "", err
	}
	for _, x := range m.Members {
		if x.Name == name {
			return x.ID.String(), nil
		}
	}
	return "", fmt.Errorf("%s knows no member %s", ask, name)
}

// names are the members that a member lists; none, if it does not answer just now.
func (p *scenarioRun) names(t *testing.T, ask string) []string {
	t.Helper()
	m, err := p.members(t, ask)
	if err != nil {
		return nil
	}
	var out []string
	for _, x := range m.Members {
		out = append(out, x.Name)
	}
	slices.Sort(out)
	return out
}

// leader waits until a member says that want leads; empty means anybody.
func (p *scenarioRun) leader(t *testing.T, ask, want string) string {
	t.Helper()
	name := ""
	require.Eventually(t, func() bool {
		m, err := p.members(t, ask)
		if err != nil {
			return false
		}
		name = m.Leader.Name
		return name != "" && (want == "" || name == want)
	}, time.Minute, 20*time.Millisecond, "leader %q instead of %q", &name, want)
	return name
}

// follow waits until members pass what is asked of them on to the new leader.
// Until each of them has heard of it, they answer "redirect to not leader".
func (p *scenarioRun) follow(t *testing.T, leader string, members ...string) {
	t.Helper()
	for _, member := range members {
		p.leader(t, member, leader)
	}
}

// lead makes a member the leader.
func (p *scenarioRun) lead(t *testing.T, member string) {
	t.Helper()
	require.Eventually(t, func() bool {
		if _, _, _, err := p.try(t, http.MethodPost, member, "/pd/api/v1/leader/transfer/"+member, ""); err != nil {
			return false
		}
		status, _, body, err := p.try(t, http.MethodGet, member, "/pd/api/v1/leader", "")
		var m memberBody
		return err == nil && status == http.StatusOK && json.Unmarshal(body, &m) == nil && m.Name == member
	}, time.Minute, 100*time.Millisecond, "%s does not lead", member)
}

// isReal says whether the PD is a real one.
func (p *scenarioRun) isReal() bool { return p.clock == nil }

// now is the time by PD's clock.
func (p *scenarioRun) now() time.Time {
	if p.isReal() {
		return time.Now()
	}
	return p.clock.Now()
}

// advance moves the clock of what stands in for PD, while no store says anything. On a
// real PD time passes by itself, and the caller waits for what comes of it.
func (p *scenarioRun) advance(d time.Duration) {
	if !p.isReal() {
		p.clock.Advance(d)
	}
}

// run lets time pass, while the live stores send their heartbeats. On a real PD it
// takes as long as it says: until is for what has an end that can be seen.
func (p *scenarioRun) run(t *testing.T, d time.Duration) {
	t.Helper()
	if p.isReal() {
		p.holdsWithin(t, d, func() bool { return false })
		return
	}
	const step = 5 * time.Second
	for d > 0 {
		p.clock.Advance(min(step, d))
		d -= step
		p.beat(t)
	}
}

// pass lets time pass that only what stands in for PD needs.
func (p *scenarioRun) pass(t *testing.T, d time.Duration) {
	t.Helper()
	if p.isReal() {
		p.beat(t)
		return
	}
	p.run(t, d)
}

// until lets time pass until something holds. What stands in for PD has exactly d for
// it, by its own clock; a real one may take that and somewhat longer, and ends it sooner.
func (p *scenarioRun) until(t *testing.T, d time.Duration, what string, holds func() bool) {
	t.Helper()
	if p.isReal() {
		if !p.holdsWithin(t, d+timeout, holds) {
			_, _, body := p.call(t, http.MethodGet, "pd-1", "/pd/api/v1/stores", "")
			require.Fail(t, "not within "+(d+timeout).String(), "%s: %s", what, body)
		}
		return
	}
	p.run(t, d)
	require.True(t, holds(), "not after %s: %s", d, what)
}

// holdsWithin lets real time pass until something holds, and says whether it does.
func (p *scenarioRun) holdsWithin(t *testing.T, d time.Duration, holds func() bool) bool {
	t.Helper()
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for {
		p.beat(t)
		if holds() {
			return true
		}
		select {
		case <-tick.C:
		case <-end.C:
			p.beat(t)
			return holds()
		case <-t.Context().Done():
			return false
		}
	}
}

func (p *scenarioRun) beat(t *testing.T) {
	t.Helper()
	for id, alive := range p.alive {
		if alive {
			p.b.Heartbeat(t, id)
		}
	}
}

// store is a store as the recorded ones were.
func (p *scenarioRun) store(id uint64, port, host, zone string) model.StoreMeta {
	return model.StoreMeta{
		ID: id, Address: "127.0.0.1:2760" + port, PeerAddress: "127.0.0.1:2760" + port, StatusAddress: "127.0.0.1:2765" + port,
		Version: "8.5.3", GitHash: "tikvsim", DeployPath: "/", StartTimestamp: p.now().Unix(),
		Labels: []model.Label{{Key: "host", Value: host}, {Key: "zone", Value: zone}},
	}
}

// up3 makes three stores that serve.
func (p *scenarioRun) up3(t *testing.T) {
	t.Helper()
	p.b.Bootstrap(t, p.store(1, "1", "h1", "z1"))
	p.serve3(t)
}

func (p *scenarioRun) serve3(t *testing.T) {
	t.Helper()
	p.b.Put(t, p.store(4, "2", "h2", "z2"))
	p.b.Put(t, p.store(5, "3", "h3", "z3"))
	p.alive[1], p.alive[4], p.alive[5] = true, true, true
	p.until(t, time.Minute, "three stores with three voters of every region", func() bool {
		stores := p.stores(t, "pd-1")
		for _, s := range stores {
			if s.Store.StateName != "Up" || s.Store.NodeState != serving || s.Status.Leaders < manyRegions/5 || s.Status.Regions < manyRegions {
				return false
			}
		}
		return len(stores) == 3
	})
}

// serving is the node state of a store that has left preparing behind.
const serving = 1

// joined waits until a store that was added to three has something to do.
func (p *scenarioRun) joined(t *testing.T, id uint64) {
	t.Helper()
	// A real PD gives it regions as fast as its store limit and the machine allow.
	p.until(t, 4*time.Minute, fmt.Sprintf("store %d serves and leads", id), func() bool {
		s := p.storeOf(t, id)
		return s.Store.StateName == "Up" && s.Store.NodeState == serving && s.Status.Leaders > 0
	})
}

// down waits until a store that sends no heartbeat is Down, and returns it as it was while it
// was Disconnected only. Half an hour is shortened for a real PD.
func (p *scenarioRun) down(t *testing.T, id uint64) storeBody {
	t.Helper()
	after := 30 * time.Minute
	if p.isReal() {
		after = 40 * time.Second
		p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/config", `{"schedule.max-store-down-time":"40s"}`)
	}
	p.alive[id] = false
	p.run(t, 15*time.Second)
	assert.Equal(t, "Up", p.storeOf(t, id).Store.StateName)
	p.until(t, 15*time.Second, "it is Disconnected and leads nothing", func() bool {
		s := p.storeOf(t, id)
		return s.Store.StateName == "Disconnected" && s.Status.Leaders == 0
	})
	disconnected := p.storeOf(t, id)
	if !p.isReal() {
		p.run(t, after-time.Minute)
		assert.Equal(t, "Disconnected", p.storeOf(t, id).Store.StateName)
		after = time.Minute
	}
	p.until(t, after, "it is Down", func() bool { return p.storeOf(t, id).Store.StateName == "Down" })
	return disconnected
}

func (p *scenarioRun) add(t *testing.T, s model.StoreMeta) {
	t.Helper()
	p.b.Put(t, s)
	p.alive[s.ID] = true
}

type storeBody struct {
	Store struct {
		ID        uint64 `json:"id"`
		StateName string `json:"state_name"`
		NodeState int    `json:"node_state"`
	} `json:"store"`
	Status struct {
		Leaders int `json:"leader_count"`
		Regions int `json:"region_count"`
	} `json:"status"`
}

// stores are the stores as a member shows them.
func (p *scenarioRun) stores(t *testing.T, ask string) []storeBody {
	t.Helper()
	var body struct {
		Stores []storeBody `json:"stores"`
	}
	p.get(t, ask, "/pd/api/v1/stores", &body)
	return body.Stores
}

// storeOf is a store as pd-1 shows it, in whatever state.
func (p *scenarioRun) storeOf(t *testing.T, id uint64) storeBody {
	t.Helper()
	var s storeBody
	p.get(t, "pd-1", fmt.Sprintf("/pd/api/v1/store/%d", id), &s)
	return s
}

// states are the stores' states as a member shows them, by id.
func (p *scenarioRun) states(t *testing.T, ask string) map[uint64]string {
	t.Helper()
	out := map[uint64]string{}
	for _, s := range p.stores(t, ask) {
		out[s.Store.ID] = s.Store.StateName
	}
	return out
}

// expect makes a call and returns the text or JSON of its answer.
func (p *scenarioRun) expect(t *testing.T, want int, method, member, path, body string) string {
	t.Helper()
	status, _, data := p.call(t, method, member, path, body)
	require.Equal(t, want, status, "%s %s of %s: %s", method, path, member, data)
	return strings.TrimSpace(string(data))
}
