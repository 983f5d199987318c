package conformance_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// member is a PD member that leads, as a store reaches it.
type member struct {
	pdpb.PDClient
	address string
	header  *pdpb.RequestHeader
}

// speaker says what stores say, to whichever member leads.
type speaker struct {
	// find returns the leader's address and the cluster's ID; false while there is none.
	find  func(ctx context.Context) (address string, cluster uint64, ok bool)
	conns map[string]*grpc.ClientConn
}

// leader calls the leader, wherever it is by now.
func (s *speaker) leader(t *testing.T, call func(ctx context.Context, m member) error) {
	t.Helper()
	var last error
	try := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		address, cluster, ok := s.find(ctx)
		if !ok {
			return false
		}
		conn, ok := s.conns[address]
		if !ok {
			if conn, last = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials())); last != nil {
				return false
			}
			s.conns[address] = conn
		}
		last = call(ctx, member{pdpb.NewPDClient(conn), address, &pdpb.RequestHeader{ClusterId: cluster}})
		return last == nil
	}
	if !try() {
		require.Eventually(t, try, time.Minute, 20*time.Millisecond, "no leader answered: %v", &last)
	}
}

// close ends the connections.
func (s *speaker) close() {
	for _, c := range s.conns {
		_ = c.Close()
	}
}

func metaPB(s model.StoreMeta) *metapb.Store {
	out := &metapb.Store{
		Id: s.ID, Address: s.Address, PeerAddress: s.PeerAddress, StatusAddress: s.StatusAddress, Version: s.Version,
		GitHash: s.GitHash, DeployPath: s.DeployPath, StartTimestamp: s.StartTimestamp,
	}
	for _, l := range s.Labels {
		out.Labels = append(out.Labels, &metapb.StoreLabel{Key: l.Key, Value: l.Value})
	}
	return out
}

func headerError(h *pdpb.ResponseHeader) error {
	if e := h.GetError(); e != nil {
		return fmt.Errorf("%s: %s", e.GetType(), e.GetMessage())
	}
	return nil
}

// firstRegion is the region that a cluster begins with.
func firstRegion(store uint64) *metapb.Region {
	return &metapb.Region{
		Id: 2, RegionEpoch: &metapb.RegionEpoch{ConfVer: 1, Version: 1}, Peers: []*metapb.Peer{{Id: 3, StoreId: store}},
	}
}

func (s *speaker) Bootstrap(t *testing.T, store model.StoreMeta) {
	t.Helper()
	s.leader(t, func(ctx context.Context, m member) error {
		res, err := m.Bootstrap(ctx, &pdpb.BootstrapRequest{Header: m.header, Store: metaPB(store), Region: firstRegion(store.ID)})
		if err != nil {
			return err
		}
		return headerError(res.GetHeader())
	})
}

func (s *speaker) Put(t *testing.T, store model.StoreMeta) {
	t.Helper()
	s.leader(t, func(ctx context.Context, m member) error {
		res, err := m.PutStore(ctx, &pdpb.PutStoreRequest{Header: m.header, Store: metaPB(store)})
		if err != nil {
			return err
		}
		return headerError(res.GetHeader())
	})
}

// beat is the heartbeat of a store with so many bytes in it.
func (m member) beat(ctx context.Context, store uint64, used int64) error {
	const capacity = 10 << 30
	res, err := m.StoreHeartbeat(ctx, &pdpb.StoreHeartbeatRequest{Header: m.header, Stats: &pdpb.StoreStats{
		StoreId: store, Capacity: capacity, Available: uint64(capacity - used), UsedSize: uint64(used), RegionCount: uint32(used / regionSize),
	}})
	if err != nil {
		return err
	}
	return headerError(res.GetHeader())
}

func (s *speaker) Heartbeat(t *testing.T, store uint64) {
	t.Helper()
	s.leader(t, func(ctx context.Context, m member) error { return m.beat(ctx, store, 1<<30) })
}

