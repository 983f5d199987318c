package rig

import (
	"bufio"
	"context"
	"net"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// http2 is how a client of gRPC begins.
const http2 = "PRI * HTTP/2.0"

// etcd is what another operator's client of etcd finds on PD's port. It has no keys: no
// simulated TiDB registers there.
type etcd struct {
	etcdserverpb.UnimplementedKVServer
	server  *grpc.Server
	clients chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// newEtcd returns one that is there for all PDs until the context ends.
func newEtcd(ctx context.Context) *etcd {
	e := &etcd{server: grpc.NewServer(), clients: make(chan net.Conn), closed: make(chan struct{})}
	etcdserverpb.RegisterKVServer(e.server, e)
	go func() { _ = e.server.Serve(e) }() // ends when it is stopped
	context.AfterFunc(ctx, e.server.Stop)
	return e
}

// Range implements etcdserverpb.KVServer.
func (e *etcd) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

// Accept implements net.Listener.
func (e *etcd) Accept() (net.Conn, error) {
	select {
	case client := <-e.clients:
		return client, nil
	case <-e.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (e *etcd) Close() error {
	e.once.Do(func() { close(e.closed) })
	return nil
}

// Addr implements net.Listener. It cannot be used from outside.
func (e *etcd) Addr() net.Addr { return &net.UnixAddr{Name: "etcd", Net: "unix"} }

// take takes a connection over if its client speaks gRPC, and returns it otherwise: what was
// read of it is read again.
func (e *etcd) take(client net.Conn) (left net.Conn) {
	again := bufio.NewReader(client)
	begin, err := again.Peek(len(http2))
	client = peeked{client, again}
	if err != nil || string(begin) != http2 {
		return client
	}
	select {
	case e.clients <- client:
	case <-e.closed:
		_ = client.Close() // nothing is left to fail
	}
	return nil
}

// peeked is a connection whose beginning was looked at.
type peeked struct {
	net.Conn
	again *bufio.Reader
}

// Read implements net.Conn.
func (p peeked) Read(into []byte) (int, error) { return p.again.Read(into) }
