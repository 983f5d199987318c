package pd

import (
	"context"
	"encoding/hex"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

func toDuration(n int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(n, most)) * time.Second
}

func storeMeta(s *metapb.Store) model.StoreMeta {
	out := model.StoreMeta{
		ID: s.GetId(), Address: s.GetAddress(), PeerAddress: s.GetPeerAddress(), StatusAddress: s.GetStatusAddress(),
		Version: s.GetVersion(), GitHash: s.GetGitHash(), DeployPath: s.GetDeployPath(), StartTimestamp: s.GetStartTimestamp(),
	}
	for _, l := range s.GetLabels() {
		out.Labels = append(out.Labels, model.Label{Key: l.GetKey(), Value: l.GetValue()})
	}
	return out
}

func storePB(v model.StoreView) *metapb.Store {
	out := &metapb.Store{
		Id: v.Meta.ID, Address: v.Meta.Address, PeerAddress: v.Meta.PeerAddress, StatusAddress: v.Meta.StatusAddress,
		Version: v.Meta.Version, GitHash: v.Meta.GitHash, DeployPath: v.Meta.DeployPath, StartTimestamp: v.Meta.StartTimestamp,
		State: metapb.StoreState(v.State), NodeState: metapb.NodeState(v.Node), PhysicallyDestroyed: v.PhysicallyDestroyed,
	}
	if !v.LastHeartbeat.IsZero() {
		out.LastHeartbeat = v.LastHeartbeat.UnixNano()
	}
	for _, l := range v.Meta.Labels {
		out.Labels = append(out.Labels, &metapb.StoreLabel{Key: l.Key, Value: l.Value})
	}
	return out
}

// PutStore registers a store, or renews what is known of it.
func (v *service) PutStore(_ context.Context, req *pdpb.PutStoreRequest) (*pdpb.PutStoreResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.PutStoreResponse{Header: none}, err
	}
	if have, err := c.Store(req.GetStore().GetId()); err == nil && have.State == model.StoreTombstone {
		return &pdpb.PutStoreResponse{Header: v.failed(pdpb.ErrorType_STORE_TOMBSTONE, errors.New("store is tombstone"))}, nil
	}
	if err := c.PutStore(storeMeta(req.GetStore())); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	v.s.log.Info("store registered", "store", req.GetStore().GetId(), "address", req.GetStore().GetAddress())
	return &pdpb.PutStoreResponse{Header: v.header()}, nil
}

// GetStore returns one store.
func (v *service) GetStore(_ context.Context, req *pdpb.GetStoreRequest) (*pdpb.GetStoreResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.GetStoreResponse{Header: none}, err
	}
	s, err := c.Store(req.GetStoreId())
	if err != nil {
		return nil, status.Errorf(codes.Unknown, "invalid store ID %d, not found", req.GetStoreId())
	}
	return &pdpb.GetStoreResponse{
		Header: v.header(), Store: storePB(s),
		Stats: &pdpb.StoreStats{
			StoreId: s.Meta.ID, Capacity: s.Stats.Capacity, Available: s.Stats.Available, UsedSize: s.Stats.Used,
			RegionCount: uint32(s.Regions),
		},
	}, nil
}

// GetAllStores returns all stores.
func (v *service) GetAllStores(_ context.Context, req *pdpb.GetAllStoresRequest) (*pdpb.GetAllStoresResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.GetAllStoresResponse{Header: none}, err
	}
	views, err := c.Stores()
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	res := &pdpb.GetAllStoresResponse{Header: v.header()}
	for _, s := range views {
		if req.GetExcludeTombstoneStores() && s.State == model.StoreTombstone {
			continue
		}
		res.Stores = append(res.Stores, storePB(s))
	}
	return res, nil
}

// StoreHeartbeat is a store's sign of life.
func (v *service) StoreHeartbeat(_ context.Context, req *pdpb.StoreHeartbeatRequest) (*pdpb.StoreHeartbeatResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.StoreHeartbeatResponse{Header: none}, err
	}
	stats := req.GetStats()
	id := stats.GetStoreId()
	before, err := c.Store(id)
	if err != nil {
		return nil, status.Errorf(codes.Unknown, "store %d not found", id)
	}
	if before.State == model.StoreTombstone {
		return &pdpb.StoreHeartbeatResponse{Header: v.failed(pdpb.ErrorType_STORE_TOMBSTONE, errors.New("store is tombstone"))}, nil
	}
	err = c.Heartbeat(id, model.StoreStats{Capacity: stats.GetCapacity(), Available: stats.GetAvailable(), Used: stats.GetUsedSize()})
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	after, err := c.Store(id)
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pdpb.StoreHeartbeatResponse{Header: v.header(), ClusterVersion: c.ClusterVersion(), State: metapb.NodeState(after.Node)}, nil
}

