package conformance_test

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/pd"
	"github.com/tidb-groups/tidb-groups/e2e/standin/ticdc"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tidb"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tiflash"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tikv"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tiproxy"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// standins are a database of stand-ins that speaks TLS.
type standins struct {
	dir   string
	hosts []string
	// addresses of ports, by what they are.
	addresses map[string]string
}

// at is the address of a port.
func (s *standins) at(t *testing.T, what string) string {
	t.Helper()
	if s.addresses[what] == "" {
		s.addresses[what] = loopback.Address(t)
		host, _, err := net.SplitHostPort(s.addresses[what])
		require.NoError(t, err)
		s.hosts = append(s.hosts, host)
	}
	return s.addresses[what]
}

// file writes a configuration file, in which FILES stands for the folder with the members'
// certificate, and DIR for that of the test.
func (s *standins) file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(s.dir, name)
	text = strings.NewReplacer("FILES", filepath.Join(s.dir, "members"), "DIR", s.dir).Replace(text)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// background runs a stand-in until the test ends.
func background(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			assert.NoError(t, err)
		case <-time.After(timeout):
			assert.Fail(t, "a stand-in does not end")
		}
	})
}

// start starts all stand-ins.
func (s *standins) start(t *testing.T) {
	t.Helper()
	log, none := slog.New(slog.DiscardHandler), func(string) string { return "" }
	config := pd.DefaultConfig()
	require.NoError(t, config.LoadFile(s.file(t, "pd.toml", "[security]\ncacert-path = 'FILES/ca.crt'\ncert-path = 'FILES/tls.crt'\nkey-path = 'FILES/tls.key'\n")))
	config.Name, config.DataDir, config.ClientURLs, config.PeerURLs = "pd", filepath.Join(s.dir, "pd"), "https://"+s.at(t, "pd"), "https://"+s.at(t, "peer")
	config.LogFile = filepath.Join(s.dir, "pd.log")
	member, err := pd.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(member.Close)

	store, err := tikv.ParseArgs([]string{"--pd-endpoints=" + s.at(t, "pd"), "--addr=" + s.at(t, "tikv"), "--status-addr=" + s.at(t, "tikv status"), "--data-dir=" + filepath.Join(s.dir, "tikv"),
		"--config=" + s.file(t, "tikv.toml", "[security]\nca-path = 'FILES/ca.crt'\ncert-path = 'FILES/tls.crt'\nkey-path = 'FILES/tls.key'\n")}, none, io.Discard)
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return tikv.Run(ctx, log, store) })

	flash, err := tiflash.ParseArgs([]string{"server", "--config-file=" + s.file(t, "tiflash.toml", fmt.Sprintf(`listen_host = '%[6]s'
[flash]
service_addr = '%[1]s'
[flash.proxy]
addr = '%[2]s'
advertise-addr = '%[2]s'
status-addr = '%[3]s'
advertise-status-addr = '%[3]s'
data-dir = 'DIR/tiflash/proxy'
config = '%[4]s'
[status]
metrics_port = 8234
[storage.main]
dir = ['DIR/tiflash']
[raft]
pd_addr = '%[5]s'
[security]
ca_path = 'FILES/ca.crt'
cert_path = 'FILES/tls.crt'
key_path = 'FILES/tls.key'
`, s.at(t, "flash"), s.at(t, "proxy"), s.at(t, "proxy status"), s.file(t, "proxy.toml", "[security]\nca-path = 'FILES/ca.crt'\ncert-path = 'FILES/tls.crt'\nkey-path = 'FILES/tls.key'\n"),
		s.at(t, "pd"), hostOf(t, s.at(t, "flash"))))}, none, io.Discard)
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return tiflash.Run(ctx, log, flash) })

	server, err := tidb.ParseArgs([]string{"--store=tikv", "--path=" + s.at(t, "pd"), "--host=" + hostOf(t, s.at(t, "mysql")), "-P=" + portOf(t, s.at(t, "mysql")), "--status-host=" + hostOf(t, s.at(t, "tidb status")),
		"--status=" + portOf(t, s.at(t, "tidb status")), "--advertise-address=" + hostOf(t, s.at(t, "mysql")), "--report-status=true",
		"--config=" + s.file(t, "tidb.toml", "[security]\ncluster-ssl-ca = 'FILES/ca.crt'\ncluster-ssl-cert = 'FILES/tls.crt'\ncluster-ssl-key = 'FILES/tls.key'\nssl-cert = 'FILES/tls.crt'\nssl-key = 'FILES/tls.key'\n")}, none, io.Discard)
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return tidb.Run(ctx, log, server) })
}

func hostOf(t *testing.T, address string) string {
	t.Helper()
	host, _, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return host
}

func portOf(t *testing.T, address string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	return port
}

