package rig

import (
	"context"
	"fmt"

	logbackuppb "github.com/pingcap/kvproto/pkg/logbackuppb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// storePort is what a TiKV answers on its own port: whether it has written its
// log backups out, as it was asked to. Nothing else of TiKV is there.
type storePort struct {
	logbackuppb.UnimplementedLogBackupServer
	ip     string
	server *grpc.Server
	db     *Database
	claim  types.UID
}

// openStorePort listens at a door.
func openStorePort(ctx context.Context, at door, db *Database, claim types.UID) (*storePort, error) {
	ip, listener, err := at.from.listen(ctx, at.wanted, v1alpha1.PortTiKV)
	if err != nil {
		return nil, fmt.Errorf("open TiKV's port: %w", err)
	}
	var options []grpc.ServerOption
	if at.identity != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(at.identity)))
	}
	p := &storePort{ip: ip, server: grpc.NewServer(options...), db: db, claim: claim}
	logbackuppb.RegisterLogBackupServer(p.server, p)
	go func() { _ = p.server.Serve(listener) }() // ends when it is stopped
	return p, nil
}

// FlushNow implements logbackup.LogBackupServer.
func (p *storePort) FlushNow(context.Context, *logbackuppb.FlushNowRequest) (*logbackuppb.FlushNowResponse, error) {
	out := &logbackuppb.FlushNowResponse{}
	for _, name := range p.db.FlushLogBackups(p.claim) {
		out.Results = append(out.Results, &logbackuppb.FlushResult{TaskName: name, Success: true})
	}
	return out, nil
}

func (p *storePort) close() { p.server.Stop() }