// RegionHeartbeat hears what regions say of themselves and orders nothing: in
// this PD the model moves the regions.
func (v *service) RegionHeartbeat(stream pdpb.PD_RegionHeartbeatServer) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := v.leader(req.GetHeader()); err != nil {
			return err
		}
	}
}

// ReportBuckets hears and forgets.
func (v *service) ReportBuckets(stream pdpb.PD_ReportBucketsServer) error {
	for {
		if _, err := stream.Recv(); errors.Is(err, io.EOF) {
			return stream.SendAndClose(&pdpb.ReportBucketsResponse{Header: v.header()})
		} else if err != nil {
			return err
		}
	}
}

// ReportMinResolvedTS hears and forgets.
func (v *service) ReportMinResolvedTS(_ context.Context, req *pdpb.ReportMinResolvedTsRequest) (*pdpb.ReportMinResolvedTsResponse, error) {
	if _, err := v.leader(req.GetHeader()); err != nil {
		return nil, err
	}
	return &pdpb.ReportMinResolvedTsResponse{Header: v.header()}, nil
}

// GetRegion returns the region that holds a key.
func (v *service) GetRegion(_ context.Context, req *pdpb.GetRegionRequest) (*pdpb.GetRegionResponse, error) {
	key := hexKey(req.GetRegionKey())
	return v.region(req.GetHeader(), func(r model.RegionView) bool {
		return r.Start <= key && (r.End == "" || key < r.End)
	})
}

// GetPrevRegion returns the region before the one that holds a key.
func (v *service) GetPrevRegion(_ context.Context, req *pdpb.GetRegionRequest) (*pdpb.GetRegionResponse, error) {
	key := hexKey(req.GetRegionKey())
	start := ""
	if _, err := v.region(req.GetHeader(), func(r model.RegionView) bool {
		if r.Start <= key && (r.End == "" || key < r.End) {
			start = r.Start
		}
		return false
	}); err != nil {
		return nil, err
	}
	return v.region(req.GetHeader(), func(r model.RegionView) bool { return start != "" && r.End == start })
}

// GetRegionByID returns one region.
func (v *service) GetRegionByID(_ context.Context, req *pdpb.GetRegionByIDRequest) (*pdpb.GetRegionResponse, error) {
	return v.region(req.GetHeader(), func(r model.RegionView) bool { return r.ID == req.GetRegionId() })
}

func (v *service) region(h *pdpb.RequestHeader, is func(model.RegionView) bool) (*pdpb.GetRegionResponse, error) {
	c, none, err := v.bootstrapped(h)
	if err != nil || none != nil {
		return &pdpb.GetRegionResponse{Header: none}, err
	}
	all, err := c.Regions()
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	for _, r := range all {
		if is(r) {
			p := regionPB(r)
			return &pdpb.GetRegionResponse{Header: v.header(), Region: p.Region, Leader: p.Leader, DownPeers: p.DownPeers}, nil
		}
	}
	return &pdpb.GetRegionResponse{Header: v.header()}, nil
}

// ScanRegions returns regions in key order.
func (v *service) ScanRegions(_ context.Context, req *pdpb.ScanRegionsRequest) (*pdpb.ScanRegionsResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.ScanRegionsResponse{Header: none}, err
	}
	list, err := scanRegions(c, [][2][]byte{{req.GetStartKey(), req.GetEndKey()}}, int(req.GetLimit()))
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	res := &pdpb.ScanRegionsResponse{Header: v.header(), Regions: list}
	for _, r := range list {
		leader := r.Leader
		if leader == nil {
			leader = &metapb.Peer{}
		}
		res.RegionMetas = append(res.RegionMetas, r.Region)
		res.Leaders = append(res.Leaders, leader)
	}
	return res, nil
}

