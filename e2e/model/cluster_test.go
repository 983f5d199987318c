package model_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

type world struct {
	t     *testing.T
	clock *model.ManualClock
	c     *model.Cluster
	alive map[uint64]bool
	saved []byte
	fail  error
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: model.NewManualClock(time.Unix(1_800_000_000, 0)), alive: map[uint64]bool{}}
	c, err := model.NewCluster(w.options())
	require.NoError(t, err)
	w.c = c
	return w
}

func (w *world) options() model.Options {
	return model.Options{
		Clock: w.clock, Config: map[string]any{"replication": map[string]any{"location-labels": []any{"zone"}}},
		Save: func(data []byte) error {
			if w.fail == nil {
				w.saved = append([]byte(nil), data...)
			}
			return w.fail
		},
	}
}

func meta(id uint64, labels ...string) model.StoreMeta {
	m := model.StoreMeta{ID: id, Address: fmt.Sprintf("s%d:20160", id), Version: "8.5.7"}
	for i := 0; i+1 < len(labels); i += 2 {
		m.Labels = append(m.Labels, model.Label{Key: labels[i], Value: labels[i+1]})
	}
	return m
}

func (w *world) put(m model.StoreMeta) {
	w.t.Helper()
	if w.c.IsBootstrapped() {
		require.NoError(w.t, w.c.PutStore(m))
	} else {
		require.NoError(w.t, w.c.Bootstrap(m, 1001, 1002))
	}
	w.alive[m.ID] = true
}

func (w *world) run(d time.Duration) {
	w.t.Helper()
	for ; d > 0; d -= 10 * time.Second {
		w.clock.Advance(min(d, 10*time.Second))
		for id, alive := range w.alive {
			if alive {
				require.NoError(w.t, w.c.Heartbeat(id, model.StoreStats{Capacity: 1 << 30}))
			}
		}
	}
}

func (w *world) store(id uint64) model.StoreView {
	w.t.Helper()
	v, err := w.c.Store(id)
	require.NoError(w.t, err)
	return v
}

func (w *world) up3() {
	w.t.Helper()
	for id := uint64(1); id <= 3; id++ {
		w.put(meta(id, "zone", fmt.Sprint("z", id)))
	}
	w.run(2 * time.Minute)
}

func TestRegionsAreReplicatedAndTheirLeadersBalanced(t *testing.T) {
	w := newWorld(t)
	w.up3()
	for id := uint64(1); id <= 3; id++ {
		v := w.store(id)
		assert.Equal(t, "Up", v.StateName)
		assert.Equal(t, 104, v.Regions)
		assert.InDelta(t, 35, v.Leaders, 3)
	}
	miss, err := w.c.CheckRegions(model.MissPeer)
	require.NoError(t, err)
	assert.Empty(t, miss)
}

// As TiKV tells PD: a leader that was just elected knows nothing of what the others have.
func TestThePeersOfANewLeaderArePendingUntilTheyAnswer(t *testing.T) {
	w := newWorld(t)
	w.up3()
	pending := func() []model.RegionView {
		out, err := w.c.CheckRegions(model.PendingPeer)
		require.NoError(t, err)
		return out
	}
	require.Empty(t, pending())
	_, err := w.c.AddEvictLeader(2)
	require.NoError(t, err)
	w.run(time.Second)
	moved := pending()
	require.NotEmpty(t, moved)
	for _, r := range moved {
		leader, led := r.LeaderPeer()
		assert.True(t, led)
		assert.NotEqual(t, uint64(2), leader.StoreID)
		assert.Len(t, r.Pending, 2)
	}
	w.run(time.Minute)
	assert.Empty(t, pending())
}

func TestReplicasStayInDifferentZones(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.put(meta(4, "zone", "z3"))
	w.run(3 * time.Minute)
	assert.Equal(t, 104, w.store(1).Regions)
	assert.Equal(t, 104, w.store(2).Regions)
	assert.InDelta(t, 52, w.store(3).Regions, 2)
	assert.InDelta(t, 52, w.store(4).Regions, 2)
	assert.Equal(t, model.NodeServing, w.store(4).Node)
}

func TestATiFlashStoreGetsNoVoters(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.put(meta(4, "zone", "z4", "engine", "tiflash"))
	w.run(3 * time.Minute)
	assert.Zero(t, w.store(4).Regions)
	assert.Equal(t, "Up", w.store(4).StateName)
}

