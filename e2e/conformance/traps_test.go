package conformance_test

import (
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// The traps are what surprises in a real PD. Each is a test of its own against
// everything that stands in for PD, so that no operator is ever tested against a
// kinder one.

func TestTrap01ReadyAndPingSayNothingAboutQuorum(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		p.ready(t, "pd-1", http.StatusInternalServerError)
		p.ready(t, "pd-2", http.StatusOK)
		body := p.expect(t, http.StatusInternalServerError, http.MethodGet, "pd-1", "/pd/api/v1/stores", "")
		assert.Contains(t, body, "ErrNotBootstrapped", "no store yet is not broken")

		p.lead(t, "pd-2")
		p.b.Kill(t, "pd-1")
		p.b.Kill(t, "pd-3")
		require.Eventually(t, func() bool {
			status, _, _, err := p.try(t, http.MethodGet, "pd-2", "/health", "")
			return err == nil && status == http.StatusServiceUnavailable
		}, time.Minute, 100*time.Millisecond, "etcd's own health tells of the lost quorum")
		status, text := http.StatusInternalServerError, "[PD:apiutil:ErrRedirect]redirect failed"
		if p.isReal() {
			// So a member answers that was no leader. One that was the leader and is of April
			// 2024 says this, which no recording of v8.5.7 has or denies.
			status, text = http.StatusServiceUnavailable, "no leader"
		}
		require.Eventually(t, func() bool {
			// The first calls may wait for what is not there any more.
			got, _, _, err := p.try(t, http.MethodGet, "pd-2", "/pd/api/v1/members", "")
			return err == nil && got == status
		}, timeout, 100*time.Millisecond)
		p.ready(t, "pd-2", http.StatusOK)
		for _, path := range []string{"/pd/api/v1/ping", "/pd/api/v1/health"} {
			if p.skipsReal(t, path, asksLeader) {
				continue
			}
			p.expect(t, http.StatusOK, http.MethodGet, "pd-2", path, "")
		}
		for _, path := range []string{"/pd/api/v1/members", "/pd/api/v1/leader", "/pd/api/v1/stores"} {
			assert.Equal(t, text, p.expect(t, status, http.MethodGet, "pd-2", path, ""))
		}
	})
}

func TestTrap02AfterALeaderChangeEveryStoreIsDisconnectedUntilItsHeartbeat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		p.up3(t)
		assert.Equal(t, map[uint64]string{1: "Up", 4: "Up", 5: "Up"}, p.states(t, "pd-1"))
		if p.isReal() {
			// A store's first heartbeat is saved, and then one every five minutes: who
			// comes into office in the first twenty seconds finds a fresh one.
			p.run(t, 20*time.Second)
		}
		p.lead(t, "pd-2")
		p.follow(t, "pd-2", "pd-1")
		assert.Equal(t, map[uint64]string{1: "Disconnected", 4: "Disconnected", 5: "Disconnected"}, p.states(t, "pd-1"))
		p.b.Heartbeat(t, 4)
		assert.Equal(t, map[uint64]string{1: "Disconnected", 4: "Up", 5: "Disconnected"}, p.states(t, "pd-1"))
		p.beat(t)
		assert.Equal(t, map[uint64]string{1: "Up", 4: "Up", 5: "Up"}, p.states(t, "pd-1"))
	})
}

func TestTrap03AStoreIsDownBeforeItsFirstHeartbeat(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.leader(t, "pd-1", "")
		p.up3(t)
		p.b.Put(t, p.store(420, "4", "h4", "z2"))
		var s storeBody
		p.get(t, "pd-1", "/pd/api/v1/store/420", &s)
		assert.Equal(t, "Down", s.Store.StateName)
		assert.Zero(t, s.Store.NodeState)
		p.b.Heartbeat(t, 420)
		p.get(t, "pd-1", "/pd/api/v1/store/420", &s)
		assert.Equal(t, "Up", s.Store.StateName)
	})
}

func TestTrap04AStoreWithoutHeartbeatsIsDisconnectedLongBeforeItIsDown(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.leader(t, "pd-1", "")
		p.up3(t)
		before := p.down(t, 5)
		assert.Equal(t, "Disconnected", before.Store.StateName)
		assert.Zero(t, before.Status.Leaders, "its leaders are gone long before it is Down")
		assert.NotZero(t, before.Status.Regions)
	})
}

