package tiproxy

import (
	"context"
	"database/sql"
	"log/slog"
	"maps"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/tidb-groups/tidb-groups/e2e/workload/memorydb"
)

const patience = 20 * time.Second

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

// begin starts a proxy before two servers, and connects a client.
func begin(t *testing.T) (*Proxy, *fixed, *sql.Conn, context.CancelFunc) {
	t.Helper()
	servers := &fixed{all: map[string]bool{memorydb.Start(t): true, memorydb.Start(t): true}}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := NewProxy(slog.New(slog.DiscardHandler), servers)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Serve(ctx, l, time.Second) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-ended) })
	login := mysql.NewConfig()
	login.Net, login.Addr, login.User = "tcp", l.Addr().String(), "root"
	connector, err := mysql.NewConnector(login)
	require.NoError(t, err)
	db := sql.OpenDB(connector)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(); _ = db.Close() })
	return p, servers, conn, cancel
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
	p, servers, conn, _ := begin(t)
	answers(t, conn)
	first := on(t, p)
	servers.stops(first)
	require.Eventually(t, func() bool { return on(t, p) != first }, patience, moveEvery)
	answers(t, conn)
	assert.Equal(t, 1, p.Clients())
	second := on(t, p)
	servers.stops(second)
	answers(t, conn)
	assert.Equal(t, second, on(t, p), "the last server keeps those that it has")
}

func TestATransactionStaysOnItsServer(t *testing.T) {
	p, servers, conn, _ := begin(t)
	tx, err := conn.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	first := on(t, p)
	servers.stops(first)
	_, err = tx.ExecContext(t.Context(), "SELECT 1")
	require.NoError(t, err)
	assert.Equal(t, first, on(t, p))
	require.NoError(t, tx.Commit())
	require.Eventually(t, func() bool { return on(t, p) != first }, patience, moveEvery)
	answers(t, conn)
}

func TestAProxyThatStopsEndsTransactionsFirst(t *testing.T) {
	p, _, conn, stop := begin(t)
	tx, err := conn.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	stop()
	_, err = tx.ExecContext(context.WithoutCancel(t.Context()), "SELECT 1")
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	require.Eventually(t, func() bool { return p.Clients() == 0 }, patience, moveEvery)
}

func TestAServerThatHasGoneIsAnErrorOfOneStatement(t *testing.T) {
	p, servers, conn, _ := begin(t)
	answers(t, conn)
	for _, s := range p.all() {
		s.mu.Lock()
		s.server.Close()
		s.mu.Unlock()
	}
	_, err := conn.ExecContext(t.Context(), "SELECT 1")
	require.Error(t, err)
	answers(t, conn)
	for address := range servers.Healthy() {
		servers.stops(address)
	}
}