// TestSEC01StandInsSpeakTLS: what the suite runs in containers does not pass for secured if it
// is not.
func TestSEC01StandInsSpeakTLS(t *testing.T) {
	t.Parallel()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	other, err := pki.New(time.Now())
	require.NoError(t, err)
	s := &standins{dir: t.TempDir(), addresses: map[string]string{}, hosts: []string{"127.0.0.1"}}
	for _, what := range []string{"pd", "peer", "tikv", "tikv status", "flash", "proxy", "proxy status", "mysql", "tiproxy", "tiproxy api", "ticdc"} {
		s.at(t, what)
	}
	// TiDB's ports are at one address, and so are TiFlash's own.
	s.addresses["tidb status"], s.addresses["metrics"] = net.JoinHostPort(hostOf(t, s.at(t, "mysql")), "10080"), net.JoinHostPort(hostOf(t, s.at(t, "flash")), "8234")
	members, client, stranger := filepath.Join(s.dir, "members"), filepath.Join(s.dir, "client"), filepath.Join(s.dir, "stranger")
	issue(t, ca, members, append(s.hosts, serverName)...)
	issue(t, ca, client)
	issue(t, other, stranger)
	s.start(t)
	shown, strange := connecting(t, client), connecting(t, stranger)
	shown.ServerName = serverName
	strange.RootCAs, strange.ServerName = shown.RootCAs, serverName
	anonymous := shown.Clone()
	anonymous.Certificates = nil

	get := func(config *tls.Config, url string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		require.NoError(t, err)
		answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}}).Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, answer.Status)
		}
		return nil
	}
	proxy, err := tiproxy.ParseArgs([]string{"--config=" + s.file(t, "tiproxy.toml", fmt.Sprintf(`[proxy]
addr = '%s'
pd-addrs = '%s'
graceful-close-conn-timeout = 0
[api]
addr = '%s'
[security.server-http-tls]
ca = 'FILES/ca.crt'
cert = 'FILES/tls.crt'
key = 'FILES/tls.key'
[security.cluster-tls]
ca = 'FILES/ca.crt'
cert = 'FILES/tls.crt'
key = 'FILES/tls.key'
[security.server-tls]
cert = 'FILES/tls.crt'
key = 'FILES/tls.key'
[security.sql-tls]
ca = 'FILES/ca.crt'
cert = 'FILES/tls.crt'
key = 'FILES/tls.key'
`, s.at(t, "tiproxy"), s.at(t, "pd"), s.at(t, "tiproxy api")))}, io.Discard)
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return tiproxy.Run(ctx, slog.New(slog.DiscardHandler), proxy) })

	files := func(name string) string { return filepath.Join(members, name) }
	capture, err := ticdc.ParseArgs([]string{"server", "--addr=" + s.at(t, "ticdc"), "--advertise-addr=" + s.at(t, "ticdc"), "--pd=https://" + s.at(t, "pd"),
		"--ca=" + files("ca.crt"), "--cert=" + files("tls.crt"), "--key=" + files("tls.key")}, io.Discard)
	require.NoError(t, err)
	background(t, func(ctx context.Context) error { return ticdc.Run(ctx, slog.New(slog.DiscardHandler), capture) })

	for what, path := range map[string]string{
		"pd": "/pd/api/v1/members", "tikv status": "/status", "proxy status": "/tiflash/store-status", "tidb status": "/status", "tiproxy api": "/api/debug/health", "ticdc": "/status",
	} {
		address := s.at(t, what)
		require.Eventually(t, func() bool { return get(shown, "https://"+address+path) == nil }, timeout, 50*time.Millisecond, "%s", what)
		require.Error(t, get(anonymous, "https://"+address+path), "%s: who shows no certificate is answered nothing", what)
		require.Error(t, get(strange, "https://"+address+path), "%s: nor who shows one of another CA", what)
		require.Error(t, get(nil, "http://"+address+path), "%s: nor who asks in the clear", what)
	}
	ask := func(what string, config *tls.Config) (version string, err error) {
		login := mysql.NewConfig()
		login.User, login.Net, login.Addr, login.TLS, login.Logger = "root", "tcp", s.at(t, what), config, &mysql.NopLogger{}
		connector, err := mysql.NewConnector(login)
		require.NoError(t, err)
		db := sql.OpenDB(connector)
		defer func() { _ = db.Close() }()
		return version, db.QueryRowContext(t.Context(), "SELECT VERSION()").Scan(&version)
	}
	for _, what := range []string{"mysql", "tiproxy"} {
		require.Eventually(t, func() bool { _, err := ask(what, anonymous); return err == nil }, timeout, 50*time.Millisecond, "%s", what)
		unknown := anonymous.Clone()
		unknown.RootCAs = connecting(t, stranger).RootCAs
		_, err = ask(what, unknown)
		require.Error(t, err, "%s: another CA is noticed", what)
	}
	before := serial(t, s.at(t, "tikv status"), shown)
	issue(t, ca, members, append(s.hosts, serverName)...)
	assert.NotEqual(t, before, serial(t, s.at(t, "tikv status"), shown), "files are read for each connection")
}
