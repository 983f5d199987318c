package logbackup_test

import (
	"context"
	"errors"
	"net"
	"strconv"
	"testing"
	"time"

	logbackuppb "github.com/pingcap/kvproto/pkg/logbackuppb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/tikvgroup/logbackup"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const soon = time.Minute

func order(pod types.UID, since time.Time, within time.Duration) logbackup.Order {
	return logbackup.Order{Instance: "kv-0", StoreID: "1", Pod: pod, Since: since, Host: "here", Within: within}
}

func TestKV17AStoreIsAskedOnceForEachTimeThatItIsToStop(t *testing.T) {
	begun := time.Unix(1800000000, 0)
	calls, told := make(chan string, 10), make(chan error, 10)
	refused := errors.New("the bucket is gone")
	stores := logbackup.New(t.Context(), func(_ context.Context, host string) (int, error) {
		calls <- host
		return 0, refused
	}, func(_ logbackup.Order, _ int, err error) { told <- err })
	ended := func(pod types.UID, since time.Time) {
		require.Eventually(t, func() bool { return stores.EndedPods()[pod].Equal(since) }, soon, time.Millisecond)
	}
	for range 3 {
		stores.Begin(order("a", begun, time.Minute))
	}
	ended("a", begun)
	assert.ErrorIs(t, <-told, refused, "it is told, and goes on")
	stores.Begin(order("b", begun, time.Minute))
	ended("b", begun)
	stores.Begin(order("a", begun.Add(time.Minute), time.Minute))
	ended("a", begun.Add(time.Minute))
	assert.Len(t, calls, 3)
	stores.Begin(order("c", begun.Add(2*time.Hour), time.Minute))
	ended("c", begun.Add(2*time.Hour))
	assert.Len(t, stores.EndedPods(), 1, "what is long past is forgotten")
}

func TestKV17AStoreThatDoesNotAnswerIsNotWaitedFor(t *testing.T) {
	begun := time.Unix(1800000000, 0)
	told := make(chan error, 1)
	stores := logbackup.New(t.Context(), func(ctx context.Context, _ string) (int, error) {
		<-ctx.Done()
		return 0, ctx.Err()
	}, func(_ logbackup.Order, _ int, err error) { told <- err })
	stores.Begin(order("a", begun, time.Hour))
	assert.Empty(t, stores.EndedPods(), "it has its time")
	stores.Begin(order("b", begun, 10*time.Millisecond))
	assert.ErrorIs(t, <-told, context.DeadlineExceeded)
	require.Eventually(t, func() bool { return len(stores.EndedPods()) == 1 }, soon, time.Millisecond)
}

// service is a TiKV's service for log backups.
type service struct {
	logbackuppb.UnimplementedLogBackupServer
	results []*logbackuppb.FlushResult
}

func (s *service) FlushNow(context.Context, *logbackuppb.FlushNowRequest) (*logbackuppb.FlushNowResponse, error) {
	return &logbackuppb.FlushNowResponse{Results: s.results}, nil
}

// listen serves at a loopback address of its own, on TiKV's port.
func listen(t *testing.T, register func(*grpc.Server)) string {
	t.Helper()
	host := loopback.Host(t)
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", net.JoinHostPort(host, strconv.Itoa(int(v1alpha1.PortTiKV))))
	require.NoError(t, err)
	server := grpc.NewServer()
	register(server)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() { server.Stop(); assert.NoError(t, <-done) })
	return host
}

func TestKV17WhatAStoreAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		service logbackuppb.LogBackupServer // nil for none
		backups int
		says    string
	}{
		"it has no log backup":      {&service{}, 0, ""},
		"it does not know the call": {&logbackuppb.UnimplementedLogBackupServer{}, 0, ""},
		"it has no such service":    {nil, 0, ""},
		"it has two":                {&service{results: []*logbackuppb.FlushResult{{TaskName: "a", Success: true}, {TaskName: "b", Success: true}}}, 2, ""},
		"one of two fails":          {&service{results: []*logbackuppb.FlushResult{{TaskName: "a", Success: true}, {TaskName: "b", ErrorMessage: "no bucket"}}}, 1, "log backup b: no bucket"},
	} {
		t.Run(name, func(t *testing.T) {
			host := listen(t, func(s *grpc.Server) {
				if c.service != nil {
					logbackuppb.RegisterLogBackupServer(s, c.service)
				}
			})
			backups, err := logbackup.FlushNow(t.Context(), host)
			assert.Equal(t, c.backups, backups)
			if c.says == "" {
				assert.NoError(t, err)
				return
			}
			assert.ErrorContains(t, err, c.says)
		})
	}
	begin := time.Now()
	unreachable := loopback.Host(t)
	_, err := logbackup.FlushNow(t.Context(), unreachable)
	require.ErrorContains(t, err, unreachable+":20160")
	assert.Less(t, time.Since(begin), time.Minute, "no store is there")
	_, err = logbackup.FlushNow(t.Context(), "::1")
	require.ErrorContains(t, err, "[::1]:20160", "nor there")
}
