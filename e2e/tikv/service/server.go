// Package service answers TiKV's gRPC service: transactions, SQL's coprocessor
// requests, splits and messages of Raft. Transactions and coprocessor are TiDB's own
// test engine's; this package asks raftstore first whether a request may be
// answered here, lets the engine's writes be replicated, and drops an answer when
// the region has changed under it.
package service

import (
	"context"
	"math"
	"runtime/debug"
	"time"

	"github.com/pingcap/kvproto/pkg/coprocessor"
	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/raft_cmdpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/pingcap/log"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/config"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv/mvcc"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/transport"
)

// Server implements the service.
type Server struct {
	*tikv.Server // what this package does not do itself
	store        *raftstore.Store
	engine       *engine.Engine
	mvcc         *tikv.MVCCStore
	regions      *regions
	latches      *latches
	receiver     transport.Receiver
}

// New makes the service of a store. meta is how the store is known to PD.
func New(meta *metapb.Store, store *raftstore.Store, e *engine.Engine) *Server {
	s := &Server{
		store: store, engine: e, regions: &regions{meta: meta}, latches: &latches{held: map[uint64]chan struct{}{}},
		receiver: transport.Receiver{Store: store},
	}
	bundle := &mvcc.DBBundle{DB: e.Read, LockStore: e.Locks}
	conf := config.DefaultConf
	// Without a client of PD the engine takes no timestamps, which only asynchronous
	// and one-phase commits would need, and finds deadlocks of this store only.
	s.mvcc = tikv.NewMVCCStore(&conf, bundle, "", &tikv.SafePoint{}, &writer{store, s.regions}, nil)
	s.mvcc.DeadlockDetectSvr.ChangeRole(tikv.Leader)
	s.mvcc.StartDeadlockDetection(false)
	s.Server = tikv.NewServer(s.regions, s.mvcc, nil)
	return s
}

// ServerOptions are the options of the gRPC server that the service needs.
func ServerOptions() []grpc.ServerOption {
	const large = 1 << 30
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(large), grpc.MaxSendMsgSize(large),
		// TiDB and the other stores try idle connections every 10 s; by default that ends them.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (res any, err error) {
			defer recoverPanic(info.FullMethod, &err)
			return handle(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) (err error) {
			defer recoverPanic(info.FullMethod, &err)
			return handle(srv, stream)
		}),
	}
}

// recoverPanic makes an error of a panic: the test engine panics for what it does not do.
func recoverPanic(what string, err *error) {
	if p := recover(); p != nil {
		log.Warn("a request failed", zap.String("method", what), zap.Any("panic", p), zap.ByteString("stack", debug.Stack()))
		*err = status.Errorf(codes.Unimplemented, "%s: %v", what, p)
	}
}

// serveRequest admits a request, calls the engine, and drops its answer when that does
// not count. refuse makes the response that says so.
func serveRequest[Req interface{ GetContext() *kvrpcpb.Context }, Res any](
	ctx context.Context, s *Server, req Req, call func(context.Context, Req) (Res, error), refuse func(*errorpb.Error) Res,
) (Res, error) {
	c := req.GetContext()
	r, refused := s.admit(ctx, c)
	if refused != nil {
		return refuse(refused), nil
	}
	s.regions.running.Store(c, r)
	defer s.regions.running.Delete(c)
	res, err := call(ctx, req)
	if refused := r.verdict(); refused != nil {
		return refuse(refused), nil
	}
	return res, err
}

// KvGet implements tikvpb.TikvServer.
func (s *Server) KvGet(ctx context.Context, req *kvrpcpb.GetRequest) (*kvrpcpb.GetResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvGet, func(e *errorpb.Error) *kvrpcpb.GetResponse { return &kvrpcpb.GetResponse{RegionError: e} })
}

// KvScan implements tikvpb.TikvServer.
func (s *Server) KvScan(ctx context.Context, req *kvrpcpb.ScanRequest) (*kvrpcpb.ScanResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvScan, func(e *errorpb.Error) *kvrpcpb.ScanResponse { return &kvrpcpb.ScanResponse{RegionError: e} })
}

// KvBatchGet implements tikvpb.TikvServer.
func (s *Server) KvBatchGet(ctx context.Context, req *kvrpcpb.BatchGetRequest) (*kvrpcpb.BatchGetResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvBatchGet, func(e *errorpb.Error) *kvrpcpb.BatchGetResponse {
		return &kvrpcpb.BatchGetResponse{RegionError: e}
	})
}

