package objectstore

import (
	"context"
	"net"

	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
)

// Google is a server of Google Cloud Storage, which asks no client for credentials.
type Google struct {
	// Address to listen at, host:port.
	Address string
	// Dir has the buckets, which are its folders.
	Dir string
}

// Start runs the server until the context ends, and returns when it listens; ended gets how
// it ended.
func (g Google) Start(ctx context.Context) (ended <-chan error, err error) {
	program, err := binaries.Path(ctx, "fake-gcs-server")
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(g.Address)
	if err != nil {
		return nil, err
	}
	return startProgram(ctx, program, g.Address, "-scheme", "http", "-host", host, "-port", port, "-public-host", g.Address, "-filesystem-root", g.Dir, "-log-level", "error")
}
