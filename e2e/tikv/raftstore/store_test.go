package raftstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
)

func (c *cluster) addLearner(region, store uint64) {
	c.t.Helper()
	learner := &metapb.Peer{Id: c.newID(), StoreId: store, Role: metapb.PeerRole_Learner}
	c.order(region, "add a learner", &pdpb.RegionHeartbeatResponse{
		ChangePeer: &pdpb.ChangePeer{ChangeType: eraftpb.ConfChangeType_AddLearnerNode, Peer: learner},
	}, func(r *metapb.Region, _ *metapb.Peer) bool { return peerOn(r, store) != nil })
}

func (c *cluster) addPeer(region, store uint64) {
	c.t.Helper()
	c.addLearner(region, store)
	peer := &metapb.Peer{Id: peerOn(c.region(region), store).Id, StoreId: store}
	c.order(region, "make it a voter", &pdpb.RegionHeartbeatResponse{
		ChangePeer: &pdpb.ChangePeer{ChangeType: eraftpb.ConfChangeType_AddNode, Peer: peer},
	}, func(r *metapb.Region, _ *metapb.Peer) bool {
		return peerOn(r, store).GetRole() == metapb.PeerRole_Voter
	})
}

func (c *cluster) transfer(region, store uint64) {
	c.t.Helper()
	c.order(region, "transfer the leader", &pdpb.RegionHeartbeatResponse{
		TransferLeader: &pdpb.TransferLeader{Peer: peerOn(c.region(region), store)},
	}, func(_ *metapb.Region, leader *metapb.Peer) bool { return leader.GetStoreId() == store })
}

// move replaces a region's peer on one store by one on another, as PD does with
// joint consensus.
func (c *cluster) move(region, from, to uint64) {
	c.t.Helper()
	c.addLearner(region, to)
	learner, old := peerOn(c.region(region), to), peerOn(c.region(region), from)
	c.order(region, "enter the joint configuration", &pdpb.RegionHeartbeatResponse{ChangePeerV2: &pdpb.ChangePeerV2{Changes: []*pdpb.ChangePeer{
		{ChangeType: eraftpb.ConfChangeType_AddNode, Peer: &metapb.Peer{Id: learner.Id, StoreId: to}},
		{ChangeType: eraftpb.ConfChangeType_AddLearnerNode, Peer: &metapb.Peer{Id: old.Id, StoreId: from, Role: metapb.PeerRole_Learner}},
	}}}, func(r *metapb.Region, _ *metapb.Peer) bool { return isInJointState(r) })
	c.order(region, "lead from elsewhere", &pdpb.RegionHeartbeatResponse{TransferLeader: &pdpb.TransferLeader{Peer: peerOn(c.region(region), to)}},
		func(_ *metapb.Region, leader *metapb.Peer) bool { return leader.GetStoreId() != from })
	c.order(region, "leave the joint configuration", &pdpb.RegionHeartbeatResponse{ChangePeerV2: &pdpb.ChangePeerV2{}},
		func(r *metapb.Region, _ *metapb.Peer) bool { return !isInJointState(r) })
	c.order(region, "remove the learner", &pdpb.RegionHeartbeatResponse{
		ChangePeer: &pdpb.ChangePeer{ChangeType: eraftpb.ConfChangeType_RemoveNode, Peer: old},
	}, func(r *metapb.Region, _ *metapb.Peer) bool { return peerOn(r, from) == nil })
}

// splitAt splits the region of a key there.
func (c *cluster) splitAt(key string) {
	c.t.Helper()
	c.until("split at "+key, func() bool {
		region, leader := c.regionOf(key)
		if string(region.GetStartKey()) == string(engine.EncodeKey([]byte(key))) {
			return true
		}
		if leader == nil {
			return false
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		store := c.nodes[leader.StoreId].current()
		ticket, refused := store.Admit(ctx, &kvrpcpb.Context{RegionId: region.Id, RegionEpoch: region.RegionEpoch, Peer: leader})
		if refused == nil {
			_, _ = store.Split(ctx, ticket, [][]byte{engine.EncodeKey([]byte(key))})
		}
		return false
	})
}

func (c *cluster) three() {
	c.t.Helper()
	c.addPeer(1, 2)
	c.addPeer(1, 3)
}

func TestANewPeerGetsASnapshot(t *testing.T) {
	c := newCluster(t, 3)
	for i := range 200 {
		c.must(fmt.Sprintf("t%03d", i), "before")
	}
	c.three()
	c.must("t100", "after")
	c.agree()
	value, _, err := c.nodes[3].read("t100")
	require.NoError(t, err)
	assert.Equal(t, "after", value)
	c.nodes[3].restart()
	c.agree()
	value, _, err = c.nodes[3].read("t199")
	require.NoError(t, err)
	assert.Equal(t, "before", value)
}

func TestARegionIsSplitWhileAFollowerLags(t *testing.T) {
	for name, entries := range map[string]int{"and has the log": 1, "and needs snapshots": 2 * quickly.KeepEntries} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3)
			c.three()
			c.transfer(1, 1)
			for i := range 20 {
				c.must(fmt.Sprintf("t%03d", i), "before")
			}
			c.network(0, 3)
			c.splitAt("t010")
			c.splitAt("t005")
			for i := range entries {
				for _, key := range []string{"t000", "t007", "t015"} {
					c.must(key, fmt.Sprint(i))
				}
			}
			c.network(0)
			assert.Len(t, c.agree(), 3)
			for _, key := range []string{"t000", "t007", "t015"} {
				value, _, err := c.nodes[3].read(key)
				require.NoError(t, err)
				assert.Equal(t, fmt.Sprint(entries-1), value)
			}
		})
	}
}

