package conformance_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/operators/pdgroup/resign"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/sqlrun"
	"github.com/tidb-groups/tidb-groups/shared/hook"
	"github.com/tidb-groups/tidb-groups/shared/httpclient"
	"github.com/tidb-groups/tidb-groups/shared/pd"
	"github.com/tidb-groups/tidb-groups/shared/pdclient"
	"github.com/tidb-groups/tidb-groups/shared/settings"
	"github.com/tidb-groups/tidb-groups/shared/testkit/binaries"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
	"github.com/tidb-groups/tidb-groups/shared/testkit/pki"
)

// serverName is what the certificates of the real servers are called.
const serverName = "a-0.a-peer.shop.svc"

// onlyReal skips a test unless real servers are asked for.
func onlyReal(t *testing.T) {
	t.Helper()
	if os.Getenv(realEnv) != "real" {
		t.Skip("real servers are asked for by " + realEnv + "=real, as make conformance sets it")
	}
}

// issue writes a certificate into a folder, as the kubelet writes a Secret.
func issue(t *testing.T, ca *pki.CA, dir string, names ...string) {
	t.Helper()
	issueAs(t, ca, dir, "", names...)
}

// issueAs is issue with a common name.
func issueAs(t *testing.T, ca *pki.CA, dir, common string, names ...string) {
	t.Helper()
	data, err := ca.Secret(pki.Leaf{Names: names, Common: common})
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	for name, content := range data {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".new"), content, 0o600))
		require.NoError(t, os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)))
	}
}

// connecting is how who has the certificate of a folder connects.
func connecting(t *testing.T, dir string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	require.NoError(t, err)
	ca, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	require.NoError(t, err)
	out := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: x509.NewCertPool(), ServerName: serverName}
	out.RootCAs.AppendCertsFromPEM(ca)
	return out
}

// serial is that of the certificate that a server shows at an address.
func serial(t *testing.T, address string, config *tls.Config) string {
	t.Helper()
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// run runs a program until the test ends, and shows the end of its log if that fails.
func run(t *testing.T, name, program string, args ...string) {
	t.Helper()
	out, err := os.Create(filepath.Join(t.TempDir(), name))
	require.NoError(t, err)
	process := exec.CommandContext(t.Context(), program, args...) //nolint:gosec // a program of the cache
	process.Dir, process.Stdout, process.Stderr = filepath.Dir(out.Name()), out, out
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Wait() // the context has ended
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", name, tail(out.Name(), 20))
		}
	})
}