func (s *speaker) SafePoint(t *testing.T, at uint64) {
	t.Helper()
	s.leader(t, func(ctx context.Context, m member) error {
		res, err := m.UpdateServiceGCSafePoint(ctx, &pdpb.UpdateServiceGCSafePointRequest{
			Header: m.header, ServiceId: []byte(model.GCWorker), TTL: 9223372036854775807, SafePoint: at,
		})
		if err != nil {
			return err
		}
		return headerError(res.GetHeader())
	})
}

const (
	// manyRegions are as many as the recorded cluster had.
	manyRegions = 104
	// regionSize is how large each is.
	regionSize = 10 << 20
	// deadAfter is how long a store has sent no heartbeat when its regions elect others.
	deadAfter = 10 * time.Second
	// downAfter is how long it has been when leaders tell PD that its peers are down.
	downAfter = 30 * time.Second
)

// region is a region as the stores have it.
type region struct {
	meta   *metapb.Region
	leader uint64 // store
}

func (r *region) peer(store uint64) *metapb.Peer {
	i := slices.IndexFunc(r.meta.Peers, func(p *metapb.Peer) bool { return p.GetStoreId() == store })
	if i < 0 {
		return nil
	}
	return r.meta.Peers[i]
}

func (r *region) voters() int {
	n := 0
	for _, p := range r.meta.Peers {
		if p.GetRole() == metapb.PeerRole_Voter {
			n++
		}
	}
	return n
}

// fleet is the regions of stores that have no data: they are told to PD, and move as
// it orders. A store lives while the test lets its heart beat; nothing is sent by
// itself but what becomes of an order.
type fleet struct {
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	regions []*region
	seen    map[uint64]time.Time
	streams map[uint64]*stream
}

// stream is how a store tells one PD member of the regions that it leads.
type stream struct {
	member member
	store  uint64
	pdpb.PD_RegionHeartbeatClient
}

func newFleet() *fleet {
	ctx, cancel := context.WithCancel(context.Background())
	return &fleet{ctx: ctx, cancel: cancel, seen: map[uint64]time.Time{}, streams: map[uint64]*stream{}}
}

// close ends all streams, and waits for what listens to them.
func (f *fleet) close() {
	f.cancel()
	f.work.Wait()
}

