package rig

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"runtime/pprof"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// listen opens the client Service of a PDGroup at an address of its own, and gives each
// connection to a member that lives. Without one it closes the connection.
func (d *Databases) listen(db *Database) (string, error) {
	_, listener, err := d.addresses.listen(d.ctx, "", v1alpha1.PortPDClient)
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	context.AfterFunc(d.ctx, func() { _ = listener.Close() }) // the rig ends

	go func() { //nolint:gosec // the other context is one without labels
		// An operator that connects opens it: what it costs is the world's all the same.
		pprof.SetGoroutineLabels(context.Background())
		for {
			client, err := listener.Accept()
			if err != nil {
				return // closed
			}
			if d.etcd == nil {
				serveConnection(db, client)
				continue
			}
			go func() {
				if client = d.etcd.take(client); client != nil {
					serveConnection(db, client)
				}
			}()
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
