package service

import (
	"context"
	"sync"

	"github.com/pingcap/kvproto/pkg/tikvpb"
	"github.com/pingcap/log"
	"go.uber.org/zap"
)

type (
	batched    = tikvpb.BatchCommandsRequest_Request
	batchedRes = tikvpb.BatchCommandsResponse_Response
)

// BatchCommands answers requests that come together, each when it is done.
func (s *Server) BatchCommands(stream tikvpb.Tikv_BatchCommandsServer) error {
	var mu sync.Mutex // a stream takes one message at a time
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		for i, req := range batch.Requests {
			id := batch.RequestIds[i]
			go func() {
				res := s.one(stream.Context(), req)
				mu.Lock()
				defer mu.Unlock()
				out := &tikvpb.BatchCommandsResponse{RequestIds: []uint64{id}, Responses: []*batchedRes{res}}
				if err := stream.Send(out); err != nil {
					log.Debug("an answer is not sent", zap.Error(err))
				}
			}()
		}
	}
}

// one answers one request of a batch; empty when it fails, since a batch has no
// place for an error.
func (s *Server) one(ctx context.Context, req *batched) *batchedRes {
	res, err := s.command(ctx, req)
	if err != nil || res == nil {
		log.Warn("a request of a batch is not answered", zap.Stringer("request", req), zap.Error(err))
		return &batchedRes{Cmd: &tikvpb.BatchCommandsResponse_Response_Empty{Empty: &tikvpb.BatchCommandsEmptyResponse{}}}
	}
	return res
}

func (s *Server) command(ctx context.Context, req *batched) (res *batchedRes, err error) {
	defer recoverPanic("BatchCommands", &err)
	res = &batchedRes{}
	switch r := req.Cmd.(type) {
	case *tikvpb.BatchCommandsRequest_Request_Get:
		out, err := s.KvGet(ctx, r.Get)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Get{Get: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_Scan:
		out, err := s.KvScan(ctx, r.Scan)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Scan{Scan: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_BatchGet:
		out, err := s.KvBatchGet(ctx, r.BatchGet)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_BatchGet{BatchGet: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_Prewrite:
		out, err := s.KvPrewrite(ctx, r.Prewrite)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Prewrite{Prewrite: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_Commit:
		out, err := s.KvCommit(ctx, r.Commit)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Commit{Commit: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_Cleanup:
		out, err := s.KvCleanup(ctx, r.Cleanup)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Cleanup{Cleanup: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_BatchRollback:
		out, err := s.KvBatchRollback(ctx, r.BatchRollback)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_BatchRollback{BatchRollback: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_ScanLock:
		out, err := s.KvScanLock(ctx, r.ScanLock)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_ScanLock{ScanLock: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_ResolveLock:
		out, err := s.KvResolveLock(ctx, r.ResolveLock)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_ResolveLock{ResolveLock: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_GC:
		out, err := s.KvGC(ctx, r.GC)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_GC{GC: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_DeleteRange:
		out, err := s.KvDeleteRange(ctx, r.DeleteRange)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_DeleteRange{DeleteRange: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_PessimisticLock:
		out, err := s.KvPessimisticLock(ctx, r.PessimisticLock)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_PessimisticLock{PessimisticLock: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_PessimisticRollback:
		out, err := s.KVPessimisticRollback(ctx, r.PessimisticRollback)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_PessimisticRollback{PessimisticRollback: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_CheckTxnStatus:
		out, err := s.KvCheckTxnStatus(ctx, r.CheckTxnStatus)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_CheckTxnStatus{CheckTxnStatus: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_CheckSecondaryLocks:
		out, err := s.KvCheckSecondaryLocks(ctx, r.CheckSecondaryLocks)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_CheckSecondaryLocks{CheckSecondaryLocks: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_TxnHeartBeat:
		out, err := s.KvTxnHeartBeat(ctx, r.TxnHeartBeat)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_TxnHeartBeat{TxnHeartBeat: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_Flush:
		out, err := s.KvFlush(ctx, r.Flush)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Flush{Flush: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_BufferBatchGet:
		out, err := s.KvBufferBatchGet(ctx, r.BufferBatchGet)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_BufferBatchGet{BufferBatchGet: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_Coprocessor:
		out, err := s.Coprocessor(ctx, r.Coprocessor)
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Coprocessor{Coprocessor: out}
		return res, err
	case *tikvpb.BatchCommandsRequest_Request_Empty:
		res.Cmd = &tikvpb.BatchCommandsResponse_Response_Empty{Empty: &tikvpb.BatchCommandsEmptyResponse{TestId: r.Empty.TestId}}
		return res, nil
	}
	return nil, errUnsupported
}