// The flags and keys are those of the golden rendering of a PDGroup with spec.tls.
func TestSEC01ARealPDSpeaksTLSAndTakesRenewedCertificates(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	dir := t.TempDir()
	members, client := filepath.Join(dir, "members"), filepath.Join(dir, "client")
	clients, peers, cluster, hosts := map[string]string{}, map[string]string{}, []string{}, []string{serverName}
	for _, name := range memberNames {
		clients[name], peers[name] = loopback.Address(t), loopback.Address(t)
		cluster = append(cluster, name+"=https://"+peers[name])
		for _, address := range []string{clients[name], peers[name]} {
			host, _, err := net.SplitHostPort(address)
			require.NoError(t, err)
			hosts = append(hosts, host)
		}
	}
	hosts = append(hosts, "127.0.0.1")
	issue(t, ca, members, hosts...)
	issue(t, ca, client)
	config := filepath.Join(dir, "pd.toml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, "[security]\ncacert-path = '%[1]s/ca.crt'\ncert-path = '%[1]s/tls.crt'\nkey-path = '%[1]s/tls.key'\n", members), 0o600))
	program, err := binaries.Path(t.Context(), "pd-server")
	require.NoError(t, err)
	for _, name := range memberNames {
		run(t, name, program, "--name="+name, "--data-dir="+filepath.Join(dir, name), "--client-urls=https://"+clients[name], "--advertise-client-urls=https://"+clients[name],
			"--peer-urls=https://"+peers[name], "--advertise-peer-urls=https://"+peers[name], "--config="+config, "--initial-cluster="+strings.Join(cluster, ","))
	}
	shown := connecting(t, client)
	operator := func(name string) pd.Client {
		c, err := pdclient.NewDialer("http://"+clients[name], pdclient.WithTLS(func(types.NamespacedName) (*tls.Config, error) { return shown, nil }))(types.NamespacedName{})
		require.NoError(t, err)
		return c
	}
	var view pd.View
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		view, err = operator(memberNames[0]).View(ctx)
		return err == nil && len(view.Members) == len(memberNames) && view.Leader != ""
	}, timeout, 100*time.Millisecond, "three members bootstrap a cluster over TLS: %v", err)
	assert.True(t, strings.HasPrefix(view.Members[0].ClientURL, "https://"))
	_, err = operator(memberNames[1]).Servers(t.Context())
	require.NoError(t, err, "PD's etcd, through its gateway")

	// The hook of the member that leads shows the members' certificate.
	leader := view.Leader
	job := resign.Job{PD: "https://" + clients[leader], Name: leader, TLS: hook.TLS{Dir: members, ServerName: serverName}}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	require.NoError(t, job.Stop(ctx))
	require.Eventually(t, func() bool {
		view, err = operator(leader).View(t.Context())
		return err == nil && view.Leader != "" && view.Leader != leader
	}, timeout, 100*time.Millisecond, "another member leads")

	anonymous := shown.Clone()
	anonymous.Certificates = nil
	c, err := pdclient.NewDialer("http://"+clients[leader], pdclient.WithTLS(func(types.NamespacedName) (*tls.Config, error) { return anonymous, nil }))(types.NamespacedName{})
	require.NoError(t, err)
	_, err = c.View(t.Context())
	require.Error(t, err, "who shows no certificate gets nothing")

	// What docs/tasks/tls.md says of renewed certificates.
	before := map[string]string{}
	for _, name := range memberNames {
		before[name] = serial(t, clients[name], shown)
	}
	issue(t, ca, members, hosts...)
	for _, name := range memberNames {
		assert.NotEqual(t, before[name], serial(t, clients[name], shown), "PD reads the files for each connection")
	}
	_, err = operator(leader).View(t.Context())
	require.NoError(t, err, "members still know each other")
}

// realTiDB is a real TiDB with data of its own, in memory.
type realTiDB struct{ dir, host, port, statusHost, statusPort string }

// newTiDB chooses the addresses of a TiDB.
func newTiDB(t *testing.T, dir string) realTiDB {
	t.Helper()
	out := realTiDB{dir: dir}
	var err error
	out.host, out.port, err = net.SplitHostPort(loopback.Address(t))
	require.NoError(t, err)
	out.statusHost, out.statusPort, err = net.SplitHostPort(loopback.Address(t))
	require.NoError(t, err)
	return out
}

// run starts it with a configuration.
func (s realTiDB) run(t *testing.T, toml string) {
	t.Helper()
	config := filepath.Join(s.dir, "tidb.toml")
	require.NoError(t, os.WriteFile(config, []byte(toml), 0o600))
	program, err := binaries.Path(t.Context(), "tidb-server")
	require.NoError(t, err)
	run(t, "tidb", program, "--store=unistore", "--path="+filepath.Join(s.dir, "data"), "--host="+s.host, "-P="+s.port, "--status-host="+s.statusHost, "--status="+s.statusPort,
		"--advertise-address="+s.host, "--config="+config, "--socket=")
}

// settings asks its status port, as the operators do; nil is without TLS.
func (s realTiDB) settings(t *testing.T, shown *tls.Config) (map[string]any, error) {
	t.Helper()
	number, err := strconv.Atoi(s.statusPort)
	require.NoError(t, err)
	return settings.Port(number).Get(httpclient.WithTLS(t.Context(), shown), s.statusHost, "/settings") //nolint:gosec // a port
}

