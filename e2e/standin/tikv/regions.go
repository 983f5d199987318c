package tikv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/eraftpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// regionPath is where a store takes over the lead of a region.
const regionPath = "/stand-in/region"

// regions are those that this store leads. There is no Raft behind them: the
// leader changes the peers as PD orders, and a leader's handing over is one
// HTTP request to the next.
type regions struct {
	store   *Store
	changed chan struct{} // holds one token while something has to be reported

	mu  sync.Mutex
	led map[uint64]*metapb.Region // by region ID
}

func (r *regions) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.led)
}

// lead takes a region, durably, and has it reported.
func (r *regions) lead(region *metapb.Region) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.led[region.GetId()] = region
	return r.save()
}

// save is called with the lock held.
func (r *regions) save() error {
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return r.store.dir.write(regionFile, r.led)
}

// report keeps a stream of region heartbeats to PD's leader and carries out
// what comes back, until ctx ends. A PD that keeps no regions is left alone.
func (r *regions) report(ctx context.Context) error {
	for {
		err := r.stream(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if status.Code(errors.Unwrap(err)) == codes.Unimplemented {
			r.store.log.Info("PD takes no region heartbeats")
			<-ctx.Done()
			return nil
		}
		r.store.log.Debug("region heartbeats broke off", "error", err)
		r.store.pd.Forget()
		if process.WaitFor(ctx, time.Second) != nil {
			return nil
		}
	}
}

func (r *regions) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	leader, err := r.store.pd.Leader(ctx)
	if err != nil {
		return err
	}
	s, err := leader.RegionHeartbeat(ctx)
	if err != nil {
		return fmt.Errorf("open region heartbeats: %w", err)
	}
	broken := make(chan error, 1)
	go func() {
		for {
			order, err := s.Recv()
			if err != nil {
				broken <- fmt.Errorf("receive from PD: %w", err)
				return
			}
			if err := r.obey(ctx, order); err != nil {
				r.store.log.Warn("order of PD not carried out", "region", order.GetRegionId(), "error", err)
			}
		}
	}()
	every := time.NewTicker(r.store.regionHeartbeat)
	defer every.Stop()
	for {
		for _, req := range r.requests() {
			if err := s.Send(req); err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("send to PD: %w", err)
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-broken:
			return err
		case <-every.C:
		case <-r.changed:
		}
	}
}

// requests are the heartbeats of all regions led here.
func (r *regions) requests() []*pdpb.RegionHeartbeatRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := uint64(time.Now().Unix())
	var all []*pdpb.RegionHeartbeatRequest
	for _, region := range r.led {
		all = append(all, &pdpb.RegionHeartbeatRequest{
			Header: r.store.pd.Header(), Region: region, Leader: peerOn(region, r.store.ident.StoreID),
			ApproximateSize: 1 << 20, ApproximateKeys: 1, Term: 6,
			Interval: &pdpb.TimeInterval{StartTimestamp: now - 1, EndTimestamp: now},
		})
	}
	return all
}

func peerOn(region *metapb.Region, store uint64) *metapb.Peer {
	for _, p := range region.GetPeers() {
		if p.GetStoreId() == store {
			return p
		}
	}
	return nil
}

// obey carries out one order. What has no meaning here (splits, merges) is
// left undone; PD's operator times out then, as with a real store in trouble.
func (r *regions) obey(ctx context.Context, order *pdpb.RegionHeartbeatResponse) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.led[order.GetRegionId()]
	if old == nil {
		return nil
	}
	region, err := cloneRegion(old)
	if err != nil {
		return err
	}
	switch {
	case order.GetTransferLeader() != nil:
		return r.handOver(ctx, region, order.GetTransferLeader().GetPeer())
	case order.GetChangePeer() != nil:
		applyChange(region, order.GetChangePeer(), false)
		region.RegionEpoch.ConfVer++
	case order.GetChangePeerV2() != nil:
		region.RegionEpoch.ConfVer += changeAll(region, order.GetChangePeerV2().GetChanges())
	default:
		return nil
	}
	if peerOn(region, r.store.ident.StoreID) == nil {
		return errors.New("PD wants to remove the leader's own peer")
	}
	r.led[region.GetId()] = region
	return r.save()
}

