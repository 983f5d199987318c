package service

import (
	"bytes"
	"errors"

	"github.com/pingcap/kvproto/pkg/errorpb"
	"github.com/pingcap/kvproto/pkg/kvrpcpb"
	"github.com/pingcap/kvproto/pkg/raft_cmdpb"
	"github.com/pingcap/tidb/pkg/store/mockstore/unistore/tikv/mvcc"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/engine"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
)

// writer replicates what TiDB's engine writes: mvcc.DBWriter.
type writer struct {
	store   *raftstore.Store
	regions *regions
}

// Open implements mvcc.DBWriter.
func (w *writer) Open() {}

// Close implements mvcc.DBWriter.
func (w *writer) Close() {}

// DeleteRange is not called: the service does it.
func (w *writer) DeleteRange(_, _ []byte, _ mvcc.LatchHandle) error { return errUnsupported }

// NewWriteBatch implements mvcc.DBWriter.
func (w *writer) NewWriteBatch(startTS, commitTS uint64, c *kvrpcpb.Context) mvcc.WriteBatch {
	return &writeBatch{startTS: startTS, commitTS: commitTS, request: w.regions.find(c)}
}

// errRefused ends a call of the engine; the service answers with the region error
// that the request has noted.
var errRefused = errors.New("the write was refused")

// Write replicates a batch and waits until it is applied here.
func (w *writer) Write(batch mvcc.WriteBatch) error {
	b, ok := batch.(*writeBatch)
	if !ok || b.request == nil {
		return errUnsupported
	}
	if len(b.changes) == 0 {
		return nil
	}
	if b.outside != nil {
		r := b.request
		r.refused(&errorpb.Error{Message: "key not in region", KeyNotInRegion: &errorpb.KeyNotInRegion{
			Key: b.outside, RegionId: r.Meta().Id, StartKey: r.start, EndKey: r.end,
		}})
		return errRefused
	}
	if err := w.store.Write(b.request.ticket, b.changes); err != nil {
		b.request.refused(err)
		return errRefused
	}
	return nil
}

// writeBatch turns what the engine writes into requests of a command.
type writeBatch struct {
	startTS, commitTS uint64
	request           *request
	changes           []*raft_cmdpb.Request
	outside           []byte // a key that is not in the region
}

func (b *writeBatch) put(cf string, user, key, value []byte) {
	b.inside(user)
	b.changes = append(b.changes, &raft_cmdpb.Request{
		CmdType: raft_cmdpb.CmdType_Put, Put: &raft_cmdpb.PutRequest{Cf: cf, Key: key, Value: value},
	})
}

func (b *writeBatch) unlock(user []byte) {
	b.inside(user)
	b.changes = append(b.changes, &raft_cmdpb.Request{
		CmdType: raft_cmdpb.CmdType_Delete, Delete: &raft_cmdpb.DeleteRequest{Cf: engine.LockCF, Key: engine.EncodeKey(user)},
	})
}

func (b *writeBatch) inside(user []byte) {
	if r := b.request; r != nil && (bytes.Compare(user, r.start) < 0 || bytes.Compare(user, r.end) >= 0) {
		b.outside = user
	}
}

// Prewrite implements mvcc.WriteBatch.
func (b *writeBatch) Prewrite(key []byte, lock *mvcc.Lock) { b.PessimisticLock(key, lock) }

// PessimisticLock implements mvcc.WriteBatch.
func (b *writeBatch) PessimisticLock(key []byte, lock *mvcc.Lock) {
	b.put(engine.LockCF, key, engine.EncodeKey(key), lock.MarshalBinary())
}

// Commit writes what a lock holds. Of a lock without a change, only the primary
// leaves a mark; of a pessimistic one, nothing.
func (b *writeBatch) Commit(key []byte, lock *mvcc.Lock) {
	switch kvrpcpb.Op(lock.Op) {
	case kvrpcpb.Op_PessimisticLock:
	case kvrpcpb.Op_Lock:
		if bytes.Equal(key, lock.Primary) {
			b.put(engine.MarkCF, key, engine.VersionedKey(key, b.startTS), engine.MarkValue(b.commitTS))
		}
	default:
		b.put(engine.DataCF, key, engine.VersionedKey(key, b.commitTS), engine.DataValue(b.startTS, lock.Value))
	}
	b.unlock(key)
}

// Rollback implements mvcc.WriteBatch.
func (b *writeBatch) Rollback(key []byte, deleteLock bool) {
	b.put(engine.MarkCF, key, engine.VersionedKey(key, b.startTS), engine.MarkValue(0))
	if deleteLock {
		b.unlock(key)
	}
}

// PessimisticRollback implements mvcc.WriteBatch.
func (b *writeBatch) PessimisticRollback(key []byte) { b.unlock(key) }