// KvPrewrite prewrites in the plain way: the answer to a client that wants an
// asynchronous or one-phase commit says, as TiKV's may, that it must do without.
func (s *Server) KvPrewrite(ctx context.Context, req *kvrpcpb.PrewriteRequest) (*kvrpcpb.PrewriteResponse, error) {
	req.UseAsyncCommit, req.TryOnePc, req.Secondaries = false, false, nil
	return serveRequest(ctx, s, req, s.Server.KvPrewrite, func(e *errorpb.Error) *kvrpcpb.PrewriteResponse {
		return &kvrpcpb.PrewriteResponse{RegionError: e}
	})
}

// KvCommit commits, and says so again to who asks again. The test engine forgets to
// look for the mark that a primary without a change leaves.
func (s *Server) KvCommit(ctx context.Context, req *kvrpcpb.CommitRequest) (*kvrpcpb.CommitResponse, error) {
	commit := func(ctx context.Context, req *kvrpcpb.CommitRequest) (*kvrpcpb.CommitResponse, error) {
		res, err := s.Server.KvCommit(ctx, req)
		if res.GetError() != nil && s.marked(req.Keys, req.StartVersion) == req.CommitVersion {
			return &kvrpcpb.CommitResponse{CommitVersion: req.CommitVersion}, nil
		}
		return res, err
	}
	return serveRequest(ctx, s, req, commit, func(e *errorpb.Error) *kvrpcpb.CommitResponse {
		return &kvrpcpb.CommitResponse{RegionError: e}
	})
}

// KvPessimisticLock implements tikvpb.TikvServer.
func (s *Server) KvPessimisticLock(ctx context.Context, req *kvrpcpb.PessimisticLockRequest) (*kvrpcpb.PessimisticLockResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvPessimisticLock, func(e *errorpb.Error) *kvrpcpb.PessimisticLockResponse {
		return &kvrpcpb.PessimisticLockResponse{RegionError: e}
	})
}

// KVPessimisticRollback implements tikvpb.TikvServer.
func (s *Server) KVPessimisticRollback(ctx context.Context, req *kvrpcpb.PessimisticRollbackRequest) (*kvrpcpb.PessimisticRollbackResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KVPessimisticRollback, func(e *errorpb.Error) *kvrpcpb.PessimisticRollbackResponse {
		return &kvrpcpb.PessimisticRollbackResponse{RegionError: e}
	})
}

// KvTxnHeartBeat implements tikvpb.TikvServer.
func (s *Server) KvTxnHeartBeat(ctx context.Context, req *kvrpcpb.TxnHeartBeatRequest) (*kvrpcpb.TxnHeartBeatResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvTxnHeartBeat, func(e *errorpb.Error) *kvrpcpb.TxnHeartBeatResponse {
		return &kvrpcpb.TxnHeartBeatResponse{RegionError: e}
	})
}

// KvCheckTxnStatus implements tikvpb.TikvServer.
func (s *Server) KvCheckTxnStatus(ctx context.Context, req *kvrpcpb.CheckTxnStatusRequest) (*kvrpcpb.CheckTxnStatusResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvCheckTxnStatus, func(e *errorpb.Error) *kvrpcpb.CheckTxnStatusResponse {
		return &kvrpcpb.CheckTxnStatusResponse{RegionError: e}
	})
}

// KvCheckSecondaryLocks implements tikvpb.TikvServer.
func (s *Server) KvCheckSecondaryLocks(ctx context.Context, req *kvrpcpb.CheckSecondaryLocksRequest) (*kvrpcpb.CheckSecondaryLocksResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvCheckSecondaryLocks, func(e *errorpb.Error) *kvrpcpb.CheckSecondaryLocksResponse {
		return &kvrpcpb.CheckSecondaryLocksResponse{RegionError: e}
	})
}

// KvCleanup implements tikvpb.TikvServer.
func (s *Server) KvCleanup(ctx context.Context, req *kvrpcpb.CleanupRequest) (*kvrpcpb.CleanupResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvCleanup, func(e *errorpb.Error) *kvrpcpb.CleanupResponse {
		return &kvrpcpb.CleanupResponse{RegionError: e}
	})
}

// marked is when a transaction was committed that left a mark on one of the keys, 0
// when none did.
func (s *Server) marked(keys [][]byte, startTS uint64) uint64 {
	txn := s.engine.Read.NewTransaction(false)
	defer txn.Discard()
	txn.SetReadTS(math.MaxUint64)
	for _, key := range keys {
		item, err := txn.Get(mvcc.EncodeExtraTxnStatusKey(key, startTS))
		if err != nil {
			continue // none is there
		}
		if ts := mvcc.DBUserMeta(item.UserMeta()).CommitTS(); ts > 0 {
			return ts
		}
	}
	return 0
}