// found makes the first region. PD gives IDs out from 1 on, and would give those away
// that the recorded stores chose for themselves.
func (f *fleet) found(ctx context.Context, m member, store uint64) error {
	for {
		res, err := m.AllocID(ctx, &pdpb.AllocIDRequest{Header: m.header})
		if err == nil {
			err = headerError(res.GetHeader())
		}
		if err != nil {
			return err
		}
		if res.GetId() > 10 {
			break
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.regions = []*region{{meta: firstRegion(store), leader: store}}
	return nil
}

// count is how many regions have a peer on a store.
func (f *fleet) count(store uint64) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.regions {
		if r.peer(store) != nil {
			n++
		}
	}
	return n
}

// beat tells PD of the regions that a store leads.
func (f *fleet) beat(ctx context.Context, m member, store uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[store] = time.Now()
	if s := f.streams[store]; s == nil || s.member.address != m.address {
		if err := f.open(m, store); err != nil {
			return err
		}
	}
	f.elect()
	if err := f.grow(ctx, m); err != nil {
		return err
	}
	for _, r := range f.regions {
		if r.leader == store {
			if err := f.tell(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// open begins a stream. It is called with the lock held.
func (f *fleet) open(m member, store uint64) error {
	ctx, cancel := context.WithCancel(f.ctx)
	client, err := m.RegionHeartbeat(ctx)
	if err != nil {
		cancel()
		return fmt.Errorf("open stream of store %d: %w", store, err)
	}
	s := &stream{m, store, client}
	f.streams[store] = s
	f.work.Go(func() {
		defer cancel()
		for {
			res, err := s.Recv()
			if err != nil {
				f.forget(s)
				return
			}
			f.obey(s, res)
		}
	})
	return nil
}

// forget drops a stream that has ended; the store's next heartbeat opens another.
func (f *fleet) forget(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams[s.store] == s {
		delete(f.streams, s.store)
	}
}

// tell sends a region's heartbeat, if its leader has a stream. It is called with the
// lock held.
func (f *fleet) tell(r *region) error {
	s := f.streams[r.leader]
	if s == nil {
		return nil
	}
	now := time.Now()
	req := &pdpb.RegionHeartbeatRequest{
		Header: s.member.header, Region: cloneRegion(r.meta), Leader: r.peer(r.leader), Term: 6,
		ApproximateSize: regionSize, ApproximateKeys: 10485,
		Interval: &pdpb.TimeInterval{StartTimestamp: uint64(now.Add(-time.Second).Unix()), EndTimestamp: uint64(now.Unix())},
	}
	for _, p := range r.meta.Peers {
		if unseen := now.Sub(f.seen[p.GetStoreId()]); unseen > downAfter {
			req.DownPeers = append(req.DownPeers, &pdpb.PeerStats{Peer: p, DownSeconds: uint64(unseen.Seconds())})
		}
	}
	if err := s.Send(req); err != nil {
		delete(f.streams, r.leader)
		return fmt.Errorf("tell of region %d: %w", r.meta.GetId(), err)
	}
	return nil
}

// cloneRegion copies what may change while PD is told of it.
func cloneRegion(r *metapb.Region) *metapb.Region {
	out := &metapb.Region{
		Id: r.Id, StartKey: r.StartKey, EndKey: r.EndKey,
		RegionEpoch: &metapb.RegionEpoch{ConfVer: r.RegionEpoch.ConfVer, Version: r.RegionEpoch.Version},
	}
	for _, p := range r.Peers {
		out.Peers = append(out.Peers, &metapb.Peer{Id: p.Id, StoreId: p.StoreId, Role: p.Role})
	}
	return out
}

func (f *fleet) lives(store uint64) bool { return time.Since(f.seen[store]) < deadAfter }

// elect gives regions whose leader's store is dead another leader, where a majority lives.
func (f *fleet) elect() {
	for _, r := range f.regions {
		if f.lives(r.leader) {
			continue
		}
		var alive []uint64
		for _, p := range r.meta.Peers {
			if p.GetRole() == metapb.PeerRole_Voter && f.lives(p.GetStoreId()) {
				alive = append(alive, p.GetStoreId())
			}
		}
		if len(alive) > r.voters()/2 {
			r.leader = alive[int(r.meta.GetId())%len(alive)]
		}
	}
}

// grow makes a cluster of many regions, once all that there are have three voters.
func (f *fleet) grow(ctx context.Context, m member) error {
	if len(f.regions) == 0 || len(f.regions) >= manyRegions || slices.ContainsFunc(f.regions, func(r *region) bool { return r.voters() != 3 }) {
		return nil
	}
	var keys [][]byte
	for i := range manyRegions {
		key, err := hex.DecodeString(fmt.Sprintf("7480000000000000FF%02X%02X000000000000F8", (i+2)*2%256, (i+2)*2/256))
		if err != nil {
			return fmt.Errorf("make key of table %d: %w", i, err)
		}
		keys = append(keys, key)
	}
	// At 256 the keys begin again with a higher second byte, which sorts lower.
	slices.SortFunc(keys, bytes.Compare)
	for _, r := range f.regions {
		if r.holds(keys[0]) {
			return f.split(ctx, m, r, keys)
		}
	}
	return nil
}

func (r *region) holds(key []byte) bool {
	return bytes.Compare(key, r.meta.StartKey) > 0 && (len(r.meta.EndKey) == 0 || bytes.Compare(key, r.meta.EndKey) < 0)
}

// split splits a region at those of some keys that lie in it, with IDs from PD. It is
// called with the lock held.
func (f *fleet) split(ctx context.Context, m member, r *region, keys [][]byte) error {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key []byte) bool { return !r.holds(key) })
	if len(keys) == 0 {
		return nil
	}
	res, err := m.AskBatchSplit(ctx, &pdpb.AskBatchSplitRequest{Header: m.header, Region: cloneRegion(r.meta), SplitCount: uint32(len(keys))})
	if err == nil {
		err = headerError(res.GetHeader())
	}
	if err != nil {
		// PD does not know the region as it is yet; there is another heartbeat.
		return f.tell(r)
	}
	end := r.meta.EndKey
	r.meta.EndKey = keys[0]
	r.meta.RegionEpoch.Version += uint64(len(keys))
	made := []*region{r}
	for i, id := range res.GetIds() {
		next := &region{meta: cloneRegion(r.meta), leader: r.leader}
		next.meta.Id, next.meta.StartKey, next.meta.EndKey = id.GetNewRegionId(), keys[i], end
		if i+1 < len(keys) {
			next.meta.EndKey = keys[i+1]
		}
		for j, p := range next.meta.Peers {
			p.Id = id.GetNewPeerIds()[j]
		}
		made = append(made, next)
	}
	f.regions = append(f.regions, made[1:]...)
	for _, one := range made {
		if err := f.tell(one); err != nil {
			return err
		}
	}
	return nil
}

// obey carries out what PD orders the leader of a region.
func (f *fleet) obey(s *stream, res *pdpb.RegionHeartbeatResponse) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.regions, func(r *region) bool { return r.meta.GetId() == res.GetRegionId() })
	if i < 0 || f.regions[i].leader != s.store || !f.lives(s.store) {
		return
	}
	r := f.regions[i]
	epoch := r.meta.RegionEpoch
	if e := res.GetRegionEpoch(); e.GetConfVer() != epoch.ConfVer || e.GetVersion() != epoch.Version {
		return // an order for what the region was before
	}
	switch {
	case res.GetTransferLeader() != nil:
		to := r.peer(res.GetTransferLeader().GetPeer().GetStoreId())
		if to == nil || to.GetRole() == metapb.PeerRole_Learner || !f.lives(to.GetStoreId()) {
			return
		}
		r.leader = to.GetStoreId()
	case res.GetChangePeer() != nil:
		f.change(r, []*pdpb.ChangePeer{res.GetChangePeer()})
	case res.GetChangePeerV2() != nil:
		f.change(r, res.GetChangePeerV2().GetChanges())
	case res.GetSplitRegion() != nil:
		ctx, cancel := context.WithTimeout(f.ctx, 3*time.Second)
		defer cancel()
		_ = f.split(ctx, s.member, r, res.GetSplitRegion().GetKeys()) // PD orders it again
		return
	default:
		return // merges, and what else is done for the sake of data
	}
	_ = f.tell(r) // the next heartbeat tells it as well
}

// change changes the peers of a region: one change at once, several by a joint
// configuration, which no change at all ends.
func (f *fleet) change(r *region, changes []*pdpb.ChangePeer) {
	joint := len(changes) > 1
	for _, c := range changes {
		id, store := c.GetPeer().GetId(), c.GetPeer().GetStoreId()
		have := r.peer(store)
		switch c.GetChangeType() {
		case eraftpb.ConfChangeType_RemoveNode:
			r.meta.Peers = slices.DeleteFunc(r.meta.Peers, func(p *metapb.Peer) bool { return p.GetId() == id })
		case eraftpb.ConfChangeType_AddNode:
			role := metapb.PeerRole_Voter
			if joint {
				role = metapb.PeerRole_IncomingVoter
			}
			r.set(have, id, store, role)
		case eraftpb.ConfChangeType_AddLearnerNode:
			role := metapb.PeerRole_Learner
			if joint && have != nil {
				role = metapb.PeerRole_DemotingVoter
			}
			r.set(have, id, store, role)
		}
		r.meta.RegionEpoch.ConfVer++
	}
	if len(changes) > 0 {
		return
	}
	for _, p := range r.meta.Peers {
		switch p.GetRole() {
		case metapb.PeerRole_IncomingVoter:
			p.Role = metapb.PeerRole_Voter
		case metapb.PeerRole_DemotingVoter:
			p.Role = metapb.PeerRole_Learner
		default:
			continue
		}
		r.meta.RegionEpoch.ConfVer++
	}
}

func (r *region) set(have *metapb.Peer, id, store uint64, role metapb.PeerRole) {
	if have == nil {
		r.meta.Peers = append(r.meta.Peers, &metapb.Peer{Id: id, StoreId: store, Role: role})
		return
	}
	have.Role = role
}
