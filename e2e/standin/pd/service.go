package pd

import (
	"context"
	"errors"
	"io"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/pdpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tidb-groups/tidb-groups/e2e/model"
)

// service answers PD's gRPC protocol. What it does not answer, it says so
// (code Unimplemented).
type service struct {
	pdpb.UnimplementedPDServer
	s *Server
}

func (v *service) header() *pdpb.ResponseHeader {
	return &pdpb.ResponseHeader{ClusterId: v.s.ClusterID()}
}

func (v *service) failed(kind pdpb.ErrorType, err error) *pdpb.ResponseHeader {
	h := v.header()
	h.Error = &pdpb.Error{Type: kind, Message: err.Error()}
	return h
}

// leader returns what the leader knows, or the error that sends a client to
// look for the leader.
func (v *service) leader(h *pdpb.RequestHeader) (*term, error) {
	if !v.s.isReady() {
		return nil, status.Error(codes.Unavailable, "server not started")
	}
	v.s.mu.RLock()
	t := v.s.term
	v.s.mu.RUnlock()
	if t == nil {
		return nil, status.Error(codes.Unavailable, "not leader")
	}
	if id := h.GetClusterId(); id != v.s.ClusterID() {
		return nil, status.Errorf(codes.FailedPrecondition, "mismatch cluster id, need %d but got %d", v.s.ClusterID(), id)
	}
	return t, nil
}

// bootstrapped is leader for what needs a first store; the header is non-nil
// when there is none.
func (v *service) bootstrapped(h *pdpb.RequestHeader) (*model.Cluster, *pdpb.ResponseHeader, error) {
	t, err := v.leader(h)
	if err != nil {
		return nil, nil, err
	}
	if !t.cluster.IsBootstrapped() {
		return nil, v.failed(pdpb.ErrorType_NOT_BOOTSTRAPPED, errors.New("cluster is not bootstrapped")), nil
	}
	return t.cluster, nil, nil
}

func memberPB(m model.Member, build string, hash string) *pdpb.Member {
	out := &pdpb.Member{
		Name: m.Name, MemberId: m.ID, PeerUrls: m.PeerURLs, ClientUrls: m.ClientURLs,
		LeaderPriority: int32(m.LeaderPriority),
	}
	if m.Name != "" {
		out.DeployPath, out.BinaryVersion, out.GitHash = "/", build, hash
	}
	return out
}

// GetClusterInfo says that this is one PD and no set of services.
func (v *service) GetClusterInfo(context.Context, *pdpb.GetClusterInfoRequest) (*pdpb.GetClusterInfoResponse, error) {
	if !v.s.isReady() {
		return nil, status.Error(codes.Unavailable, "server not started")
	}
	return &pdpb.GetClusterInfoResponse{Header: v.header(), ServiceModes: []pdpb.ServiceMode{pdpb.ServiceMode_PD_SVC_MODE}}, nil
}

// GetMembers is answered by every member.
func (v *service) GetMembers(context.Context, *pdpb.GetMembersRequest) (*pdpb.GetMembersResponse, error) {
	if !v.s.isReady() {
		return nil, status.Error(codes.Unavailable, "server not started")
	}
	b := v.s.cfg.Build
	res := &pdpb.GetMembersResponse{Header: v.header()}
	for _, m := range v.s.members() {
		res.Members = append(res.Members, memberPB(m, b.Version, b.GitHash))
	}
	if m, ok := v.s.Leader(); ok {
		res.Leader = memberPB(m, b.Version, b.GitHash)
	}
	if m, ok := v.s.RaftLeader(); ok {
		res.EtcdLeader = memberPB(m, b.Version, b.GitHash)
	}
	return res, nil
}

// Tso gives out timestamps for as long as the stream lasts.
func (v *service) Tso(stream pdpb.PD_TsoServer) error {
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		t, err := v.leader(req.GetHeader())
		if err != nil {
			return err
		}
		ts, err := t.tso.next(req.GetCount())
		if err != nil {
			return status.Error(codes.Unavailable, err.Error())
		}
		if err := stream.Send(&pdpb.TsoResponse{Header: v.header(), Count: req.GetCount(), Timestamp: ts}); err != nil {
			return err
		}
	}
}

