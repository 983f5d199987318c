package tiproxy

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process/pdserver"
	"github.com/tidb-groups/tidb-groups/e2e/standin/tidb"
	"github.com/tidb-groups/tidb-groups/operators/tidbgroup/keyset"
	"github.com/tidb-groups/tidb-groups/shared/testkit/loopback"
)

const timeout = time.Minute

// fixed are servers that serve as a test says.
type fixed struct {
	mu  sync.Mutex
	all map[string]bool
}

func (f *fixed) Healthy() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.all)
}

func (f *fixed) stops(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, address)
}

// database is a proxy before two TiDB servers, and a client of it.
type database struct {
	proxy   *Proxy
	servers *fixed
	db      *sql.DB
	conn    *sql.Conn
	// stop ends the proxy, and end a server.
	stop context.CancelFunc
	end  map[string]context.CancelFunc
}

// begin starts a proxy before two servers, which have a key to sign tokens with if signs, and
// connects a client.
func begin(t *testing.T, signs bool) *database {
	t.Helper()
	config := ""
	if signs {
		config = withKey(t)
	}
	out := &database{servers: &fixed{all: map[string]bool{}}, end: map[string]context.CancelFunc{}}
	pd := pdserver.StartWithStore(t).Addr
	for range 2 {
		address, end := startTiDB(t, pd, config)
		out.servers.all[address], out.end[address] = true, end
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	out.proxy = NewProxy(slog.New(slog.DiscardHandler), out.servers)
	ctx, cancel := context.WithCancel(t.Context())
	out.stop = cancel
	ended := make(chan error, 1)
	go func() { ended <- out.proxy.Serve(ctx, l, time.Second) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	out.db = open(t, l.Addr().String())
	out.conn, err = out.db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = out.conn.Close() })
	return out
}

func open(t *testing.T, address string) *sql.DB {
	t.Helper()
	login := mysql.NewConfig()
	login.Net, login.Addr, login.User, login.Logger = "tcp", address, "root", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(login)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// withKey is a configuration of a TiDB with the key that the operator makes.
func withKey(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	secret, err := keyset.NewSigning(time.Now())
	require.NoError(t, err)
	for name, content := range secret {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	file := filepath.Join(dir, "tidb.toml")
	text := fmt.Sprintf("[security]\nsession-token-signing-cert = '%[1]s/tls.crt'\nsession-token-signing-key = '%[1]s/tls.key'\n", dir)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	return file
}

// startTiDB starts a stand-in of TiDB, waits until it serves, and returns its address and what
// ends it.
func startTiDB(t *testing.T, pd, config string) (address string, end context.CancelFunc) {
	t.Helper()
	host := loopback.Host(t)
	args := []string{"--store=tikv", "--path=" + pd, "--host=" + host, "--status-host=" + host, "--advertise-address=" + host, "--config=" + config}
	c, err := tidb.ParseArgs(args, func(string) string { return "" }, io.Discard)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tidb.Run(ctx, slog.New(slog.DiscardHandler), c) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	address = net.JoinHostPort(host, strconv.Itoa(c.Port))
	db := open(t, address)
	require.Eventually(t, func() bool { return db.PingContext(t.Context()) == nil }, timeout, 10*time.Millisecond)
	return address, cancel
}

// on is the server that the one client is served by.
func on(t *testing.T, p *Proxy) string {
	t.Helper()
	all := p.all()
	require.Len(t, all, 1)
	all[0].mu.Lock()
	defer all[0].mu.Unlock()
	return all[0].address
}

func answers(t *testing.T, conn *sql.Conn) {
	t.Helper()
	var n int
	var text string
	require.NoError(t, conn.QueryRowContext(t.Context(), "SELECT ?, ?", 7, `a'?"b`).Scan(&n, &text))
	assert.Equal(t, 7, n)
	assert.Equal(t, `a'?"b`, text)
}

func TestAConnectionIsMovedOffAServerThatIsAboutToStop(t *testing.T) {
	d := begin(t, true)
	answers(t, d.conn)
	first := on(t, d.proxy)
	d.servers.stops(first)
	require.Eventually(t, func() bool { return on(t, d.proxy) != first }, timeout, moveEvery)
	d.end[first]()
	answers(t, d.conn)
	assert.Equal(t, 1, d.proxy.Clients())
	second := on(t, d.proxy)
	d.servers.stops(second)
	answers(t, d.conn)
	assert.Equal(t, second, on(t, d.proxy), "the last server keeps those that it has")
}

func TestWithoutAKeyAConnectionStaysAndBreaksWithItsServer(t *testing.T) {
	d := begin(t, false)
	answers(t, d.conn)
	first := on(t, d.proxy)
	d.servers.stops(first)
	tries := func() bool { s := d.proxy.all()[0]; s.mu.Lock(); defer s.mu.Unlock(); return !s.stays.IsZero() }
	require.Eventually(t, tries, timeout, moveEvery, "it is tried to be moved")
	answers(t, d.conn)
	assert.Equal(t, first, on(t, d.proxy))
	d.end[first]()
	broken := func() bool { _, err := d.conn.ExecContext(t.Context(), "SELECT 1"); return err != nil }
	require.Eventually(t, broken, timeout, moveEvery)
	require.Eventually(t, func() bool { return d.proxy.Clients() == 0 }, timeout, moveEvery)
	again, err := d.db.Conn(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, again.Close()) }()
	answers(t, again)
	assert.NotEqual(t, first, on(t, d.proxy), "a new connection is served by the other server")
}

func TestATransactionStaysOnItsServer(t *testing.T) {
	d := begin(t, true)
	tx, err := d.conn.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	first := on(t, d.proxy)
	d.servers.stops(first)
	_, err = tx.ExecContext(t.Context(), "SELECT 1")
	require.NoError(t, err)
	assert.Equal(t, first, on(t, d.proxy))
	require.NoError(t, tx.Commit())
	require.Eventually(t, func() bool { return on(t, d.proxy) != first }, timeout, moveEvery)
	answers(t, d.conn)
}

func TestAProxyThatStopsEndsTransactionsFirst(t *testing.T) {
	d := begin(t, true)
	tx, err := d.conn.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	d.stop()
	_, err = tx.ExecContext(context.WithoutCancel(t.Context()), "SELECT 1")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.Eventually(t, func() bool { return d.proxy.Clients() == 0 }, timeout, moveEvery)
}