// table is the rule that TiDB sets for a table with replicas on TiFlash.
func table(replicas int) model.Rule {
	return model.Rule{GroupID: "tiflash", ID: "table-45-r", Index: 120, Role: "learner", Count: replicas,
		LabelConstraints: []model.LabelConstraint{{Key: "engine", Op: "in", Values: []string{"tiflash"}}}}
}

func TestATableHasItsLearnersOnTiFlashAndNowhereElse(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.put(meta(4, "engine", "tiflash"))
	w.put(meta(5, "engine", "tiflash"))
	require.NoError(t, w.c.SetRule(table(1)))
	w.run(2 * time.Minute)
	for id, regions := range map[uint64]int{1: 104, 2: 104, 3: 104, 4: 52, 5: 52} {
		assert.Equal(t, regions, w.store(id).Regions, "store %d", id)
	}
	assert.Equal(t, 52, w.store(4).Learners)
	assert.Zero(t, w.store(4).Leaders)
	w.alive[4] = false
	w.c.SetStoreAlive(4, false)
	assert.Empty(t, w.c.Alarms(), "no majority counts on a learner")

	half := table(1)
	half.EndKeyHex = "7480000000000000FF0400000000000000F8"
	require.NoError(t, w.c.SetRule(half))
	w.run(2 * time.Minute)
	assert.Equal(t, 1, w.store(4).Regions+w.store(5).Regions, "the first region is all that lies in the table")
	require.NoError(t, w.c.DeleteRule("tiflash", "table-45-r"))
	w.run(time.Minute)
	assert.Zero(t, w.store(4).Regions+w.store(5).Regions, "given up")
}

func TestFL04ATiFlashLeavesWhenItsLearnersHave(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.put(meta(4, "engine", "tiflash"))
	w.put(meta(5, "engine", "tiflash"))
	require.NoError(t, w.c.SetRule(table(2)))
	w.run(3 * time.Minute)
	assert.Equal(t, 104, w.store(4).Learners)
	require.NoError(t, w.c.RemoveStore(4, false))
	w.run(10 * time.Minute)
	assert.Equal(t, "Offline", w.store(4).StateName, "the table wants two replicas, and there is no other place")
	assert.Equal(t, 104, w.store(4).Learners)
	require.NoError(t, w.c.SetRule(table(1)))
	delete(w.alive, 4)
	w.run(5 * time.Minute)
	assert.Equal(t, "Tombstone", w.store(4).StateName)
	assert.Equal(t, 104, w.store(5).Learners)

	w.put(meta(6, "engine", "tiflash"))
	w.run(time.Minute)
	require.NoError(t, w.c.RemoveStore(5, false))
	w.run(10 * time.Second)
	assert.Equal(t, "Offline", w.store(5).StateName)
	assert.Positive(t, w.store(5).Learners)
	delete(w.alive, 5)
	w.run(2 * time.Minute)
	assert.Equal(t, "Tombstone", w.store(5).StateName, "the learners have moved")
	assert.Equal(t, 104, w.store(6).Learners)
}

func TestAnOfflineStoreKeepsItsPeersWhileThereIsNoOtherPlace(t *testing.T) {
	w := newWorld(t)
	w.up3()
	require.NoError(t, w.c.RemoveStore(3, true))
	w.run(10 * time.Minute)
	assert.Equal(t, "Offline", w.store(3).StateName)
	assert.Equal(t, 104, w.store(3).Regions)
	w.put(meta(4, "zone", "z3"))
	delete(w.alive, 3)
	w.run(5 * time.Minute)
	assert.Equal(t, "Tombstone", w.store(3).StateName)
	assert.Equal(t, 104, w.store(4).Regions)
}

func TestAStoreThatIsRemovedAndBroughtBackKeepsWhatHasNotMoved(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.put(meta(4, "zone", "z3"))
	w.run(3 * time.Minute)
	before := w.store(4).Regions
	require.NoError(t, w.c.RemoveStore(4, false))
	w.clock.Advance(5 * time.Second)
	require.NoError(t, w.c.SetStoreState(4, "Up"))
	v := w.store(4)
	assert.Equal(t, "Up", v.StateName)
	assert.Less(t, v.Regions, before)
	assert.Positive(t, v.Regions)
}