// GetMinTS is the current timestamp, since there is only one giver.
func (v *service) GetMinTS(_ context.Context, req *pdpb.GetMinTSRequest) (*pdpb.GetMinTSResponse, error) {
	t, err := v.leader(req.GetHeader())
	if err != nil {
		return nil, err
	}
	ts, err := t.tso.next(1)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &pdpb.GetMinTSResponse{Header: v.header(), Timestamp: ts}, nil
}

// Bootstrap registers the first store and region.
func (v *service) Bootstrap(_ context.Context, req *pdpb.BootstrapRequest) (*pdpb.BootstrapResponse, error) {
	t, err := v.leader(req.GetHeader())
	if err != nil {
		return nil, err
	}
	store, region := req.GetStore(), req.GetRegion()
	if store.GetId() == 0 || region.GetId() == 0 || len(region.GetPeers()) != 1 {
		return &pdpb.BootstrapResponse{Header: v.failed(pdpb.ErrorType_UNKNOWN, errors.New("invalid bootstrap request"))}, nil
	}
	err = t.cluster.Bootstrap(storeMeta(store), region.GetId(), region.GetPeers()[0].GetId())
	switch {
	case errors.Is(err, model.ErrAlreadyBootstrapped):
		return &pdpb.BootstrapResponse{Header: v.failed(pdpb.ErrorType_ALREADY_BOOTSTRAPPED, err)}, nil
	case err != nil:
		return nil, status.Error(codes.Unknown, err.Error())
	}
	v.s.log.Info("bootstrapped", "store", store.GetId(), "address", store.GetAddress())
	return &pdpb.BootstrapResponse{Header: v.header()}, nil
}

// IsBootstrapped says whether a first store has ever joined.
func (v *service) IsBootstrapped(_ context.Context, req *pdpb.IsBootstrappedRequest) (*pdpb.IsBootstrappedResponse, error) {
	t, err := v.leader(req.GetHeader())
	if err != nil {
		return nil, err
	}
	return &pdpb.IsBootstrappedResponse{Header: v.header(), Bootstrapped: t.cluster.IsBootstrapped()}, nil
}

// AllocID gives out an id.
func (v *service) AllocID(_ context.Context, req *pdpb.AllocIDRequest) (*pdpb.AllocIDResponse, error) {
	t, err := v.leader(req.GetHeader())
	if err != nil {
		return nil, err
	}
	id, err := t.cluster.AllocID()
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pdpb.AllocIDResponse{Header: v.header(), Id: id}, nil
}

// IsSnapshotRecovering is never so.
func (v *service) IsSnapshotRecovering(context.Context, *pdpb.IsSnapshotRecoveringRequest) (*pdpb.IsSnapshotRecoveringResponse, error) {
	return &pdpb.IsSnapshotRecoveringResponse{Header: v.header()}, nil
}

// GetClusterConfig tells the number of replicas.
func (v *service) GetClusterConfig(_ context.Context, req *pdpb.GetClusterConfigRequest) (*pdpb.GetClusterConfigResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.GetClusterConfigResponse{Header: none}, err
	}
	return &pdpb.GetClusterConfigResponse{
		Header: v.header(), Cluster: &metapb.Cluster{Id: v.s.ClusterID(), MaxPeerCount: uint32(c.MaxReplicas())},
	}, nil
}

// GetGCSafePoint returns the point below which old versions may be dropped.
func (v *service) GetGCSafePoint(_ context.Context, req *pdpb.GetGCSafePointRequest) (*pdpb.GetGCSafePointResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.GetGCSafePointResponse{Header: none}, err
	}
	return &pdpb.GetGCSafePointResponse{Header: v.header(), SafePoint: c.GCSafePoint()}, nil
}

// UpdateGCSafePoint moves the safe point forward.
func (v *service) UpdateGCSafePoint(_ context.Context, req *pdpb.UpdateGCSafePointRequest) (*pdpb.UpdateGCSafePointResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.UpdateGCSafePointResponse{Header: none}, err
	}
	point, err := c.UpdateGCSafePoint(req.GetSafePoint())
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pdpb.UpdateGCSafePointResponse{Header: v.header(), NewSafePoint: point}, nil
}

