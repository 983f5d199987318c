package memorydb

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Proxy is a TCP proxy on loopback that does what networks and dying servers do.
type Proxy struct {
	listener net.Listener
	target   string

	lock sync.Mutex
	// stalled is open while nothing is passed on.
	stalled chan struct{}
	refuses bool
	// mute connections pass nothing back.
	mute  bool
	conns map[net.Conn]bool // both ends of each connection
}

// NewProxy runs a proxy to an address until the test ends.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &Proxy{listener: l, target: target, conns: map[net.Conn]bool{}, stalled: make(chan struct{})}
	close(p.stalled)
	var done sync.WaitGroup
	done.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			done.Go(func() { p.pass(near) })
		}
	})
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		p.Resume()
		p.Cut()
		done.Wait()
	})
	return p
}

// Address that clients connect to.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// pass passes everything on in both directions.
func (p *Proxy) pass(near net.Conn) {
	defer near.Close() //nolint:errcheck // it is gone all the same
	p.lock.Lock()
	refuses := p.refuses
	p.lock.Unlock()
	if refuses {
		return
	}
	far, err := net.Dial("tcp", p.target) //nolint:noctx // on loopback it is at once
	if err != nil {
		return
	}
	defer far.Close() //nolint:errcheck // as above
	p.lock.Lock()
	p.conns[near], p.conns[far] = true, true
	p.lock.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(far, near, false) })
	both.Go(func() { p.copy(near, far, true) })
	both.Wait()
	p.lock.Lock()
	defer p.lock.Unlock()
	delete(p.conns, near)
	delete(p.conns, far)
}

// copy passes on until either end is closed, and closes the other then.
func (p *Proxy) copy(to, from net.Conn, back bool) {
	defer to.Close() //nolint:errcheck // as above
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		p.lock.Lock()
		stalled, mute := p.stalled, p.mute && back
		p.lock.Unlock()
		<-stalled
		if n > 0 && !mute {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			if err != io.EOF { //nolint:errorlint // Read returns it as it is
				from.Close() //nolint:errcheck,gosec // as above
			}
			return
		}
	}
}

// Stall passes nothing on until Resume.
func (p *Proxy) Stall() {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.stalled = make(chan struct{})
}

// Resume passes on again.
func (p *Proxy) Resume() {
	p.lock.Lock()
	defer p.lock.Unlock()
	select {
	case <-p.stalled:
	default:
		close(p.stalled)
	}
}

// Refuse closes new connections at once, or no longer.
func (p *Proxy) Refuse(refuse bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.refuses = refuse
}

// Mute swallows all answers, or no longer: statements are executed, and their clients hear nothing.
func (p *Proxy) Mute(mute bool) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.mute = mute
}

// Cut closes all connections.
func (p *Proxy) Cut() {
	p.lock.Lock()
	defer p.lock.Unlock()
	for c := range p.conns {
		c.Close() //nolint:errcheck,gosec // as above
	}
}