func TestAPeerMovesToAnotherStore(t *testing.T) {
	c := newCluster(t, 4)
	c.three()
	for i := range 20 {
		c.must(fmt.Sprintf("t%03d", i), "before")
	}
	c.transfer(1, 2)
	c.move(1, 2, 4)
	c.must("t005", "after")
	report := c.agree()[1]
	assert.Len(t, report.Region.Peers, 3)
	c.until("the store that lost it has nothing left", func() bool {
		reports, err := c.nodes[2].current().Reports(t.Context(), false)
		return err == nil && len(reports) == 0
	})
	view := c.nodes[2].engine.View()
	_, keys, err := view.Size(nil, nil)
	require.NoError(t, err)
	require.NoError(t, view.Close())
	assert.Zero(t, keys)
	// And back: what was here once must not shine through, nor hide the new.
	c.move(1, 4, 2)
	c.agree()
	value, _, err := c.nodes[2].read("t005")
	require.NoError(t, err)
	assert.Equal(t, "after", value)
	value, _, err = c.nodes[2].read("t006")
	require.NoError(t, err)
	assert.Equal(t, "before", value)
}

func TestAPeerRemovedDuringAPartitionLearnsOfIt(t *testing.T) {
	for name, add := range map[string]func(c *cluster, region, store uint64){"a voter": (*cluster).addPeer, "a learner": (*cluster).addLearner} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 4)
			c.three()
			add(c, 1, 4)
			c.transfer(1, 1)
			c.must("t1", "x")
			c.agree()
			c.network(0, 4)
			c.order(1, "remove the peer", &pdpb.RegionHeartbeatResponse{ChangePeer: &pdpb.ChangePeer{
				ChangeType: eraftpb.ConfChangeType_RemoveNode, Peer: peerOn(c.region(1), 4),
			}}, func(r *metapb.Region, _ *metapb.Peer) bool { return peerOn(r, 4) == nil })
			c.network(0)
			c.until("the peer is gone", func() bool {
				reports, err := c.nodes[4].current().Reports(t.Context(), false)
				return err == nil && len(reports) == 0
			})
			c.agree()
			c.nodes[4].restart()
			c.agree()
		})
	}
}

// TestNothingIsLostOrDecidedTwice lets clients count while messages are lost, stores
// restart or are cut off, leaders move, regions split and peers change stores. Each
// count that was acknowledged must be there, and none twice.
func TestNothingIsLostOrDecidedTwice(t *testing.T) {
	c := newCluster(t, 4)
	c.three()
	const counters = 6
	key := func(i int) string { return fmt.Sprintf("t%d", i) }
	acknowledged := make([]map[string]int, counters)
	stop := make(chan struct{})
	var clients sync.WaitGroup
	for i := range counters {
		acknowledged[i] = map[string]int{}
		clients.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				value, err := c.write(key(i), func(old string) string {
					n, _ := strconv.Atoi(old)
					return strconv.Itoa(n + 1)
				})
				if err != nil {
					<-time.After(time.Millisecond)
					continue
				}
				acknowledged[i][value]++
			}
		})
	}
	seed := uint64(time.Now().UnixNano())
	t.Log("seed", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	rounds := 40
	if testing.Short() {
		rounds = 15
	}
	for round := range rounds {
		n := uint64(1 + random.IntN(4))
		switch random.IntN(6) {
		case 0:
			c.network(0.2)
		case 1:
			c.network(0, n)
		case 2:
			c.nodes[n].restart()
		case 3:
			c.network(0)
			c.splitAt(key(random.IntN(counters)))
		case 4:
			c.network(0.02)
			region, _ := c.regionOf(key(random.IntN(counters)))
			for from := uint64(1); from <= 4; from++ {
				if peerOn(region, from) != nil && peerOn(region, n) == nil {
					c.move(region.Id, from, n)
					break
				}
			}
		case 5:
			c.network(0)
			region, _ := c.regionOf(key(random.IntN(counters)))
			if peerOn(region, n) != nil {
				c.nodes[region.Peers[0].StoreId].current().Order(&pdpb.RegionHeartbeatResponse{
					RegionId: region.Id, TransferLeader: &pdpb.TransferLeader{Peer: peerOn(region, n)},
				})
			}
		}
		<-time.After(time.Duration(random.IntN(150)) * time.Millisecond)
		if round%5 == 4 {
			c.network(0)
		}
	}
	c.network(0)
	close(stop)
	clients.Wait()
	regions := c.agree()
	t.Log("regions", len(regions))
	total := 0
	for i := range counters {
		most := 0
		for value, times := range acknowledged[i] {
			require.Equal(t, 1, times, "%s was counted to %s twice", key(i), value)
			n, err := strconv.Atoi(value)
			require.NoError(t, err)
			most = max(most, n)
		}
		total += len(acknowledged[i])
		region, _ := c.regionOf(key(i))
		value, _, err := c.nodes[region.Peers[0].StoreId].read(key(i))
		require.NoError(t, err)
		n, err := strconv.Atoi(value)
		require.NoError(t, err)
		require.GreaterOrEqual(t, n, most, key(i))
	}
	t.Log("acknowledged", total)
	require.Positive(t, total)
}
