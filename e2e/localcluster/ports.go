package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// checkPorts refuses ports that somebody else listens on, before anything is
// started: a daemon that cannot listen would only say so in its log. Daemons of
// this cluster that run already hold theirs rightly.
func (c *Cluster) checkPorts(ctx context.Context) error {
	for _, d := range []struct {
		process string
		ports   []int
	}{
		{"etcd", []int{etcdPort, etcdPeerPort, etcdInfoPort}},
		{"kube-apiserver", []int{apiPort}},
		{"kube-controller-manager", []int{10257}},
		{"kube-scheduler", []int{10259}},
		{"kube-proxy", []int{10249, 10256}},
	} {
		if _, runs := c.processes.recorded(d.process); runs {
			continue
		}
		for _, port := range d.ports {
			if err := free(ctx, port); err != nil {
				return fmt.Errorf("start %s: %w", d.process, err)
			}
		}
	}
	return nil
}

// free is content when a port of the bridge's address can be listened on.
func free(ctx context.Context, port int) error {
	address := net.JoinHostPort(gateway, strconv.Itoa(port))
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("port %d is in use by another program: find it with: ss -ltnp 'sport = :%d', stop it, and run this command again", port, port)
	case err != nil:
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	return l.Close()
}
