package localcluster

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakeCRI answers as a containerd would.
type fakeCRI struct {
	cri.UnimplementedRuntimeServiceServer
	conditions []*cri.RuntimeCondition
}

func (*fakeCRI) Version(context.Context, *cri.VersionRequest) (*cri.VersionResponse, error) {
	return &cri.VersionResponse{RuntimeApiVersion: "v1"}, nil
}

func (r *fakeCRI) Status(context.Context, *cri.StatusRequest) (*cri.StatusResponse, error) {
	return &cri.StatusResponse{Status: &cri.RuntimeStatus{Conditions: r.conditions}}, nil
}

// socket serves at a path that is short enough for a socket.
func socket(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cri") //nolint:usetesting // a socket's path has at most 107 letters
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	path := filepath.Join(dir, "s")
	l, err := new(net.ListenConfig).Listen(t.Context(), "unix", path)
	require.NoError(t, err)
	server := grpc.NewServer()
	register(server)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); assert.NoError(t, <-ended) })
	return path
}

func TestAContainerdIsReadyWhenItCanRunPods(t *testing.T) {
	condition := func(kind string, status bool, reason string) *cri.RuntimeCondition {
		return &cri.RuntimeCondition{Type: kind, Status: status, Reason: reason, Message: "why"}
	}
	for name, c := range map[string]struct {
		service cri.RuntimeServiceServer // nil for none
		says    string
	}{
		"both conditions hold":                    {&fakeCRI{conditions: []*cri.RuntimeCondition{condition(cri.RuntimeReady, true, ""), condition(cri.NetworkReady, true, "")}}, ""},
		"it has no network":                       {&fakeCRI{conditions: []*cri.RuntimeCondition{condition(cri.RuntimeReady, true, ""), condition(cri.NetworkReady, false, "NoCNI")}}, "NetworkReady is false: NoCNI: why"},
		"it says nothing of its network":          {&fakeCRI{conditions: []*cri.RuntimeCondition{condition(cri.RuntimeReady, true, "")}}, "NetworkReady is not reported"},
		"its part for Kubernetes has not started": {nil, "unknown service runtime.v1.RuntimeService"},
	} {
		t.Run(name, func(t *testing.T) {
			ready := criReady(socket(t, func(s *grpc.Server) {
				if c.service != nil {
					cri.RegisterRuntimeServiceServer(s, c.service)
				}
			}))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			if c.says == "" {
				require.NoError(t, ready(ctx))
				return
			}
			require.ErrorContains(t, ready(ctx), c.says)
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	require.Error(t, criReady("/nowhere/containerd.sock")(ctx), "no containerd is there")
}
