package rig

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/tidb-groups/tidb-groups/e2e/model"
	"github.com/tidb-groups/tidb-groups/e2e/model/settings"
)

// addresses hands out loopback addresses as pods' IPs, so that a pod's ports
// can be listened on. Processes begin at different ones.
type addresses struct {
	mu   sync.Mutex
	last uint32
}

func newAddresses() *addresses {
	return &addresses{last: uint32(os.Getpid()%200+20) << 16} //nolint:gosec // small and positive
}

func (a *addresses) next() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last++
	if a.last&0xff == 0xff {
		a.last += 2
	}
	return net.IPv4(127, byte(a.last>>16), byte(a.last>>8), byte(a.last)).String()
}

// listen listens on a port of the wanted address, or finds an address on which that
// port is free.
func (a *addresses) listen(ctx context.Context, wanted string, port int32) (ip string, l net.Listener, err error) {
	var config net.ListenConfig
	var errs []error
	for range 50 {
		ip, wanted = cmp.Or(wanted, a.next()), ""
		if l, err = config.Listen(ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(int(port)))); err == nil {
			return ip, l, nil
		}
		errs = append(errs, err)
	}
	return "", nil, errors.Join(errs...)
}

// statusPort answers on a member's status port at an address of its own.
type statusPort struct {
	ip     string
	server *http.Server
}

// tikvPort is what TiKV answers about itself.
func tikvPort(config *settings.Config) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("/config", config.TiKV)
	return mux
}

// tidbPort is what TiDB answers about itself.
func tidbPort(servers *model.Servers, config *settings.Config) http.Handler {
	mux := http.NewServeMux()
	for path, upgrading := range map[string]bool{"POST /upgrade/start": true, "POST /upgrade/finish": false} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, servers.Tell(upgrading)) }) // the reader is gone if it fails
	}
	mux.HandleFunc("/settings", config.TiDB)
	mux.HandleFunc("POST /labels", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	return mux
}

// door is where a process listens: on the wanted address, or on a free one.
type door struct {
	from   *addresses
	wanted string
	// identity is how it serves over TLS; nil without.
	identity *tls.Config
}

// door is where the process of a pod listens.
func (a *actor) door(pod *corev1.Pod) door {
	return door{a.addresses, pod.Status.PodIP, a.identity(pod)}
}

// openStatusPort listens at a door.
func openStatusPort(ctx context.Context, at door, number int32, answers http.Handler) (*statusPort, error) {
	ip, listener, err := at.from.listen(ctx, at.wanted, number)
	if err != nil {
		return nil, fmt.Errorf("open a status port: %w", err)
	}
	if at.identity != nil {
		listener = tls.NewListener(listener, at.identity)
	}
	p := &statusPort{ip: ip, server: &http.Server{Handler: answers, ReadHeaderTimeout: 5 * time.Second, ErrorLog: log.New(io.Discard, "", 0)}}
	go func() { _ = p.server.Serve(listener) }() // ends when it is closed
	return p, nil
}

func (p *statusPort) close() { _ = p.server.Close() } // nothing is left to fail
