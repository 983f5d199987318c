package polling_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pd/pdtest"
	"github.com/tidb-groups/tidb-groups/shared/pd/polling"
)

// watchPD has a PD polled until the test ends, and returns who polls it under which name.
func watchPD(t *testing.T, client pd.Client) (*polling.Poller, types.NamespacedName) {
	t.Helper()
	poller, name := polling.New(func(types.NamespacedName) (pd.Client, error) { return client, nil }), types.NamespacedName{Namespace: "ns", Name: "a"}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- poller.Start(ctx) }()
	t.Cleanup(func() { stop(); assert.NoError(t, <-ended) })
	poller.Watch(name, true)
	return poller, name
}

// giveRegions gives each store a region.
func giveRegions(fake *pdtest.PD) {
	fake.Change(func(v *pd.View) {
		for i := range v.Stores {
			v.Stores[i].Regions = 1
		}
	})
}

// S F9, U 3: a region whose majority is on stores that PD does not hear of is found,
// whichever group owns these, and seen no more when they are back.
func TestRegionsWithoutAMajorityAreFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := pdtest.New(pd.View{ClusterID: "7", MaxReplicas: 3, Bootstrapped: true})
		var ids []string
		for _, address := range []string{"a:1", "b:1", "c:1", "d:1"} {
			ids = append(ids, fake.Register(address))
		}
		region := func(id string, on ...string) pd.Region {
			r := pd.Region{ID: id}
			for _, s := range on {
				r.Peers = append(r.Peers, pd.Peer{StoreID: s, Voter: true})
			}
			return r
		}
		fake.SetPlaced(region("1", ids[0], ids[2], ids[3]), region("2", ids[1], ids[2], ids[3]))
		giveRegions(fake)
		poller, name := watchPD(t, fake)
		lost := func() bool { view, known := poller.View(name); return known && view.MajorityLost }
		missed := func() int { view, _ := poller.View(name); return len(view.UnreachableStores()) }

		fake.SetState(pd.StateDisconnected, ids[0], ids[1])
		require.Eventually(t, func() bool { return missed() == 2 }, 10*time.Second, 10*time.Millisecond)
		poller.Ask(t.Context(), name)
		assert.Never(t, lost, 500*time.Millisecond, 10*time.Millisecond, "each region has two of three voters")

		fake.SetState(pd.StateDisconnected, ids[2])
		require.Eventually(t, lost, 10*time.Second, 10*time.Millisecond)
		fake.SetState(pd.StateUp, ids[0], ids[1], ids[2])
		require.Eventually(t, func() bool { return !lost() }, 10*time.Second, 10*time.Millisecond)
	})
}

// A user who has PD remove stores by force makes tombstones of them first (RemoveFailedStores in PD's
// sources pkg/unsaferecovery): their regions have no majority until PD has made new ones.
func TestRegionsOfStoresThatAreRemovedByForceHaveNoMajority(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := pdtest.New(pd.View{ClusterID: "7", MaxReplicas: 3, Bootstrapped: true})
		ids := []string{fake.Register("a:1"), fake.Register("b:1"), fake.Register("c:1"), fake.Register("d:1")}
		var peers []pd.Peer
		for _, id := range ids {
			peers = append(peers, pd.Peer{StoreID: id, Voter: true})
		}
		fake.SetPlaced(pd.Region{ID: "1", Peers: peers[:3]})
		giveRegions(fake)
		poller, name := watchPD(t, fake)
		view := func() pd.View { v, _ := poller.View(name); return v }

		fake.SetState(pd.StateDown, ids[0], ids[1])
		require.Eventually(t, func() bool { return view().MajorityLost }, 10*time.Second, 10*time.Millisecond)
		fake.Change(func(v *pd.View) { v.Stores = slices.Clone(v.Stores[2:]) })
		require.Eventually(t, func() bool { return len(view().Stores) == 2 }, 10*time.Second, 10*time.Millisecond)
		assert.Never(t, func() bool { return !view().MajorityLost || len(view().ForceRemoved) != 2 }, 500*time.Millisecond, 10*time.Millisecond)

		fake.Fail(errors.New("no answer"))
		require.Eventually(t, func() bool { return view().Err != nil }, 10*time.Second, 10*time.Millisecond)
		fake.Fail(nil)
		require.Eventually(t, func() bool { return view().Err == nil }, 10*time.Second, 10*time.Millisecond)
		assert.True(t, view().MajorityLost, "a moment without PD changes nothing")

		// It says so when the next one is removed, and otherwise some seconds later.
		fake.SetPlaced(pd.Region{ID: "1", Peers: peers[3:]})
		fake.SetState(pd.StateDown, ids[2])
		require.Eventually(t, func() bool { return !view().MajorityLost && view().ForceRemoved == nil }, 10*time.Second, 10*time.Millisecond)
	})
}