// The keys are those of the golden rendering of a TiDBGroup with spec.tls.mysql; the data is
// TiDB's own, in memory.
func TestDB12ARealTiDBSpeaksTLSWithMySQLClientsAndOnItsStatusPort(t *testing.T) {
	onlyReal(t)
	t.Parallel()
	ca, err := pki.New(time.Now())
	require.NoError(t, err)
	dir := t.TempDir()
	inside, outside, client := filepath.Join(dir, "inside"), filepath.Join(dir, "outside"), filepath.Join(dir, "client")
	server := newTiDB(t, dir)
	issue(t, ca, inside, serverName)
	issue(t, ca, outside, server.host)
	issue(t, ca, client)
	server.run(t, fmt.Sprintf(`[security]
cluster-ssl-ca = '%[1]s/ca.crt'
cluster-ssl-cert = '%[1]s/tls.crt'
cluster-ssl-key = '%[1]s/tls.key'
ssl-ca = '%[2]s/ca.crt'
ssl-cert = '%[2]s/tls.crt'
ssl-key = '%[2]s/tls.key'
`, inside, outside))

	statement := filepath.Join(dir, "run.sql")
	require.NoError(t, os.WriteFile(statement, []byte("SET GLOBAL require_secure_transport = ON"), 0o600))
	job := sqlrun.Run{Address: net.JoinHostPort(server.host, server.port), User: "root", TLS: outside, File: statement, Of: "a file", Within: 2 * timeout, Pause: time.Second}
	_, err = job.Do(t.Context())
	require.NoError(t, err, "the program of spec.sql")

	plain := mysql.NewConfig()
	plain.User, plain.Net, plain.Addr = "root", "tcp", job.Address
	db, err := sql.Open("mysql", plain.FormatDSN())
	require.NoError(t, err)
	defer func() { _ = db.Close() }()
	require.ErrorContains(t, db.PingContext(t.Context()), "insecure transport", "what docs/tasks/tls.md says of clients that have to")

	shown := connecting(t, client)
	document, err := server.settings(t, shown)
	require.NoError(t, err)
	assert.NotEmpty(t, document)
	_, err = server.settings(t, nil)
	require.Error(t, err, "it is not served in the clear")

	// What docs/tasks/tls.md says of renewed certificates.
	address := net.JoinHostPort(server.statusHost, server.statusPort)
	before := serial(t, address, shown)
	issue(t, ca, inside, serverName)
	assert.NotEqual(t, before, serial(t, address, shown), "TiDB reads the files of the cluster's side for each connection")
	first := askedAs(t, job.Address, shown.Certificates)
	issue(t, ca, outside, server.host)
	assert.Equal(t, first, askedAs(t, job.Address, shown.Certificates), "TiDB keeps what it shows to MySQL clients")
	require.NoError(t, os.WriteFile(statement, []byte("ALTER INSTANCE RELOAD TLS"), 0o600))
	_, err = job.Do(t.Context())
	require.NoError(t, err)
	assert.NotEqual(t, first, askedAs(t, job.Address, shown.Certificates), "until it is told")
	assert.Empty(t, askedAs(t, job.Address, nil), "with a CA for clients, require_secure_transport wants a certificate of each")
	_, err = job.Do(t.Context())
	require.NoError(t, err, "a Job shows the servers' own")
}

// askedAs is the serial number of the certificate that a TiDB shows to a MySQL client, empty
// if it lets it do nothing.
func askedAs(t *testing.T, address string, certificates []tls.Certificate) string {
	t.Helper()
	shown := ""
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.Logger = "root", "tcp", address, &mysql.NopLogger{}
	config.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: certificates, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error { //nolint:gosec // who it is is what is asked
		shown = s.PeerCertificates[0].SerialNumber.String()
		return nil
	}}
	connector, err := mysql.NewConnector(config)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }()
	if db.PingContext(t.Context()) != nil {
		return ""
	}
	return shown
}
