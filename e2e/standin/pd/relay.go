package pd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
)

// relay carries the members' connections to the etcd inside.
//
// An etcd that starts asks the others first, with a timeout of a second for each,
// and listens meanwhile without answering. Members that start together would so
// wait for each other for nothing. With the relay, their port is closed until
// there is a member to answer, and asking costs no time.
type relay struct {
	cancel    context.CancelFunc
	listeners []net.Listener
	done      sync.WaitGroup
}

// startRelay listens on the URLs and carries every connection to the target.
func startRelay(ctx context.Context, urls []url.URL, target net.Addr) (*relay, error) {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r := &relay{cancel: cancel}
	var lc net.ListenConfig
	for _, u := range urls {
		l, err := lc.Listen(ctx, "tcp", u.Host)
		if err != nil {
			r.close()
			return nil, fmt.Errorf("listen for members: %w", err)
		}
		r.listeners = append(r.listeners, l)
		r.done.Go(func() { r.accept(run, l, target) })
	}
	return r, nil
}

func (r *relay) accept(ctx context.Context, l net.Listener, target net.Addr) {
	for {
		from, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		r.done.Go(func() { relayConnection(ctx, from, target) })
	}
}

// relayConnection copies both ways until one side ends, which ends the other.
func relayConnection(ctx context.Context, from net.Conn, target net.Addr) {
	var d net.Dialer
	to, err := d.DialContext(ctx, target.Network(), target.String())
	if err != nil {
		_ = from.Close()
		return
	}
	hangUp := sync.OnceFunc(func() {
		// A client that is still reading learns of it by this.
		_ = from.Close()
		_ = to.Close()
	})
	stop := context.AfterFunc(ctx, hangUp)
	defer stop()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() {
			defer hangUp()
			_, _ = io.Copy(way[0], way[1])
		})
	}
	both.Wait()
}

func (r *relay) close() {
	r.cancel()
	for _, l := range r.listeners {
		_ = l.Close()
	}
	r.done.Wait()
}