// KvBatchRollback rolls back what was not committed, not by a mark either, which
// the test engine does not look for.
func (s *Server) KvBatchRollback(ctx context.Context, req *kvrpcpb.BatchRollbackRequest) (*kvrpcpb.BatchRollbackResponse, error) {
	rollback := func(ctx context.Context, req *kvrpcpb.BatchRollbackRequest) (*kvrpcpb.BatchRollbackResponse, error) {
		if s.marked(req.Keys, req.StartVersion) > 0 {
			return &kvrpcpb.BatchRollbackResponse{Error: &kvrpcpb.KeyError{Abort: "already committed"}}, nil
		}
		return s.Server.KvBatchRollback(ctx, req)
	}
	return serveRequest(ctx, s, req, rollback, func(e *errorpb.Error) *kvrpcpb.BatchRollbackResponse {
		return &kvrpcpb.BatchRollbackResponse{RegionError: e}
	})
}

// KvScanLock implements tikvpb.TikvServer.
func (s *Server) KvScanLock(ctx context.Context, req *kvrpcpb.ScanLockRequest) (*kvrpcpb.ScanLockResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvScanLock, func(e *errorpb.Error) *kvrpcpb.ScanLockResponse {
		return &kvrpcpb.ScanLockResponse{RegionError: e}
	})
}

// KvResolveLock implements tikvpb.TikvServer.
func (s *Server) KvResolveLock(ctx context.Context, req *kvrpcpb.ResolveLockRequest) (*kvrpcpb.ResolveLockResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvResolveLock, func(e *errorpb.Error) *kvrpcpb.ResolveLockResponse {
		return &kvrpcpb.ResolveLockResponse{RegionError: e}
	})
}

// KvFlush implements tikvpb.TikvServer.
func (s *Server) KvFlush(ctx context.Context, req *kvrpcpb.FlushRequest) (*kvrpcpb.FlushResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvFlush, func(e *errorpb.Error) *kvrpcpb.FlushResponse { return &kvrpcpb.FlushResponse{RegionError: e} })
}

// KvBufferBatchGet implements tikvpb.TikvServer.
func (s *Server) KvBufferBatchGet(ctx context.Context, req *kvrpcpb.BufferBatchGetRequest) (*kvrpcpb.BufferBatchGetResponse, error) {
	return serveRequest(ctx, s, req, s.Server.KvBufferBatchGet, func(e *errorpb.Error) *kvrpcpb.BufferBatchGetResponse {
		return &kvrpcpb.BufferBatchGetResponse{RegionError: e}
	})
}

// MvccGetByKey implements tikvpb.TikvServer.
func (s *Server) MvccGetByKey(ctx context.Context, req *kvrpcpb.MvccGetByKeyRequest) (*kvrpcpb.MvccGetByKeyResponse, error) {
	return serveRequest(ctx, s, req, s.Server.MvccGetByKey, func(e *errorpb.Error) *kvrpcpb.MvccGetByKeyResponse {
		return &kvrpcpb.MvccGetByKeyResponse{RegionError: e}
	})
}

// MvccGetByStartTs implements tikvpb.TikvServer.
//
//nolint:staticcheck // the name is the interface's
func (s *Server) MvccGetByStartTs(ctx context.Context, req *kvrpcpb.MvccGetByStartTsRequest) (*kvrpcpb.MvccGetByStartTsResponse, error) {
	return serveRequest(ctx, s, req, s.Server.MvccGetByStartTs, func(e *errorpb.Error) *kvrpcpb.MvccGetByStartTsResponse {
		return &kvrpcpb.MvccGetByStartTsResponse{RegionError: e}
	})
}

// Coprocessor answers a request, and those for other regions of this store that a
// client sent along with it.
func (s *Server) Coprocessor(ctx context.Context, req *coprocessor.Request) (*coprocessor.Response, error) {
	tasks := req.Tasks
	req.Tasks = nil
	res, err := s.coprocessor(ctx, req)
	if err != nil {
		return nil, err
	}
	for _, task := range tasks {
		one, c := *req, *req.Context
		c.RegionId, c.RegionEpoch, c.Peer = task.RegionId, task.RegionEpoch, task.Peer
		one.Context, one.Ranges = &c, task.Ranges
		out := &coprocessor.StoreBatchTaskResponse{TaskId: task.TaskId}
		part, err := s.coprocessor(ctx, &one)
		if err != nil {
			out.OtherError = err.Error()
		} else {
			out.Data, out.RegionError, out.Locked = part.Data, part.RegionError, part.Locked
			out.OtherError, out.ExecDetailsV2 = part.OtherError, part.ExecDetailsV2
		}
		res.BatchResponses = append(res.BatchResponses, out)
	}
	return res, nil
}

