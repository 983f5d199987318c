package service

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
)

// request is one call of TiDB's storage engine about a region.
type request struct {
	ticket     *raftstore.Ticket
	start, end []byte // the region's range, in user's keys
	latches    *latches
	size       int64

	mu     sync.Mutex
	refuse *errorpb.Error // why a write was refused
}

// lastKey is above every key of TiDB. The engine wants an end for each range.
var lastKey = []byte{0xff}

func newRequest(ticket *raftstore.Ticket, l *latches) (*request, error) {
	r := &request{ticket: ticket, latches: l, end: lastKey}
	var err error
	if start := ticket.Region.StartKey; len(start) > 0 {
		if r.start, err = engine.DecodeKey(start); err != nil {
			return nil, err
		}
	}
	if end := ticket.Region.EndKey; len(end) > 0 {
		r.end, err = engine.DecodeKey(end)
	}
	return r, err
}

func (r *request) refused(err *errorpb.Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse == nil {
		r.refuse = err
	}
}

// verdict says, after the call, whether its answer counts.
func (r *request) verdict() *errorpb.Error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	return r.ticket.Check()
}

// Meta implements tikv.RegionCtx.
func (r *request) Meta() *metapb.Region { return r.ticket.Region }

// Diff implements tikv.RegionCtx.
func (r *request) Diff() *int64 { return &r.size }

// RawStart implements tikv.RegionCtx.
func (r *request) RawStart() []byte { return r.start }

// RawEnd implements tikv.RegionCtx.
func (r *request) RawEnd() []byte { return r.end }

// AcquireLatches implements tikv.RegionCtx.
func (r *request) AcquireLatches(hashes []uint64) { r.latches.acquire(hashes) }

// ReleaseLatches implements tikv.RegionCtx.
func (r *request) ReleaseLatches(hashes []uint64) { r.latches.release(hashes) }

// regions is what TiDB's engine asks for regions: tikv.RegionManager. Who calls the
// engine has admitted the request before.
type regions struct {
	meta    *metapb.Store
	running sync.Map // *kvrpcpb.Context → *request
}

func (m *regions) find(c *kvrpcpb.Context) *request {
	r, _ := m.running.Load(c)
	found, _ := r.(*request)
	return found
}

// GetRegionFromCtx implements tikv.RegionManager.
func (m *regions) GetRegionFromCtx(c *kvrpcpb.Context) (tikv.RegionCtx, *errorpb.Error) {
	if r := m.find(c); r != nil {
		return r, nil
	}
	return nil, &errorpb.Error{Message: "not admitted", StaleCommand: &errorpb.StaleCommand{}}
}

// GetStoreInfoFromCtx implements tikv.RegionManager.
func (m *regions) GetStoreInfoFromCtx(*kvrpcpb.Context) (addr string, id uint64, err *errorpb.Error) {
	return m.meta.Address, m.meta.Id, nil
}

// GetStoreIDByAddr implements tikv.RegionManager.
func (m *regions) GetStoreIDByAddr(string) (uint64, error) { return m.meta.Id, nil }

// GetStoreAddrByStoreID implements tikv.RegionManager.
func (m *regions) GetStoreAddrByStoreID(id uint64) (string, error) {
	if id != m.meta.Id {
		return "", fmt.Errorf("this is store %d, not %d", m.meta.Id, id)
	}
	return m.meta.Address, nil
}

// SplitRegion implements tikv.RegionManager.
func (m *regions) SplitRegion(*kvrpcpb.SplitRegionRequest) *kvrpcpb.SplitRegionResponse {
	return &kvrpcpb.SplitRegionResponse{RegionError: &errorpb.Error{Message: errUnsupported.Error()}}
}

// Close implements tikv.RegionManager.
func (m *regions) Close() error { return nil }

var errUnsupported = errors.New("this store does not do that")

// admit waits until a request may be answered here.
func (s *Server) admit(ctx context.Context, c *kvrpcpb.Context) (*request, *errorpb.Error) {
	if c == nil {
		return nil, &errorpb.Error{Message: "a request without a context", RegionNotFound: &errorpb.RegionNotFound{}}
	}
	ticket, refused := s.store.Admit(ctx, c)
	if refused != nil {
		return nil, refused
	}
	r, err := newRequest(ticket, s.latches)
	if err != nil {
		return nil, &errorpb.Error{Message: err.Error(), RegionNotFound: &errorpb.RegionNotFound{}}
	}
	return r, nil
}