func cloneRegion(region *metapb.Region) (*metapb.Region, error) {
	text, err := region.Marshal()
	if err != nil {
		return nil, fmt.Errorf("copy region: %w", err)
	}
	copied := &metapb.Region{}
	if err := copied.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("copy region: %w", err)
	}
	return copied, nil
}

// changeAll makes several changes at once and returns how far they move the
// version. More than one goes through the joint state, which PD asks to leave
// with an empty list.
func changeAll(region *metapb.Region, changes []*pdpb.ChangePeer) uint64 {
	if len(changes) > 0 {
		for _, c := range changes {
			applyChange(region, c, len(changes) > 1)
		}
		return uint64(len(changes))
	}
	var left uint64
	for _, p := range region.GetPeers() {
		switch p.GetRole() {
		case metapb.PeerRole_IncomingVoter:
			p.Role = metapb.PeerRole_Voter
			left++
		case metapb.PeerRole_DemotingVoter:
			p.Role = metapb.PeerRole_Learner
			left++
		case metapb.PeerRole_Voter, metapb.PeerRole_Learner:
		}
	}
	return left
}

// applyChange makes one change of peers.
func applyChange(region *metapb.Region, c *pdpb.ChangePeer, joint bool) {
	at := slices.IndexFunc(region.Peers, func(p *metapb.Peer) bool { return p.GetStoreId() == c.GetPeer().GetStoreId() })
	if c.GetChangeType() == eraftpb.ConfChangeType_RemoveNode {
		if at >= 0 {
			region.Peers = slices.Delete(region.Peers, at, at+1)
		}
		return
	}
	if at < 0 {
		region.Peers = append(region.Peers, &metapb.Peer{Id: c.GetPeer().GetId(), StoreId: c.GetPeer().GetStoreId()})
		at = len(region.Peers) - 1
	}
	role := metapb.PeerRole_Voter
	if c.GetChangeType() == eraftpb.ConfChangeType_AddLearnerNode {
		role = metapb.PeerRole_Learner
	}
	if joint && role == metapb.PeerRole_Voter {
		role = metapb.PeerRole_IncomingVoter
	} else if joint && region.Peers[at].GetRole() == metapb.PeerRole_Voter {
		role = metapb.PeerRole_DemotingVoter
	}
	region.Peers[at].Role = role
}

// handOver gives the lead to the peer on another store, and drops it here once
// that store has it on disk. Called with the lock held.
func (r *regions) handOver(ctx context.Context, region *metapb.Region, to *metapb.Peer) error {
	if to.GetStoreId() == r.store.ident.StoreID || peerOn(region, to.GetStoreId()) == nil {
		return nil
	}
	return r.store.pd.Do(ctx, "hand a region over", func(ctx context.Context, pd pdpb.PDClient) error {
		res, err := pd.GetStore(ctx, &pdpb.GetStoreRequest{Header: r.store.pd.Header(), StoreId: to.GetStoreId()})
		if err != nil {
			return err
		}
		text, err := json.Marshal(region)
		if err != nil {
			return fmt.Errorf("encode region: %w", err)
		}
		url := process.URL(r.store.pd.Over(), res.GetStore().GetAddress(), regionPath)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("make request: %w", err)
		}
		answer, err := process.Do(r.store.pd.Over(), req)
		if err != nil {
			return err
		}
		if err := answer.Body.Close(); err != nil {
			return err
		}
		if answer.StatusCode != http.StatusNoContent {
			return fmt.Errorf("%s answers %s", url, answer.Status)
		}
		delete(r.led, region.GetId())
		return r.save()
	})
}

// ServeHTTP takes a region over.
func (r *regions) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	region := &metapb.Region{}
	err := json.NewDecoder(http.MaxBytesReader(w, req.Body, 1<<20)).Decode(region)
	if err == nil && peerOn(region, r.store.ident.StoreID) == nil {
		err = errors.New("this store has no peer of the region")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := r.lead(region); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
