package rig

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"runtime/pprof"
)

// openService opens the client Service of a PDGroup on loopback, and gives each
// connection to a member that lives. Without one it closes the connection.
func openService(ctx context.Context, db *Database) (string, error) {
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
			serveConnection(db, client)
		}
	}()
	return listener.Addr().String(), nil
}

// serveConnection gives a connection to a member that lives.
func serveConnection(db *Database, client net.Conn) {
	if identity := db.identity(); identity != nil {
		client = tls.Server(client, identity)
	}
	if pd := db.Model(); pd == nil || pd.Serve(client, db.serviceName()) != nil {
		_ = client.Close() // the other end may have closed it
	}
}