func (s *Server) coprocessor(ctx context.Context, req *coprocessor.Request) (*coprocessor.Response, error) {
	// What a client has cached it could keep only if it were told what it is valid for.
	req.IsCacheEnabled = false
	return serveRequest(ctx, s, req, s.Server.Coprocessor, func(e *errorpb.Error) *coprocessor.Response { return &coprocessor.Response{RegionError: e} })
}

// CoprocessorStream implements tikvpb.TikvServer.
func (s *Server) CoprocessorStream(*coprocessor.Request, tikvpb.Tikv_CoprocessorStreamServer) error {
	return status.Error(codes.Unimplemented, errUnsupported.Error())
}

// BatchCoprocessor implements tikvpb.TikvServer.
func (s *Server) BatchCoprocessor(*coprocessor.BatchRequest, tikvpb.Tikv_BatchCoprocessorServer) error {
	return status.Error(codes.Unimplemented, errUnsupported.Error())
}

// KvDeleteRange deletes all versions in a range of one region.
func (s *Server) KvDeleteRange(ctx context.Context, req *kvrpcpb.DeleteRangeRequest) (*kvrpcpb.DeleteRangeResponse, error) {
	r, refused := s.admit(ctx, req.Context)
	if refused == nil && !req.NotifyOnly {
		refused = s.store.Write(r.ticket, []*raft_cmdpb.Request{{
			CmdType:     raft_cmdpb.CmdType_DeleteRange,
			DeleteRange: &raft_cmdpb.DeleteRangeRequest{StartKey: engine.EncodeKey(req.StartKey), EndKey: engine.EncodeKey(req.EndKey)},
		}})
	}
	return &kvrpcpb.DeleteRangeResponse{RegionError: refused}, nil
}

// UnsafeDestroyRange deletes a range in all regions that this store leads. TiDB
// sends it to all stores, so all regions are reached.
func (s *Server) UnsafeDestroyRange(ctx context.Context, req *kvrpcpb.UnsafeDestroyRangeRequest) (*kvrpcpb.UnsafeDestroyRangeResponse, error) {
	if err := s.store.DestroyRange(ctx, engine.EncodeKey(req.StartKey), engine.EncodeKey(req.EndKey)); err != nil {
		return &kvrpcpb.UnsafeDestroyRangeResponse{Error: err.Error()}, nil
	}
	return &kvrpcpb.UnsafeDestroyRangeResponse{}, nil
}

// KvGC has nothing to do: the store asks PD for the safe point itself.
func (s *Server) KvGC(context.Context, *kvrpcpb.GCRequest) (*kvrpcpb.GCResponse, error) {
	return &kvrpcpb.GCResponse{}, nil
}

// GetLockWaitInfo implements tikvpb.TikvServer.
func (s *Server) GetLockWaitInfo(context.Context, *kvrpcpb.GetLockWaitInfoRequest) (*kvrpcpb.GetLockWaitInfoResponse, error) {
	return &kvrpcpb.GetLockWaitInfoResponse{}, nil
}

// SplitRegion splits a region at the keys that a client names.
func (s *Server) SplitRegion(ctx context.Context, req *kvrpcpb.SplitRegionRequest) (*kvrpcpb.SplitRegionResponse, error) {
	r, refused := s.admit(ctx, req.Context)
	if refused != nil {
		return &kvrpcpb.SplitRegionResponse{RegionError: refused}, nil
	}
	keys := req.SplitKeys
	if len(keys) == 0 {
		keys = [][]byte{req.SplitKey}
	}
	encoded := make([][]byte, len(keys))
	for i, key := range keys {
		if encoded[i] = key; !req.IsRawKv {
			encoded[i] = engine.EncodeKey(key)
		}
	}
	parts, refused := s.store.Split(ctx, r.ticket, encoded)
	if refused != nil {
		return &kvrpcpb.SplitRegionResponse{RegionError: refused}, nil
	}
	return &kvrpcpb.SplitRegionResponse{Left: parts[0], Right: parts[len(parts)-1], Regions: parts}, nil
}

// Raft is the old way to send messages, which these stores don't use.
func (s *Server) Raft(tikvpb.Tikv_RaftServer) error {
	return status.Error(codes.Unimplemented, errUnsupported.Error())
}

// BatchRaft implements tikvpb.TikvServer.
func (s *Server) BatchRaft(stream tikvpb.Tikv_BatchRaftServer) error {
	return s.receiver.BatchRaft(stream)
}

// Snapshot implements tikvpb.TikvServer.
func (s *Server) Snapshot(stream tikvpb.Tikv_SnapshotServer) error {
	return s.receiver.Snapshot(stream)
}

// SetSafePoint collects what no client reads any more.
func (s *Server) SetSafePoint(ts uint64) error {
	s.mvcc.UpdateSafePoint(ts)
	return s.engine.Collect(ts)
}
