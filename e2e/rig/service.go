package rig

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime/pprof"
)

// listen opens the client Service of a PDGroup on loopback, and carries each
// connection to a member that lives. Without one it closes the connection.
func listen(ctx context.Context, db *Database) (string, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() }) // the rig ends

	go func() { //nolint:gosec // the other context is one without labels
		// An operator that connects opens it: what it costs is the world's all the same.
		pprof.SetGoroutineLabels(context.Background())
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			go carry(ctx, db, client)
		}
	}()
	return listener.Addr().String(), nil
}

func carry(ctx context.Context, db *Database, client net.Conn) {
	defer func() { _ = client.Close() }() // the other end may have closed it
	if identity := db.identity(); identity != nil {
		client = tls.Server(client, identity)
	}
	pd := db.Model()
	if pd == nil {
		return
	}
	member, err := pd.DialContext(ctx, "tcp", db.serviceName())
	if err != nil {
		return
	}
	defer func() { _ = member.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = client.Close() })
	defer stop()
	go func() {
		_, _ = io.Copy(member, client) // ends with either connection
		_ = member.Close()
	}()
	_, _ = io.Copy(client, member)
}
