package localcluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// checkPorts refuses ports that another process listens on, before anything is
// started: a daemon that cannot listen would only say so in its log. Daemons of
// this cluster that run already hold theirs rightly.
func (c *Cluster) checkPorts(ctx context.Context) error {
	for _, d := range []struct {
		process process
		ports   []int
	}{
		{c.etcd(), []int{etcdPort, etcdPeerPort, etcdInfoPort}},
		{c.apiServer(), []int{apiPort}},
		{c.controllerManager(), []int{10257}},
		{c.scheduler(), []int{10259}},
		{c.proxy(), []int{10256}},
	} {
		_, runs, err := c.processes.find(d.process)
		if err != nil {
			return fmt.Errorf("find %s: %w", d.process.name, err)
		}
		if runs {
			continue
		}
		for _, port := range d.ports {
			if err := checkPortFree(ctx, port); err != nil {
				return fmt.Errorf("start %s: %w", d.process.name, err)
			}
		}
	}
	return nil
}

// checkPortFree is content when a port of the bridge's address can be listened on.
func checkPortFree(ctx context.Context, port int) error { return freeAt(ctx, gateway, port) }

func freeAt(ctx context.Context, host string, port int) error {
	address := net.JoinHostPort(host, strconv.Itoa(port))
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