func TestTrap05RemovalIsRefusedWhileTooFewStoresWouldRemain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.leader(t, "pd-1", "")
		p.up3(t)
		p.down(t, 5)
		body := p.expect(t, http.StatusBadRequest, http.MethodDelete, "pd-1", "/pd/api/v1/store/5", "")
		assert.Contains(t, body, "ErrStoresNotEnough", "even though the store to remove is Down")
		p.expect(t, http.StatusBadRequest, http.MethodPost, "pd-1", "/pd/api/v1/store/5/state?state=Tombstone", "")
		p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/store/1/state?state=Up", "")
		p.expect(t, http.StatusNotFound, http.MethodDelete, "pd-1", "/pd/api/v1/store/77", "")

		p.add(t, p.store(420, "4", "h4", "z2"))
		p.beat(t)
		p.expect(t, http.StatusOK, http.MethodDelete, "pd-1", "/pd/api/v1/store/5", "")
		p.expect(t, http.StatusOK, http.MethodDelete, "pd-1", "/pd/api/v1/store/5", "")
		p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/store/5/state?state=Up", "")
		p.expect(t, http.StatusOK, http.MethodDelete, "pd-1", "/pd/api/v1/store/5?force=true", "")
		p.until(t, 2*time.Minute, "it is a tombstone", func() bool { return p.storeOf(t, 5).Store.StateName == "Tombstone" })
		p.expect(t, http.StatusGone, http.MethodDelete, "pd-1", "/pd/api/v1/store/5", "")
		p.expect(t, http.StatusGone, http.MethodPost, "pd-1", "/pd/api/v1/store/5/state?state=Up", "")
	})
}

func TestTrap06OfflineTakesUntilThePeersHaveMovedAndTombstonesAreHidden(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.leader(t, "pd-1", "")
		p.up3(t)
		p.add(t, p.store(420, "4", "h4", "z2"))
		p.joined(t, 420)
		p.expect(t, http.StatusOK, http.MethodDelete, "pd-1", "/pd/api/v1/store/420", "")
		body := p.expect(t, http.StatusOK, http.MethodGet, "pd-1", "/pd/api/v1/stores/progress?id=420", "")
		assert.Contains(t, body, "1.7976931348623157e+308", "how long it takes is not known at first")
		p.alive[420] = false // PD hears no more of a tombstone
		p.run(t, 5*time.Second)
		assert.Equal(t, "Offline", p.states(t, "pd-1")[420])
		p.until(t, time.Minute, "a tombstone is not in the list", func() bool {
			_, listed := p.states(t, "pd-1")[420]
			return !listed
		})
		var s storeBody
		p.get(t, "pd-1", "/pd/api/v1/store/420", &s)
		assert.Equal(t, "Tombstone", s.Store.StateName)
		p.expect(t, http.StatusNotFound, http.MethodGet, "pd-1", "/pd/api/v1/stores/progress?id=420", "")
	})
}

// A store that is removed by force is a tombstone at once, with its regions: they have the peers on
// it until PD has made new majorities.
func TestAStoreThatIsRemovedByForceIsATombstoneWithRegions(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.leader(t, "pd-1", "")
		p.up3(t)
		remove := func(status int) string {
			return p.expect(t, status, http.MethodPost, "pd-1", "/pd/api/v1/admin/unsafe/remove-failed-stores", `{"stores":[4,5]}`)
		}
		assert.Contains(t, remove(http.StatusInternalServerError), "is up and connected")
		p.alive[4], p.alive[5] = false, false
		p.until(t, 40*time.Second, "PD does not hear of them", func() bool {
			states := p.states(t, "pd-1")
			return states[4] == "Disconnected" && states[5] == "Disconnected"
		})
		assert.Contains(t, remove(http.StatusOK), "Request has been accepted.")
		states := p.states(t, "pd-1")
		assert.NotContains(t, states, uint64(4))
		assert.NotContains(t, states, uint64(5))
		var tombstones struct{ Stores []storeBody }
		p.get(t, "pd-1", "/pd/api/v1/stores/check?state=tombstone", &tombstones)
		assert.Len(t, tombstones.Stores, 2)
		for _, s := range tombstones.Stores {
			assert.NotZero(t, s.Status.Regions, "store %d", s.Store.ID)
		}
	})
}

