package rig

import (
	"context"
	"fmt"

	logbackuppb "github.com/pingcap/kvproto/pkg/logbackuppb"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// storePort is what a TiKV answers on its own port: whoever asks it to write its
// log backups out. Nothing else of TiKV is there.
type storePort struct {
	logbackuppb.UnimplementedLogBackupServer
	ip     string
	server *grpc.Server
	db     *Database
	claim  types.UID
}

// openStorePort listens on the wanted address, or on a free one.
func openStorePort(ctx context.Context, from *addresses, wanted string, db *Database, claim types.UID) (*storePort, error) {
	ip, listener, err := from.listen(ctx, wanted, v1alpha1.PortTiKV)
	if err != nil {
		return nil, fmt.Errorf("open TiKV's port: %w", err)
	}
	p := &storePort{ip: ip, server: grpc.NewServer(), db: db, claim: claim}
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