// UpdateServiceGCSafePoint sets the safe point of one service.
func (v *service) UpdateServiceGCSafePoint(_ context.Context, req *pdpb.UpdateServiceGCSafePointRequest) (*pdpb.UpdateServiceGCSafePointResponse, error) {
	c, none, err := v.bootstrapped(req.GetHeader())
	if err != nil || none != nil {
		return &pdpb.UpdateServiceGCSafePointResponse{Header: none}, err
	}
	lowest, err := c.UpdateServiceSafePoint(string(req.GetServiceId()), toDuration(req.GetTTL()), req.GetSafePoint())
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pdpb.UpdateServiceGCSafePointResponse{
		Header: v.header(), ServiceId: []byte(lowest.ServiceID),
		TTL: lowest.ExpiredAt - c.Now().Unix(), MinSafePoint: lowest.SafePoint,
	}, nil
}

// StoreGlobalConfig keeps configuration that clients share.
func (v *service) StoreGlobalConfig(_ context.Context, req *pdpb.StoreGlobalConfigRequest) (*pdpb.StoreGlobalConfigResponse, error) {
	c := v.s.Cluster()
	if c == nil {
		return nil, status.Error(codes.Unavailable, "not leader")
	}
	items := map[string]*string{}
	for _, item := range req.GetChanges() {
		name := req.GetConfigPath() + "/" + item.GetName()
		items[name] = nil
		if item.GetKind() == pdpb.EventType_PUT {
			value := item.GetValue()
			if value == "" {
				value = string(item.GetPayload())
			}
			items[name] = &value
		}
	}
	if err := c.SetGlobalConfig(items); err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	return &pdpb.StoreGlobalConfigResponse{}, nil
}

// LoadGlobalConfig returns configuration that clients share.
func (v *service) LoadGlobalConfig(_ context.Context, req *pdpb.LoadGlobalConfigRequest) (*pdpb.LoadGlobalConfigResponse, error) {
	c := v.s.Cluster()
	if c == nil {
		return nil, status.Error(codes.Unavailable, "not leader")
	}
	all := c.GlobalConfig()
	res := &pdpb.LoadGlobalConfigResponse{}
	for _, name := range req.GetNames() {
		value, ok := all[req.GetConfigPath()+"/"+name]
		item := &pdpb.GlobalConfigItem{Name: name, Value: value, Payload: []byte(value)}
		if !ok {
			item.Error = &pdpb.Error{Type: pdpb.ErrorType_GLOBAL_CONFIG_NOT_FOUND, Message: "not found " + name}
		}
		res.Items = append(res.Items, item)
	}
	return res, nil
}

// WatchGlobalConfig never has anything to tell.
func (v *service) WatchGlobalConfig(_ *pdpb.WatchGlobalConfigRequest, stream pdpb.PD_WatchGlobalConfigServer) error {
	<-stream.Context().Done()
	return stream.Context().Err()
}

// GetExternalTimestamp returns the timestamp for stale readers.
func (v *service) GetExternalTimestamp(_ context.Context, req *pdpb.GetExternalTimestampRequest) (*pdpb.GetExternalTimestampResponse, error) {
	t, err := v.leader(req.GetHeader())
	if err != nil {
		return nil, err
	}
	return &pdpb.GetExternalTimestampResponse{Header: v.header(), Timestamp: t.cluster.ExternalTimestamp()}, nil
}

// SetExternalTimestamp sets the timestamp for stale readers.
func (v *service) SetExternalTimestamp(_ context.Context, req *pdpb.SetExternalTimestampRequest) (*pdpb.SetExternalTimestampResponse, error) {
	t, err := v.leader(req.GetHeader())
	if err != nil {
		return nil, err
	}
	if err := t.cluster.SetExternalTimestamp(req.GetTimestamp()); err != nil {
		return &pdpb.SetExternalTimestampResponse{Header: v.failed(pdpb.ErrorType_INVALID_VALUE, err)}, nil
	}
	return &pdpb.SetExternalTimestampResponse{Header: v.header()}, nil
}