func TestTrap07EvictLeaderIsOneSchedulerWithAListOfStores(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		p.up3(t)
		const list = "/pd/api/v1/scheduler-config/evict-leader-scheduler/list"
		evicted := func() []string {
			var body struct {
				Stores map[string]any `json:"store-id-ranges"`
			}
			p.get(t, "pd-1", list, &body)
			var ids []string
			for id := range body.Stores {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return ids
		}
		p.expect(t, http.StatusNotFound, http.MethodGet, "pd-1", list, "")
		for _, id := range []string{"4", "4", "5"} {
			p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/schedulers",
				`{"name":"evict-leader-scheduler","store_id":`+id+`}`)
		}
		assert.Equal(t, []string{"4", "5"}, evicted())
		redirect := http.StatusTemporaryRedirect
		if p.isReal() {
			redirect = http.StatusMovedPermanently // as in knownDifferences
		}
		p.expect(t, redirect, http.MethodGet, "pd-1", "/pd/api/v1/scheduler-config/evict-leader-scheduler", "")
		p.expect(t, http.StatusInternalServerError, http.MethodPost, "pd-1", "/pd/api/v1/schedulers",
			`{"name":"evict-leader-scheduler","store_id":77}`)
		p.until(t, 10*time.Second, "leaders go", func() bool { return p.storeOf(t, 4).Status.Leaders == 0 })

		p.lead(t, "pd-2")
		p.follow(t, "pd-2", "pd-1")
		assert.Equal(t, []string{"4", "5"}, evicted(), "it survives a change of the leader")
		p.beat(t)
		p.expect(t, http.StatusOK, http.MethodDelete, "pd-1", "/pd/api/v1/schedulers/evict-leader-scheduler-4", "")
		p.expect(t, http.StatusNotFound, http.MethodDelete, "pd-1", "/pd/api/v1/schedulers/evict-leader-scheduler-4", "")
		p.until(t, 10*time.Second, "leaders come back", func() bool { return p.storeOf(t, 4).Status.Leaders > 0 })
	})
}

func TestTrap08ASubmittedTransferMustBeConfirmed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		body := p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/leader/transfer/pd-2", "")
		assert.Contains(t, body, "submitted")
		p.leader(t, "pd-1", "pd-2")
		p.expect(t, http.StatusInternalServerError, http.MethodPost, "pd-1", "/pd/api/v1/leader/transfer/pd-99", "")
		p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/leader/transfer/pd-2", "")
		assert.Equal(t, "pd-2", p.leader(t, "pd-1", ""))
	})
	t.Run("the simulation says submitted before anything has happened", func(t *testing.T) {
		t.Parallel()
		clock := model.NewManualClock(time.Now())
		b := newSimWith(t, clock, 0)
		defer b.Close()
		p := newScenarioRun(b, clock)
		p.expect(t, http.StatusOK, http.MethodPost, "pd-1", "/pd/api/v1/leader/transfer/pd-2", "")
		assert.Equal(t, "pd-1", p.leader(t, "pd-1", ""))
		clock.Advance(time.Second)
		assert.Equal(t, "pd-2", p.leader(t, "pd-1", ""))
	})
}

func TestTrap09ARemovedMemberThatStillRunsGoesOnAnswering(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.lead(t, "pd-1")
		p.follow(t, "pd-1", "pd-2")
		p.expect(t, http.StatusNotFound, http.MethodDelete, "pd-2", "/pd/api/v1/members/name/pd-99", "")
		p.expect(t, http.StatusInternalServerError, http.MethodDelete, "pd-2", "/pd/api/v1/members/id/12345", "")
		remove := func(name string) {
			require.Eventually(t, func() bool {
				status, _, _ := p.call(t, http.MethodDelete, "pd-2", "/pd/api/v1/members/name/"+name, "")
				return status == http.StatusOK
			}, time.Minute, 200*time.Millisecond)
		}
		remove("pd-3")
		require.Eventually(t, func() bool {
			return slices.Equal(p.names(t, "pd-1"), []string{"pd-1", "pd-2"})
		}, time.Minute, 50*time.Millisecond)
		require.Eventually(t, func() bool { return len(p.names(t, "pd-3")) == 2 }, time.Minute, 50*time.Millisecond,
			"the removed member answers, and is not in its own list")
		p.b.Rejoin(t, "pd-3")
		p.advance(10 * time.Second)
		require.Eventually(t, func() bool { return len(p.names(t, "pd-1")) == 3 }, time.Minute, 50*time.Millisecond)
		p.leader(t, "pd-2", "pd-1")
		remove("pd-1")
		if p.isReal() {
			// Its etcd has ended, and PD itself reaches that of the others and may lead on
			// for as long as its process runs.
			p.b.Kill(t, "pd-1")
		}
		require.Eventually(t, func() bool { return p.leader(t, "pd-2", "") != "pd-1" }, time.Minute, 50*time.Millisecond, "removing the leader itself is accepted, and another one leads")
	})
}

func TestTrap10AMemberThatWasAddedAndHasNotStartedHasNoName(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p *scenarioRun) {
		p.leader(t, "pd-1", "")
		p.b.AddUnstarted(t, "http://127.0.0.1:1")
		require.Eventually(t, func() bool {
			return slices.Equal(p.names(t, "pd-1"), []string{"", "pd-1", "pd-2", "pd-3"})
		}, time.Minute, 50*time.Millisecond)
		require.Eventually(t, func() bool {
			var health []struct {
				Name   string `json:"name"`
				Health bool   `json:"health"`
			}
			p.get(t, "pd-1", "/pd/api/v1/health", &health)
			for _, h := range health {
				if h.Health != (h.Name != "") {
					return false
				}
			}
			return len(health) == 4
		}, time.Minute, 50*time.Millisecond, "all are healthy but the one without a name")
	})
}
