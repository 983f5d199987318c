package pdsim

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Serve serves a connection of a client that came to an address, as the member does that
// advertises it, or any live one by the names of Options.Services. The member closes it. With
// no live member there the error says so, and the connection is left open.
func (p *PD) Serve(client net.Conn, address string) error {
	port := p.at(address)
	if port == nil || !port.tryServe(client) {
		return fmt.Errorf("no PD member at %s", address)
	}
	return nil
}

// DialContext connects to the members by the names that they advertise, and to
// any live one by the names of Options.Services. A dead one refuses.
func (p *PD) DialContext(_ context.Context, network, address string) (net.Conn, error) {
	client, member := net.Pipe()
	if err := p.Serve(member, address); err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	return client, nil
}

// Transport carries HTTP requests by DialContext, also to members that advertise https: TLS
// is added before them, by who listens for them. It keeps no connection.
func (p *PD) Transport() *http.Transport {
	return &http.Transport{DialContext: p.DialContext, DialTLSContext: p.DialContext, DisableKeepAlives: true}
}

// at is the port of the live member at an address; nil if there is none.
func (p *PD) at(address string) *port {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.nodes {
		u, err := url.Parse(n.clientURL())
		service := slices.Contains(p.opts.Services, address) && n.alive && !n.removed
		if n.port != nil && (service || err == nil && u.Host == address) {
			return n.port
		}
	}
	return nil
}

// port is where a running member is reached.
type port struct {
	server *http.Server
	inside *inside
}

// openPort starts to answer, within the process and to listeners.
func openPort(answers http.Handler, listeners ...net.Listener) *port {
	p := &port{
		server: &http.Server{Handler: answers, ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0)},
		inside: &inside{clients: make(chan net.Conn), closed: make(chan struct{})},
	}
	for _, l := range append(listeners, p.inside) {
		go func() { _ = p.server.Serve(l) }() // ends when it is closed
	}
	return p
}

// listenLoopback listens where a member listened before, if no other process does by now, or at a free
// port: a member is reached by the URL that it advertises.
func listenLoopback(before string) (net.Listener, error) {
	var config net.ListenConfig
	if before != "" {
		if l, err := config.Listen(context.Background(), "tcp", before); err == nil {
			return l, nil
		}
	}
	return config.Listen(context.Background(), "tcp", "127.0.0.1:0")
}

// tryServe hands a connection over, and reports whether the member still runs.
func (p *port) tryServe(client net.Conn) bool {
	select {
	case p.inside.clients <- client:
		return true
	case <-p.inside.closed:
		return false
	}
}

// close stops to answer, also where serving has not begun yet.
func (p *port) close() error { return p.server.Close() }

// inside is a listener that is given its connections, and takes no file of the process.
type inside struct {
	clients chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

// Accept implements net.Listener.
func (l *inside) Accept() (net.Conn, error) {
	select {
	case client := <-l.clients:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *inside) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener. It cannot be used from outside.
func (l *inside) Addr() net.Addr { return &net.UnixAddr{Name: "pd", Net: "unix"} }
