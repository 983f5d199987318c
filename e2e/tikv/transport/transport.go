// Package transport brings Raft messages from store to store, over TiKV's gRPC
// service. A message that can't be brought is dropped: Raft sends another one.
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/pingcap/kvproto/pkg/metapb"
	"github.com/pingcap/kvproto/pkg/raft_serverpb"
	"github.com/pingcap/kvproto/pkg/tikvpb"
	"google.golang.org/grpc"

	"github.com/tidb-groups/tidb-groups/e2e/tikv/placement"
	"github.com/tidb-groups/tidb-groups/e2e/tikv/raftstore"
)

const (
	queueLimit      = 4096
	batchLimit      = 128
	retryDelay      = 200 * time.Millisecond
	resolveTimeout  = 3 * time.Second
	snapshotTimeout = time.Minute
	chunkSize       = 1 << 20
)

// Stores looks for stores.
type Stores interface {
	Store(ctx context.Context, id uint64) (*metapb.Store, error)
}

// Transport has a queue and a stream for each other store.
type Transport struct {
	ctx    context.Context
	stores Stores
	over   *tls.Config
	log    *slog.Logger

	mu    sync.Mutex
	links map[uint64]*link
	// tell is where the fate of messages is told. It is set before the first Send.
	tell *raftstore.Store
}

// New makes a transport that lives as long as ctx, and connects over TLS if there is a
// configuration for it.
func New(ctx context.Context, stores Stores, over *tls.Config, log *slog.Logger) *Transport {
	return &Transport{ctx: ctx, stores: stores, over: over, log: log, links: map[uint64]*link{}}
}

// Tell says who is told of what did not arrive.
func (t *Transport) Tell(s *raftstore.Store) { t.tell = s }

type link struct {
	*Transport
	store uint64
	queue chan *raft_serverpb.RaftMessage
	snaps chan *raft_serverpb.RaftMessage
}

// Send implements raftstore.Transport.
func (t *Transport) Send(m *raft_serverpb.RaftMessage) {
	l := t.link(m.ToPeer.StoreId)
	queue := l.queue
	if raftstore.IsSnapshot(m) {
		queue = l.snaps
	}
	select {
	case queue <- m:
	default:
		t.lost(m)
	}
}

func (t *Transport) lost(m *raft_serverpb.RaftMessage) {
	if raftstore.IsSnapshot(m) {
		t.tell.SnapshotSent(m.RegionId, m.ToPeer.Id, false)
		return
	}
	t.tell.Unreachable(m.RegionId, m.ToPeer.Id)
}

func (t *Transport) link(store uint64) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.links[store]
	if l == nil {
		l = &link{
			Transport: t, store: store,
			queue: make(chan *raft_serverpb.RaftMessage, queueLimit), snaps: make(chan *raft_serverpb.RaftMessage, 16),
		}
		t.links[store] = l
		go l.run(l.queue, l.stream)
		go l.run(l.snaps, l.sendSnapshots)
	}
	return l
}

// run connects to the store, again and again, when there is something to send.
func (l *link) run(queue chan *raft_serverpb.RaftMessage, use func(conn *grpc.ClientConn, first *raft_serverpb.RaftMessage) error) {
	for {
		select {
		case <-l.ctx.Done():
			return
		case first := <-queue:
			conn, err := l.connect()
			if err == nil {
				err = errors.Join(use(conn, first), conn.Close())
			} else {
				l.lost(first)
			}
			if l.ctx.Err() != nil {
				return
			}
			l.log.Debug("lost a connection", "store", l.store, "error", err)
			for len(queue) > 0 {
				l.lost(<-queue)
			}
			select {
			case <-l.ctx.Done():
				return
			case <-time.After(retryDelay):
			}
		}
	}
}

// connect looks for the store's address each time: it may have got another one.
func (l *link) connect() (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(l.ctx, resolveTimeout)
	defer cancel()
	store, err := l.stores.Store(ctx, l.store)
	if err != nil {
		return nil, err
	}
	if store.GetState() == metapb.StoreState_Tombstone {
		return nil, fmt.Errorf("store %d is a tombstone", l.store)
	}
	address := store.GetPeerAddress()
	if address == "" {
		address = store.GetAddress()
	}
	return placement.Dial(address, l.over)
}

func (l *link) stream(conn *grpc.ClientConn, first *raft_serverpb.RaftMessage) error {
	ctx, cancel := context.WithCancel(l.ctx)
	defer cancel()
	stream, err := tikvpb.NewTikvClient(conn).BatchRaft(ctx)
	if err != nil {
		l.lost(first)
		return err
	}
	// The other side says nothing; the end of that is the end of the stream.
	go func() {
		var done raft_serverpb.Done
		_ = stream.RecvMsg(&done)
		cancel()
	}()
	batch := []*raft_serverpb.RaftMessage{first}
	for {
		for len(batch) < batchLimit && len(l.queue) > 0 {
			batch = append(batch, <-l.queue)
		}
		if err := stream.Send(&tikvpb.BatchRaftMessage{Msgs: batch}); err != nil {
			for _, m := range batch {
				l.lost(m)
			}
			return err
		}
		batch = batch[:0:0]
		select {
		case <-ctx.Done():
			return ctx.Err()
		case m := <-l.queue:
			batch = append(batch, m)
		}
	}
}

func (l *link) sendSnapshots(conn *grpc.ClientConn, m *raft_serverpb.RaftMessage) error {
	for {
		err := l.sendSnapshot(conn, m)
		l.tell.SnapshotSent(m.RegionId, m.ToPeer.Id, err == nil)
		if err != nil {
			return err
		}
		select {
		case <-l.ctx.Done():
			return l.ctx.Err()
		case m = <-l.snaps:
		case <-time.After(snapshotTimeout):
			return nil
		}
	}
}

func (l *link) sendSnapshot(conn *grpc.ClientConn, m *raft_serverpb.RaftMessage) error {
	ctx, cancel := context.WithTimeout(l.ctx, snapshotTimeout)
	defer cancel()
	stream, err := tikvpb.NewTikvClient(conn).Snapshot(ctx)
	if err != nil {
		return err
	}
	data, err := m.Marshal()
	if err != nil {
		return err
	}
	// Only the chunks say what the message is: the first may be too large with it.
	for len(data) > 0 {
		n := min(chunkSize, len(data))
		if err := stream.Send(&raft_serverpb.SnapshotChunk{Data: data[:n]}); err != nil {
			return err
		}
		data = data[n:]
	}
	_, err = stream.CloseAndRecv()
	return err
}

// Receiver is the receiving side.
type Receiver struct{ Store *raftstore.Store }

// BatchRaft receives messages.
func (r Receiver) BatchRaft(stream tikvpb.Tikv_BatchRaftServer) error {
	for {
		batch, err := stream.Recv()
		if err != nil {
			return err
		}
		for _, m := range batch.GetMsgs() {
			r.Store.Receive(m)
		}
	}
}

// Snapshot receives one message that carries a snapshot.
func (r Receiver) Snapshot(stream tikvpb.Tikv_SnapshotServer) error {
	var data []byte
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		data = append(data, chunk.GetData()...)
	}
	m := &raft_serverpb.RaftMessage{}
	if err := m.Unmarshal(data); err != nil {
		return fmt.Errorf("receive a snapshot: %w", err)
	}
	r.Store.Receive(m)
	return stream.SendAndClose(&raft_serverpb.Done{})
}
