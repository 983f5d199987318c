package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// stopTimeout bounds how long a status port waits for its last answers.
const stopTimeout = 2 * time.Second

// Listen binds addr exactly as given.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// ServeHTTP answers on l until ctx ends, and returns when the last answer is
// given or two seconds have passed. It understands HTTP/2, also in the clear, which
// is gRPC's.
func ServeHTTP(ctx context.Context, l net.Listener, h http.Handler) error {
	// A probe of the kubelet that only connects is no error worth a line a second.
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, Protocols: &http.Protocols{}, ErrorLog: log.New(io.Discard, "", 0)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetHTTP2(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serve %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.Shutdown(stop); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stop serving %s: %w", l.Addr(), err)
	}
	return nil
}

// RunAll runs the functions side by side, ends them all when one fails, and
// returns the first failure.
func RunAll(ctx context.Context, fns ...func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan error, len(fns))
	for _, fn := range fns {
		go func() {
			err := fn(ctx)
			if err != nil {
				cancel(err)
			}
			done <- err
		}()
	}
	var first error
	for range fns {
		if err := <-done; err != nil && first == nil {
			first = err
		}
	}
	return first
}