// BatchScanRegions returns the regions of several ranges in key order.
func (v *service) BatchScanRegions(_ context.Context, req *pdpb.BatchScanRegionsRequest) (*pdpb.BatchScanRegionsResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.BatchScanRegionsResponse{Header: none}, err
	}
	var ranges [][2][]byte
	for _, r := range req.GetRanges() {
		ranges = append(ranges, [2][]byte{r.GetStartKey(), r.GetEndKey()})
	}
	list, err := scanRegions(c, ranges, int(req.GetLimit()))
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pdpb.BatchScanRegionsResponse{Header: v.header(), Regions: list}, nil
}

func scanRegions(c *model.Cluster, ranges [][2][]byte, limit int) ([]*pdpb.Region, error) {
	all, err := c.Regions()
	if err != nil {
		return nil, err
	}
	var out []*pdpb.Region
	for _, r := range all {
		for _, want := range ranges {
			start, end := hexKey(want[0]), hexKey(want[1])
			if (r.End == "" || r.End > start) && (end == "" || r.Start < end) {
				out = append(out, regionPB(r))
				break
			}
		}
		if limit > 0 && len(out) == limit {
			break
		}
	}
	return out, nil
}

// AskBatchSplit gives out ids. What is split then is the store's own matter.
func (v *service) AskBatchSplit(_ context.Context, req *pdpb.AskBatchSplitRequest) (*pdpb.AskBatchSplitResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.AskBatchSplitResponse{Header: none}, err
	}
	res := &pdpb.AskBatchSplitResponse{Header: v.header()}
	for range req.GetSplitCount() {
		id := &pdpb.SplitID{}
		if id.NewRegionId, err = c.AllocID(); err != nil {
			return nil, status.Error(codes.Unknown, err.Error())
		}
		for range req.GetRegion().GetPeers() {
			peer, err := c.AllocID()
			if err != nil {
				return nil, status.Error(codes.Unknown, err.Error())
			}
			id.NewPeerIds = append(id.NewPeerIds, peer)
		}
		res.Ids = append(res.Ids, id)
	}
	return res, nil
}

// ReportBatchSplit hears and forgets.
func (v *service) ReportBatchSplit(_ context.Context, req *pdpb.ReportBatchSplitRequest) (*pdpb.ReportBatchSplitResponse, error) {
	if _, err := v.leader(req.GetHeader()); err != nil {
		return nil, err
	}
	return &pdpb.ReportBatchSplitResponse{Header: v.header()}, nil
}

// ScatterRegion is done as soon as it is asked for: the model balances by itself.
func (v *service) ScatterRegion(_ context.Context, req *pdpb.ScatterRegionRequest) (*pdpb.ScatterRegionResponse, error) {
	if _, err := v.leader(req.GetHeader()); err != nil {
		return nil, err
	}
	return &pdpb.ScatterRegionResponse{Header: v.header(), FinishedPercentage: 100}, nil
}

// GetOperator knows of none, since regions move at once.
func (v *service) GetOperator(_ context.Context, req *pdpb.GetOperatorRequest) (*pdpb.GetOperatorResponse, error) {
	if _, err := v.leader(req.GetHeader()); err != nil {
		return nil, err
	}
	return &pdpb.GetOperatorResponse{Header: v.failed(pdpb.ErrorType_REGION_NOT_FOUND, errors.New("not found"))}, nil
}

func regionPB(r model.RegionView) *pdpb.Region {
	meta := &metapb.Region{
		Id: r.ID, StartKey: rawKey(r.Start), EndKey: rawKey(r.End),
		RegionEpoch: &metapb.RegionEpoch{ConfVer: r.ConfVer, Version: r.Version},
	}
	for _, p := range r.Peers {
		meta.Peers = append(meta.Peers, peerPB(p))
	}
	out := &pdpb.Region{Region: meta}
	if leader, ok := r.LeaderPeer(); ok {
		out.Leader = peerPB(leader)
	}
	for _, d := range r.Down {
		out.DownPeers = append(out.DownPeers, &pdpb.PeerStats{Peer: peerPB(d.Peer), DownSeconds: uint64(d.Seconds)})
	}
	return out
}

func peerPB(p model.Peer) *metapb.Peer {
	role := metapb.PeerRole_Voter
	if p.Learner {
		role = metapb.PeerRole_Learner
	}
	return &metapb.Peer{Id: p.ID, StoreId: p.StoreID, Role: role}
}

func hexKey(key []byte) string { return strings.ToUpper(hex.EncodeToString(key)) }

// rawKey turns a key of the model back; those are hexadecimal by construction.
func rawKey(text string) []byte {
	key, err := hex.DecodeString(text)
	if err != nil {
		return nil
	}
	return key
}
