package conformance_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// switched is a real PD whose members are stopped and started with another scheme.
type switched struct {
	t              *testing.T
	program, dir   string
	clients, peers map[string]string
	running        map[string]*exec.Cmd
}

// start starts all members.
func (s *switched) start(scheme string) {
	s.t.Helper()
	var cluster []string
	for _, name := range memberNames {
		cluster = append(cluster, name+"="+scheme+"://"+s.peers[name])
	}
	for _, name := range memberNames {
		log, err := os.OpenFile(filepath.Join(s.dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		require.NoError(s.t, err)
		args := []string{"--name=" + name, "--data-dir=" + filepath.Join(s.dir, name), "--client-urls=" + scheme + "://" + s.clients[name], "--advertise-client-urls=" + scheme + "://" + s.clients[name],
			"--peer-urls=" + scheme + "://" + s.peers[name], "--advertise-peer-urls=" + scheme + "://" + s.peers[name], "--initial-cluster=" + strings.Join(cluster, ",")}
		if scheme == "https" {
			args = append(args, "--config="+filepath.Join(s.dir, "pd.toml"))
		}
		process := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.program, args...) //nolint:gosec // a program of the cache
		process.Dir, process.Stdout, process.Stderr = s.dir, log, log
		process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(s.t, process.Start())
		require.NoError(s.t, log.Close())
		s.running[name] = process
	}
}

// stop stops all members.
func (s *switched) stop() {
	for _, process := range s.running {
		_ = process.Process.Signal(syscall.SIGTERM) // it may have ended
	}
	for _, process := range s.running {
		_ = process.Wait() // by a signal
	}
	clear(s.running)
}

// etcd connects to the members.
func (s *switched) etcd(scheme string, config *tls.Config) *clientv3.Client {
	s.t.Helper()
	var endpoints []string
	for _, address := range s.clients {
		endpoints = append(endpoints, scheme+"://"+address)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, TLS: config, DialTimeout: 3 * time.Second, Logger: zap.NewNop()})
	require.NoError(s.t, err)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// reads reports whether a quorum answers with what was written, within a bound.
func (s *switched) reads(client *clientv3.Client, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(s.t.Context(), within)
	defer cancel()
	for ctx.Err() == nil {
		one, done := context.WithTimeout(ctx, 3*time.Second)
		answer, err := client.Get(one, "row")
		done()
		if err == nil {
			return len(answer.Kvs) == 1 && string(answer.Kvs[0].Value) == "kept"
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return false
}

// update gives every member peer URLs of these schemes, as the pdgroup operator does. config is
// what it connects with, nil without TLS.
func (s *switched) update(config *tls.Config, schemes ...string) {
	s.t.Helper()
	c, err := pdclient.NewDialer("http://"+s.clients[memberNames[0]], pdclient.WithTLS(func(types.NamespacedName) (*tls.Config, error) { return config, nil }))(types.NamespacedName{})
	require.NoError(s.t, err)
	defer c.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
	defer cancel()
	var view pd.View
	require.Eventually(s.t, func() bool {
		view, err = c.View(ctx)
		return err == nil
	}, timeout, 200*time.Millisecond)
	for _, m := range view.Members {
		var urls []string
		for _, scheme := range schemes {
			urls = append(urls, scheme+"://"+s.peers[m.Name])
		}
		require.NoError(s.t, c.SetPeerURLs(ctx, m.ID, urls))
		require.NoError(s.t, c.SetPeerURLs(ctx, m.ID, urls), "it is harmless when repeated")
	}
	view, err = c.View(ctx)
	require.NoError(s.t, err)
	for _, m := range view.Members {
		assert.Equal(s.t, schemes[0]+"://"+s.peers[m.Name], m.PeerURL)
		if len(schemes) > 1 {
			assert.Equal(s.t, schemes[1]+"://"+s.peers[m.Name], m.OtherPeerURL)
		} else {
			assert.Empty(s.t, m.OtherPeerURL)
		}
	}
}

// What docs/tasks/tls.md says of switching on: etcd keeps the URLs of PD's peers, and members that
// are stopped and started with another scheme find each other only if the list has both.
func TestSEC01ARealPDChangesItsSchemeWhileItIsStoppedIfItsPeersKnowBoth(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	program, err := binaries.Path(t.Context(), "pd-server")
	require.NoError(t, err)
	s := &switched{t: t, program: program, dir: t.TempDir(), clients: map[string]string{}, peers: map[string]string{}, running: map[string]*exec.Cmd{}}
	hosts := []string{"127.0.0.1", serverName}
	for _, name := range memberNames {
		s.clients[name], s.peers[name] = loopback.Address(t), loopback.Address(t)
		for _, address := range []string{s.clients[name], s.peers[name]} {
			host, _, err := net.SplitHostPort(address)
			require.NoError(t, err)
			hosts = append(hosts, host)
		}
	}
	members, client := filepath.Join(s.dir, "members"), filepath.Join(s.dir, "client")
	issue(t, ca, members, hosts...)
	issue(t, ca, client)
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, "pd.toml"), fmt.Appendf(nil, "[security]\ncacert-path = '%[1]s/ca.crt'\ncert-path = '%[1]s/tls.crt'\nkey-path = '%[1]s/tls.key'\n", members), 0o600))
	shown := connecting(t, client)

	s.start("http")
	t.Cleanup(s.stop)
	plain := s.etcd("http", nil)
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		_, err := plain.Put(ctx, "row", "kept")
		return err == nil
	}, timeout, 200*time.Millisecond)
	before, err := plain.MemberList(t.Context())
	require.NoError(t, err)

	s.stop()
	s.start("https")
	secured := s.etcd("https", shown)
	assert.False(t, s.reads(secured, 15*time.Second), "they call each other by http still")
	s.stop()
	s.start("http")
	require.True(t, s.reads(plain, timeout), "and nothing is lost when it is changed back")

	s.update(nil, "http", "https")
	require.True(t, s.reads(plain, timeout), "with both URLs they go on")
	s.stop()
	s.start("https")
	require.True(t, s.reads(secured, timeout), "and find each other by the other one")
	s.update(shown, "https")
	require.True(t, s.reads(secured, timeout))
	after, err := secured.MemberList(t.Context())
	require.NoError(t, err)
	assert.Equal(t, before.Header.ClusterId, after.Header.ClusterId)
	for _, m := range after.Members {
		assert.Equal(t, []string{"https://" + s.peers[m.Name]}, m.PeerURLs)
		assert.Equal(t, []string{"https://" + s.clients[m.Name]}, m.ClientURLs, "PD tells by itself")
	}
	s.stop()
	s.start("https")
	require.True(t, s.reads(secured, timeout), "and once more after a restart")
}