// An operator that starts while PD removes stores by force knows of them before it says anything.
func TestAnOperatorThatStartsLearnsOfStoresThatAreRemovedByForce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := pdtest.New(pd.View{ClusterID: "7", MaxReplicas: 3, Bootstrapped: true})
		ids := []string{fake.Register("a:1"), fake.Register("b:1"), fake.Register("c:1"), fake.Register("d:1"), fake.Register("e:1")}
		region := func(on ...string) pd.Region {
			r := pd.Region{ID: "1"}
			for _, id := range on {
				r.Peers = append(r.Peers, pd.Peer{StoreID: id, Voter: true})
			}
			return r
		}
		fake.SetPlaced(region(ids[:3]...))
		giveRegions(fake)
		fake.Change(func(v *pd.View) { v.Stores = slices.Clone(v.Stores[2:]) })
		fake.SetRemoved(ids[:2]...)

		poller, name := watchPD(t, fake)
		first := poller.Ask(t.Context(), name)
		assert.True(t, first.MajorityLost || first.MajorityUnknown, "nothing is known yet, or the loss")
		assert.Equal(t, ids[:2], first.ForceRemoved)
		view := func() pd.View { v, _ := poller.View(name); return v }
		require.Eventually(t, func() bool { return view().MajorityLost }, 10*time.Second, 10*time.Millisecond)
		assert.Equal(t, ids[:2], view().ForceRemoved)
		fake.SetPlaced(region(ids[2:]...))
		require.Eventually(t, func() bool { return !view().MajorityLost && view().ForceRemoved == nil }, time.Minute, 10*time.Millisecond)
		assert.False(t, view().MajorityUnknown)

		// With another majority nothing is lost: a store alone was removed.
		fake.SetPlaced(region(ids[1:4]...))
		fake.SetRemoved(ids[1])
		again, name := watchPD(t, fake)
		require.Eventually(t, func() bool { v, known := again.View(name); return known && !v.MajorityUnknown }, 10*time.Second, 10*time.Millisecond)
		v, _ := again.View(name)
		assert.False(t, v.MajorityLost)
		assert.Empty(t, v.ForceRemoved)
	})
}

// mute is a PD that answers everything but which regions a store has, as one that has just begun to
// lead does while it loads them.
type mute struct {
	*pdtest.PD
	answers atomic.Bool
}

func (m *mute) FindRegion(ctx context.Context, storeID string, sought func(pd.Region) bool) (pd.Region, bool, error) {
	if !m.answers.Load() {
		return pd.Region{}, false, errors.New("no answer")
	}
	return m.PD.FindRegion(ctx, storeID, sought)
}

// KV-22: an operator that starts, or that PD does not answer, knows of no majority, and of no loss.
func TestKV22AMajorityIsUnknownUntilPDHasAnsweredForTheStoresThatAreMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &mute{PD: pdtest.New(pd.View{ClusterID: "7", MaxReplicas: 3, Bootstrapped: true})}
		var ids []string
		for _, address := range []string{"a:1", "b:1", "c:1", "d:1", "e:1"} {
			ids = append(ids, fake.Register(address))
		}
		giveRegions(fake.PD)
		poller, name := watchPD(t, fake)
		unknown := func() bool { view, known := poller.View(name); return !known || view.MajorityUnknown }

		fake.SetState(pd.StateDown, ids[0], ids[1])
		require.Eventually(t, func() bool { return poller.Ask(t.Context(), name).MajorityUnknown }, 10*time.Second, 10*time.Millisecond)
		assert.Never(t, func() bool { return !unknown() }, time.Minute, time.Second, "an answer that fails is none")
		fake.answers.Store(true)
		require.Eventually(t, func() bool { return !unknown() }, time.Minute, 10*time.Millisecond)
		assert.Never(t, unknown, time.Minute, time.Second, "it is known for these stores")

		fake.answers.Store(false)
		fake.SetState(pd.StateDown, ids[2])
		assert.True(t, poller.Ask(t.Context(), name).MajorityUnknown, "not for one more")
		fake.SetState(pd.StateUp)
		assert.False(t, poller.Ask(t.Context(), name).MajorityUnknown, "with none of them no majority is lost")
	})
}

func TestDisconnectedTiKVStoresCountAsMissed(t *testing.T) {
	store := func(id, state string, regions int) pd.Store { return pd.Store{ID: id, State: state, Regions: regions} }
	flash := store("9", pd.StateDown, 5)
	flash.Labels = map[string]string{"engine": "tiflash"}
	gone := store("7", pd.StateOffline, 5)
	gone.Missed = true
	compute := store("8", pd.StateDown, 5)
	compute.Labels = map[string]string{"Engine": "tiflash_compute"}
	for name, c := range map[string]struct {
		replicas int
		stores   []pd.Store
		missed   int
	}{
		"one of three replicas":   {3, []pd.Store{store("1", pd.StateDown, 5), store("2", pd.StateUp, 5)}, 0},
		"two of three":            {3, []pd.Store{store("1", pd.StateDown, 5), store("2", pd.StateDisconnected, 5)}, 2},
		"two of five":             {5, []pd.Store{store("1", pd.StateDown, 5), store("2", pd.StateDown, 5)}, 0},
		"the only one":            {1, []pd.Store{store("1", pd.StateDown, 5)}, 1},
		"without regions":         {3, []pd.Store{store("1", pd.StateDown, 5), store("2", pd.StateDown, 0)}, 0},
		"a TiFlash has no voters": {3, []pd.Store{store("1", pd.StateDown, 5), flash}, 0},
		"nor one that computes":   {3, []pd.Store{store("1", pd.StateDown, 5), compute}, 0},
		"who leaves may run":      {3, []pd.Store{store("1", pd.StateDown, 5), store("2", pd.StateOffline, 5)}, 0},
		"unless PD misses it":     {3, []pd.Store{store("1", pd.StateDown, 5), gone}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Len(t, pd.View{MaxReplicas: c.replicas, Stores: c.stores}.UnreachableStores(), c.missed)
		})
	}
}
