package conformance_test

import (
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// excluded are recordings that are not compared, and why.
var excluded = map[string]string{
	"50-operators-while-offline": "PD prints the steps of an operator there; the model moves a peer at once and never has one under way",
}

// recorded is how many recordings there are.
const recorded = 222

func TestEveryRecordedAnswerIsGivenAgain(t *testing.T) {
	t.Parallel()
	recs := recordings(t)
	require.Len(t, recs, recorded)
	each(t, func(t *testing.T, p *scenarioRun) {
		p.recs = recs
		scenario(t, p)
		missing := []string{}
		for name := range recs {
			if _, ok := excluded[name]; !ok && !p.played[name] {
				missing = append(missing, name)
			}
		}
		sort.Strings(missing)
		assert.Empty(t, missing, "recordings that are neither played nor excluded")
		assert.Equal(t, recorded-len(excluded)-p.skipped, p.agreed)
		if p.isReal() {
			for i, k := range knownDifferences {
				assert.True(t, p.met[i] || k.sometimes, "a known difference that is none: %+v", k)
			}
		}
		t.Logf("%d of %d recordings compared, %d agree", len(p.played), recorded, p.agreed)
		for _, name := range slices.Sorted(maps.Keys(excluded)) {
			t.Logf("excluded %s: %s", name, excluded[name])
		}
	})
}

// prefix returns the recordings of one stage, in the order in which they were made.
func (p *scenarioRun) prefix(prefix string) []string {
	var out []string
	for name := range p.recs {
		if strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	sort.Slice(out, func(i, j int) bool { return p.recs[out[i]].At < p.recs[out[j]].At })
	return out
}

// scenario is what happened while the recordings were made.
func scenario(t *testing.T, p *scenarioRun) {
	p.leader(t, "pd-1", "")
	p.lead(t, "pd-1")
	p.follow(t, "pd-1", "pd-2", "pd-3")
	p.rec(t, p.prefix("00-")...)

	p.b.Bootstrap(t, p.store(1, "1", "h1", "z1"))
	for _, name := range p.prefix("01-") {
		p.eventually(t, name) // what a store tells of its regions takes effect a moment later
	}
	p.serve3(t)
	p.b.SafePoint(t, 470602298259931136)
	p.rec(t, p.prefix("10-")...)
	p.rec(t, p.prefix("20-")...)

	p.add(t, p.store(420, "4", "h4", "z2"))
	p.beat(t)
	p.rec(t, "30-operators-while-balancing")
	p.eventually(t, "30-progress-preparing") // every ten seconds PD looks at the progress
	p.joined(t, 420)
	p.rec(t, "30-stores-4-up")

	p.evictions(t)
	p.removals(t)
	p.loseStore(t)
	p.leaders(t)
	p.membership(t)
	p.quorum(t)
	p.deadStores(t)
}

func (p *scenarioRun) evictions(t *testing.T) {
	p.rec(t, p.prefix("40-")...)
	p.advance(2 * time.Second)
	for _, name := range p.prefix("41-") {
		if name == "41-store-evicted" {
			p.until(t, 0, "leaders go", func() bool { return p.storeOf(t, 4).Status.Leaders == 0 })
		}
		// A second store was evicted only for a moment.
		p.rec(t, name)
		p.advance(time.Second)
	}
	p.pass(t, 20*time.Second)
	p.rec(t, p.prefix("42-")...)
	p.pass(t, 20*time.Second)
	p.rec(t, p.prefix("43-")...)
	p.until(t, 20*time.Second, "leaders come back", func() bool { return p.storeOf(t, 4).Status.Leaders > 0 })
}

func (p *scenarioRun) removals(t *testing.T) {
	for _, name := range p.prefix("50-") {
		if _, not := excluded[name]; !not {
			p.rec(t, name)
		}
	}
	p.rec(t, p.prefix("51-")...)
	p.until(t, 40*time.Second, "store 420 has something to give away", func() bool { return p.storeOf(t, 420).Status.Regions > manyRegions/4 })
	p.alive[420] = false // PD hears no more of a tombstone, which it may be soon
	p.rec(t, "52-delete-store")
	p.run(t, 10*time.Second)
	p.eventually(t, "52-progress-removing-10s")
	p.until(t, time.Minute, "store 420 is a tombstone", func() bool { return p.storeOf(t, 420).Store.StateName == "Tombstone" })
	p.rec(t, p.prefix("53-")...)
	p.rec(t, p.prefix("54-")...)
}

// loseStore kills a store, which is first Disconnected, then Down.
func (p *scenarioRun) loseStore(t *testing.T) {
	p.add(t, p.store(658, "4", "h4", "z2"))
	p.joined(t, 658)
	p.rec(t, p.prefix("60-")...)
	p.alive[5] = false
	p.until(t, 30*time.Second, "store 5 is Disconnected and leads nothing", func() bool {
		s := p.storeOf(t, 5)
		return s.Store.StateName == "Disconnected" && s.Status.Leaders == 0
	})
	p.rec(t, "61-store-disconnected", "61-stores-check-up-while-disconnected",
		"61-stores-check-disconnected-while-disconnected", "61-stores-check-down-while-disconnected")
	p.until(t, 35*time.Second, "store 5 is Down", func() bool { return p.storeOf(t, 5).Store.StateName == "Down" })
	p.rec(t, "61-store-down", "61-stores-check-up-while-down", "61-stores-check-disconnected-while-down",
		"61-stores-check-down-while-down", "61-down-peer", "61-miss-peer")
	p.alive[5] = true
	p.up(t, time.Minute)
}

// up waits until every store that lives is Up and leads.
func (p *scenarioRun) up(t *testing.T, d time.Duration) {
	t.Helper()
	p.until(t, d, "the stores that live are Up and lead", func() bool {
		for id, alive := range p.alive {
			if !alive {
				continue
			}
			if s := p.storeOf(t, id); s.Store.StateName != "Up" || s.Status.Leaders == 0 {
				return false
			}
		}
		return true
	})
}

func (p *scenarioRun) leaders(t *testing.T) {
	p.rec(t, "70-leader-transfer")
	p.leader(t, "pd-1", "pd-2")
	p.follow(t, "pd-2", "pd-2", "pd-3")
	p.rec(t, "70-leader-after", "70-members-after-transfer", "70-leader-transfer-to-self", "70-leader-transfer-unknown",
		"70-leader-resign")
	p.leader(t, "pd-1", "")
	// The call may meet the moment between two leaders.
	p.eventually(t, "72-leader-priority")
	p.leader(t, "pd-1", "pd-1")
	p.eventually(t, "72-members-with-priority")
	p.rec(t, "72-priority-unknown")

	p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/members/name/pd-1", `{"leader-priority":0}`)
	p.beat(t)
	p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/schedulers", `{"name":"evict-leader-scheduler","store_id":5}`)
	p.lead(t, "pd-2")
	p.follow(t, "pd-2", "pd-1", "pd-3")
	p.rec(t, p.prefix("71-")...)
	p.expect(t, http.StatusOK, http.MethodDelete, "pd-2", "/pd/api/v1/schedulers/evict-leader-scheduler-5", "")
	p.up(t, 30*time.Second)
}

func (p *scenarioRun) membership(t *testing.T) {
	p.rec(t, "80-member-delete-unknown-name", "80-member-delete-unknown-id", "80-member-delete-bad-id")
	// etcd counts a member only after five seconds.
	p.eventually(t, "80-member-delete-name")
	p.eventually(t, "80-members-after-delete")
	// Members hear of it, and the one that is gone ends, in their own time.
	p.eventually(t, "80-health-after-delete")
	p.eventually(t, "80-removed-member-members")

	start := time.Now()
	p.b.Rejoin(t, "pd-3")
	// etcd refuses the next call only to a member that it has known for less than
	// five seconds, and needs seven itself when the first message of the new
	// member was too early. Then it is started once more.
	for range 5 {
		if time.Since(start) < 3*time.Second {
			break
		}
		p.b.Kill(t, "pd-3")
		start = time.Now()
		p.b.Revive(t, "pd-3")
	}
	p.eventually(t, "81-members-after-rejoin")
	p.eventually(t, "81-v2-ready-rejoined")
	if p.skipsReal(t, "82-member-delete-leader", "a process needs longer to start than the five seconds for which etcd refuses the call") {
		p.played["82-member-delete-leader"] = true
	} else {
		p.rec(t, "82-member-delete-leader")
	}

	p.b.Kill(t, "pd-2")
	p.leader(t, "pd-1", "")
	p.lead(t, "pd-1")
	p.eventually(t, "83-health-one-member-gone")
	p.eventually(t, "83-members-one-gone")
	p.eventually(t, "84-member-delete-by-id-dead")
	p.b.Rejoin(t, "pd-2")
	p.advance(10 * time.Second)
	p.eventually(t, "85-member-delete-leader")
	p.leader(t, "pd-2", "")
	p.b.Rejoin(t, "pd-1")
	p.advance(10 * time.Second)
	p.leader(t, "pd-1", "")
}

func (p *scenarioRun) quorum(t *testing.T) {
	p.lead(t, "pd-2")
	p.follow(t, "pd-2", "pd-1", "pd-3")
	p.up(t, 30*time.Second)
	if p.isReal() {
		p.run(t, 22*time.Second) // as in TestTrap02: the heartbeats that are saved are old then
	}
	p.rec(t, "73-leader-transfer")
	p.leader(t, "pd-2", "pd-3")
	p.eventually(t, "73-stores-just-after-leader-change")
	p.follow(t, "pd-3", "pd-1")
	p.up(t, 30*time.Second)

	p.b.Kill(t, "pd-1")
	p.eventually(t, "90-health-one-dead")
	p.eventually(t, "90-members-one-dead")
	p.b.Kill(t, "pd-3")
	p.eventually(t, "91-noquorum-health")
	for _, name := range p.prefix("91-") {
		if !p.played[name] {
			p.eventually(t, name)
		}
	}
	p.b.Revive(t, "pd-3")
	p.b.Revive(t, "pd-1")
	p.leader(t, "pd-2", "")
}

// deadStores are removed while they are Down.
func (p *scenarioRun) deadStores(t *testing.T) {
	p.follow(t, p.leader(t, "pd-2", ""), "pd-1", "pd-2", "pd-3")
	p.up(t, 20*time.Second)
	gone := func(id uint64) func() bool {
		return func() bool { return p.storeOf(t, id).Store.StateName == "Down" }
	}
	p.alive[658] = false
	p.until(t, 65*time.Second, "store 658 is Down", gone(658))
	p.rec(t, "95-delete-down-store")
	p.until(t, time.Minute, "store 658 is a tombstone", func() bool { return p.storeOf(t, 658).Store.StateName == "Tombstone" })
	p.eventually(t, "95-progress")

	p.alive[5] = false
	p.until(t, 65*time.Second, "store 5 is Down", gone(5))
	p.rec(t, p.prefix("96-")...)
}