func TestALimitOfZeroStopsItsKindOfMove(t *testing.T) {
	w := newWorld(t)
	w.up3()
	limits := func(replica, region int) {
		require.NoError(t, w.c.SetConfig(map[string]any{"schedule.replica-schedule-limit": replica, "schedule.region-schedule-limit": region}))
	}
	limits(64, 0)
	w.put(meta(4, "zone", "z3"))
	w.run(3 * time.Minute)
	assert.Zero(t, w.store(4).Regions, "nothing moves for balance")
	limits(0, 2048)
	w.run(3 * time.Minute)
	assert.Positive(t, w.store(4).Regions)
	before := w.store(3).Regions
	require.NoError(t, w.c.RemoveStore(3, false))
	w.run(10 * time.Minute)
	assert.Equal(t, before, w.store(3).Regions, "a store that leaves keeps what it has")
	limits(64, 2048)
	delete(w.alive, 3) // a store that has left sends no heartbeats
	w.run(10 * time.Minute)
	assert.Equal(t, "Tombstone", w.store(3).StateName)
}

func TestASecondStoreOnTheSameAddressIsRefusedUntilTheFirstIsGone(t *testing.T) {
	w := newWorld(t)
	w.up3()
	duplicate := meta(9, "zone", "z3")
	duplicate.Address = "s3:20160"
	require.ErrorContains(t, w.c.PutStore(duplicate), "duplicated store address")
	require.NoError(t, w.c.RemoveStore(3, true))
	require.NoError(t, w.c.PutStore(duplicate))
}

func TestAStoreMayBeOlderThanTheClusterByAPatchOnly(t *testing.T) {
	w := newWorld(t)
	w.put(meta(1))
	for version, is := range map[string]assert.ErrorAssertionFunc{"8.5.0": assert.NoError, "v8.5.6": assert.NoError, "8.1.9": assert.Error, "7.5.9": assert.Error, "9.0.0": assert.NoError} {
		m := meta(2)
		m.Version = version
		is(t, w.c.PutStore(m), version)
	}
}

func TestAnotherPDTakesOverWhatWasSaved(t *testing.T) {
	w := newWorld(t)
	w.up3()
	_, err := w.c.AddEvictLeader(2)
	require.NoError(t, err)
	id, err := w.c.AllocID()
	require.NoError(t, err)
	require.NoError(t, w.c.Tick())
	next, err := model.LoadCluster(w.saved, w.options())
	require.NoError(t, err)
	w.c = next
	assert.Equal(t, "Disconnected", w.store(1).StateName)
	assert.Equal(t, 104, w.store(1).Regions)
	evicted, ok, err := w.c.Evicted()
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Equal(t, []uint64{2}, evicted)
	later, err := w.c.AllocID()
	require.NoError(t, err)
	assert.Greater(t, later, id, "no id is given out twice")
	w.run(10 * time.Second)
	assert.Equal(t, "Up", w.store(1).StateName)
}

func TestAChangeThatCanNotBeSavedIsRefused(t *testing.T) {
	w := newWorld(t)
	w.fail = errors.New("no quorum")
	require.ErrorContains(t, w.c.Bootstrap(meta(1), 2, 3), "no quorum")
	assert.False(t, w.c.IsBootstrapped())
}

func TestAlarmsAreRaisedTheMomentAMajorityDies(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.c.SetStoreAlive(1, false)
	assert.Empty(t, w.c.Alarms())
	w.c.SetStoreAlive(2, false)
	alarms := w.c.Alarms()
	require.Len(t, alarms, 104, "one for every region")
	assert.Equal(t, model.LostRegionMajority, alarms[0].Kind)
	w.c.SetStoreAlive(1, true)
	w.c.SetStoreAlive(2, true)
	w.c.LoseStoreData(1)
	w.c.LoseStoreData(2)
	assert.Contains(t, fmt.Sprint(w.c.Alarms()), string(model.LostData))
}

func TestLeadersLeaveAKnownDeadStoreAtOnce(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.c.SetStoreAlive(1, false)
	w.clock.Advance(time.Second)
	assert.Zero(t, w.store(1).Leaders)
	assert.Equal(t, "Up", w.store(1).StateName, "PD has not noticed yet")
}

