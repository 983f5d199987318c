package loopback

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"
)

const (
	// first and end bound the blocks, which are 127.x.y.0/24 for x from 224 to 254;
	// the rig's pods have the addresses below.
	first, end = 224 << 8, 255 << 8
	// holdPort is what the holder of a block listens on, at its address 0. It
	// lies, as port does, below the ports that the kernel gives away.
	holdPort = 19999
	port     = 19998
)

// errAllTaken means that every block has a holder.
var errAllTaken = errors.New("every block of loopback addresses is taken")

// addresses are those of one process.
type addresses struct {
	mu sync.Mutex
	// block is the one in use, and last the last address of it that was given.
	block, last int
	// held are never closed: what is left of a test, or a listener of its that
	// ends late, must not meet another process's.
	held []net.Listener
}

// own are this process's addresses.
var own addresses

// Host returns an IP address that nothing else uses.
func Host(t testing.TB) string {
	t.Helper()
	host, err := own.next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return host
}

// NewServer returns an HTTP server at a port of a host that nothing else uses, and the host. The test
// starts it, with TLS or without; it is closed with the test.
func NewServer(t testing.TB, port int, handler http.Handler) (server *httptest.Server, host string) {
	t.Helper()
	host = Host(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err != nil {
		t.Fatal(err)
	}
	server = &httptest.Server{Listener: listener, Config: &http.Server{ReadHeaderTimeout: time.Second, Handler: handler}}
	t.Cleanup(server.Close)
	return server, host
}

// Address returns host:port of a host that nothing else uses.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort(Host(t), strconv.Itoa(port))
}

func (a *addresses) next(ctx context.Context) (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.held) == 0 || a.last == 254 {
		if err := a.hold(ctx); err != nil {
			return "", err
		}
	}
	a.last++
	return loopbackIP(a.block, a.last), nil
}

// hold takes the next free block. Processes begin at different ones.
func (a *addresses) hold(ctx context.Context) error {
	if len(a.held) == 0 {
		a.block = first + os.Getpid()%(end-first)
	}
	var config net.ListenConfig
	var err error
	for range end - first {
		if a.block++; a.block >= end {
			a.block = first
		}
		var l net.Listener
		if l, err = config.Listen(ctx, "tcp", net.JoinHostPort(loopbackIP(a.block, 0), strconv.Itoa(holdPort))); err == nil {
			a.held, a.last = append(a.held, l), 0
			return nil
		}
	}
	return fmt.Errorf("%w: %w", errAllTaken, err)
}

func loopbackIP(block, last int) string {
	return net.IPv4(127, byte(block>>8), byte(block), byte(last)).String() //nolint:gosec // each is below 256, or meant to be cut
}
