package logbackup

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	logbackuppb "github.com/pingcap/kvproto/pkg/logbackuppb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
)

// connectTimeout bounds one connection: a store that is not reached in this time
// is not waited for.
const connectTimeout = 5 * time.Second

// transportCredentials is how the calls of a context connect.
func transportCredentials(ctx context.Context) credentials.TransportCredentials {
	if config := httpclient.TLSFromContext(ctx); config != nil {
		return credentials.NewTLS(config)
	}
	return insecure.NewCredentials()
}

// FlushNow asks a store on its port, as BR does (kvproto, logbackup.LogBackup/FlushNow).
// A store without log backups, or of a version that does not know the call, has
// nothing to write out.
func FlushNow(ctx context.Context, host string) (backups int, err error) {
	address := net.JoinHostPort(host, strconv.Itoa(int(v1alpha1.PortTiKV)))
	connection, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(transportCredentials(ctx)), grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.DefaultConfig, MinConnectTimeout: connectTimeout}))
	if err != nil {
		return 0, fmt.Errorf("reach %s: %w", address, err)
	}
	defer func() { _ = connection.Close() }()
	answer, err := logbackuppb.NewLogBackupClient(connection).FlushNow(ctx, &logbackuppb.FlushNowRequest{})
	switch {
	case status.Code(err) == codes.Unimplemented:
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("ask %s: %w", address, err)
	}
	var failed error
	for _, r := range answer.GetResults() {
		if r.GetSuccess() {
			backups++
			continue
		}
		failed = errors.Join(failed, fmt.Errorf("log backup %s: %s", r.GetTaskName(), r.GetErrorMessage()))
	}
	return backups, failed
}