func TestConfigurationKeepsTypesAndRefusesWhatItDoesNotKnow(t *testing.T) {
	w := newWorld(t)
	// What follows was asked of a real PD of the v8.1 line as well.
	require.NoError(t, w.c.SetConfig(map[string]any{"replication.max-replicas": 3}), "nothing changes")
	require.ErrorContains(t, w.c.SetConfig(map[string]any{"replication.location-labels": "rack"}), "ErrNotBootstrapped")
	w.up3()
	for name, test := range map[string]struct {
		key   string
		value any
		err   string
	}{
		"a duration is normalised":            {"schedule.max-store-down-time", "90m", ""},
		"a wrong duration is refused":         {"schedule.max-store-down-time", "xyz", "invalid duration"},
		"a number that comes as text":         {"schedule.leader-schedule-limit", "7", "cannot unmarshal string"},
		"a truth comes as text":               {"replication.enable-placement-rules", "false", ""},
		"a truth that does not":               {"schedule.enable-debug-metrics", true, "unquoted value into bool"},
		"a list that does not come as text":   {"replication.location-labels", []any{"zone"}, "invalid syntax"},
		"an isolation level that is no label": {"replication.isolation-level", "rack", "must be one of location-labels"},
		"ratios that contradict each other":   {"schedule.low-space-ratio", 0.5, "should be larger than high-space-ratio"},
		"an item of a table":                  {"replication-mode.dr-auto-sync.label-key", "zone", ""},
		"an unknown item of a table":          {"replication-mode.foo.bar", "zone", "config item [foo bar] not found"},
		"an unknown key is refused":           {"schedule.no-such-key", 1, "config item no-such-key not found"},
		"an unknown section is refused":       {"nowhere.key", 1, "config prefix nowhere not found"},
	} {
		t.Run(name, func(t *testing.T) {
			err := w.c.SetConfig(map[string]any{test.key: test.value})
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, test.err)
		})
	}
	assert.Equal(t, "1h30m0s", w.c.ConfigSection("schedule")["max-store-down-time"])
	assert.Equal(t, "false", w.c.ConfigSection("replication")["enable-placement-rules"])
}

func TestDaysPassQuicklyForAnIdleCluster(t *testing.T) {
	w := newWorld(t)
	w.up3()
	start := time.Now()
	w.clock.Advance(24 * time.Hour)
	assert.Equal(t, "Down", w.store(1).StateName)
	assert.Less(t, time.Since(start), 20*time.Second, "it takes a tenth of a second where a processor is free")
}

func BenchmarkAPollOfAnIdleCluster(b *testing.B) {
	clock := model.NewManualClock(time.Now())
	c, err := model.NewCluster(model.Options{Clock: clock})
	require.NoError(b, err)
	require.NoError(b, c.Bootstrap(meta(1), 2, 3))
	require.NoError(b, c.PutStore(meta(2)))
	require.NoError(b, c.PutStore(meta(3)))
	for range 30 {
		clock.Advance(10 * time.Second)
		for id := uint64(1); id <= 3; id++ {
			require.NoError(b, c.Heartbeat(id, model.StoreStats{}))
		}
	}
	for b.Loop() {
		clock.Advance(time.Second)
		if _, err := c.Stores(); err != nil {
			b.Fatal(err)
		}
	}
}

// KV-26: PD's exclusive labels keep regions away, and a rule that names one sends
// its regions there and nowhere else.
func TestKV26AStoreWithAnExclusiveLabelIsEmptyUntilARuleNamesIt(t *testing.T) {
	w := newWorld(t)
	w.up3()
	w.put(meta(4, "zone", "z1"))
	w.run(3 * time.Minute)
	require.Positive(t, w.store(4).Regions)
	require.NoError(t, w.c.SetStoreLabels(4, []model.Label{{Key: "$k/exclusive", Value: "true"}}, false))
	w.run(3 * time.Minute)
	assert.Zero(t, w.store(4).Regions)
	assert.Equal(t, "Up", w.store(4).StateName)
	for id := range uint64(3) {
		assert.Equal(t, 104, w.store(id+1).Regions)
	}

	first := model.Rule{GroupID: "placement", ID: "hot", Role: "voter", Count: 1, EndKeyHex: "7480000000000000FF0400000000000000F8",
		LabelConstraints: []model.LabelConstraint{{Key: "$k/exclusive", Op: "exists"}}}
	require.NoError(t, w.c.SetRule(first))
	w.run(time.Minute)
	assert.Equal(t, 1, w.store(4).Regions, "the first region is all that the rule sends there")
	require.NoError(t, w.c.DeleteRule("placement", "hot"))
	require.NoError(t, w.c.SetStoreLabels(4, []model.Label{{Key: "$k/exclusive"}}, false))
	w.run(3 * time.Minute)
	assert.Greater(t, w.store(4).Regions, 10)
	assert.Empty(t, w.c.Alarms())
}

func TestPDShowsTheKeysThatFollowFromTheSizeOfARegion(t *testing.T) {
	w := newWorld(t)
	require.NoError(t, w.c.SetConfig(map[string]any{"schedule.max-merge-region-keys": 0, "schedule.max-merge-region-size": 20}))
	require.EqualValues(t, 200_000, w.c.ConfigSection("schedule")["max-merge-region-keys"])
}
