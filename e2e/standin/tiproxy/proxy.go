package tiproxy

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/tidb-groups/tidb-groups/e2e/standin/process"
)

// moveEvery is how often idle sessions are looked at.
const moveEvery = 100 * time.Millisecond

// Proxy serves clients by servers.
type Proxy struct {
	log     *slog.Logger
	servers Servers
	// clients are served with secured over TLS if they want it, and servers are asked with
	// files if they offer it; nil and none without.
	secured *tls.Config
	files   process.Files

	mu       sync.Mutex
	sessions map[*mysql.Conn]*session
}

var _ mysql.Handler = &Proxy{}

// NewProxy returns a proxy without connections.
func NewProxy(log *slog.Logger, servers Servers) *Proxy {
	return &Proxy{log: log, servers: servers, sessions: map[*mysql.Conn]*session{}}
}

// Over has clients served over TLS, and servers asked so.
func (p *Proxy) Over(clients *tls.Config, servers process.Files) *Proxy {
	p.secured, p.files = clients, servers
	return p
}

// Serve takes connections until ctx ends. Then each ends between two transactions, and all
// that are left after closing.
func (p *Proxy) Serve(ctx context.Context, l net.Listener, closing time.Duration) error {
	listener, err := mysql.NewFromListener(l, mysql.NewAuthServerNone(), p, 0, 0)
	if err != nil {
		return fmt.Errorf("listen for MySQL: %w", err)
	}
	listener.TLSConfig = p.secured
	go listener.Accept() // until it is closed
	for process.WaitFor(ctx, moveEvery) == nil {
		for _, s := range p.all() {
			s.move(ctx, p)
		}
	}
	listener.Close()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), closing)
	defer cancel()
	for p.Clients() > 0 && process.WaitFor(stop, moveEvery) == nil {
		p.hangUp(func(s *session) bool { return !s.inTransaction })
	}
	p.hangUp(func(*session) bool { return true })
	return nil
}

// hangUp ends the connections of the sessions that are wanted.
func (p *Proxy) hangUp(wanted func(*session) bool) {
	p.mu.Lock()
	all := maps.Clone(p.sessions)
	p.mu.Unlock()
	for conn, s := range all {
		if s.mu.TryLock() {
			if wanted(s) {
				conn.Close()
			}
			s.mu.Unlock()
		}
	}
}

// Clients counts those that are connected.
func (p *Proxy) Clients() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.sessions)
}

func (p *Proxy) all() []*session {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Values(p.sessions))
}

// choose returns the server with the fewest sessions that serves, another one than not;
// empty if there is none.
func (p *Proxy) choose(not string) string {
	p.mu.Lock()
	count := map[string]int{}
	for _, s := range p.sessions {
		if s.mu.TryLock() {
			count[s.address]++
			s.mu.Unlock()
		}
	}
	p.mu.Unlock()
	best := ""
	for _, address := range slices.Sorted(maps.Keys(p.servers.Healthy())) {
		if address != not && (best == "" || count[address] < count[best]) {
			best = address
		}
	}
	return best
}

func (p *Proxy) session(c *mysql.Conn) *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.sessions[c]; s != nil {
		return s
	}
	return &session{closed: true}
}

// NewConnection implements mysql.Handler.
func (p *Proxy) NewConnection(c *mysql.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sessions[c] = &session{}
}

// ConnectionClosed implements mysql.Handler.
func (p *Proxy) ConnectionClosed(c *mysql.Conn) {
	s := p.session(c)
	p.mu.Lock()
	delete(p.sessions, c)
	p.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.leave()
}

// ConnectionAborted implements mysql.Handler.
func (p *Proxy) ConnectionAborted(c *mysql.Conn, _ string) error {
	p.ConnectionClosed(c)
	return nil
}

// ComInitDB implements mysql.Handler.
func (p *Proxy) ComInitDB(c *mysql.Conn, db string) error {
	s := p.session(c)
	s.mu.Lock()
	s.user, s.db = c.User, db
	connected := s.server != nil
	s.mu.Unlock()
	if !connected {
		return nil
	}
	_, err := s.query(context.Background(), p, c, "USE `"+strings.ReplaceAll(db, "`", "``")+"`")
	return err
}

// ComQuery implements mysql.Handler.
func (p *Proxy) ComQuery(ctx context.Context, c *mysql.Conn, query string, answer mysql.ResultSpoolFn) error {
	s := p.session(c)
	s.mu.Lock()
	s.user = c.User
	s.mu.Unlock()
	result, err := s.query(ctx, p, c, query)
	if err != nil {
		return err
	}
	return answer(result, false)
}

// ComMultiQuery implements mysql.Handler: all of it is one.
func (p *Proxy) ComMultiQuery(ctx context.Context, c *mysql.Conn, query string, answer mysql.ResultSpoolFn) (string, error) {
	return "", p.ComQuery(ctx, c, query, answer)
}

// ComPrepare implements mysql.Handler: the text is kept.
func (*Proxy) ComPrepare(context.Context, *mysql.Conn, string, *mysql.PrepareData) ([]*querypb.Field, error) {
	return nil, nil
}

// ComStmtExecute implements mysql.Handler: values are put into the text.
func (p *Proxy) ComStmtExecute(ctx context.Context, c *mysql.Conn, prepare *mysql.PrepareData, answer func(*sqltypes.Result) error) error {
	text, err := fillStatement(prepare)
	if err != nil {
		return err
	}
	return p.ComQuery(ctx, c, text, func(r *sqltypes.Result, _ bool) error { return answer(r) })
}

var errValues = errors.New("a prepared statement has another number of values")

// fillStatement puts the values of a prepared statement into its text.
func fillStatement(prepare *mysql.PrepareData) (string, error) {
	var out strings.Builder
	quote, n := rune(0), 0
	for _, r := range prepare.PrepareStmt {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && strings.ContainsRune("'\"`", r):
			quote = r
		case quote == 0 && r == '?':
			n++
			bound := prepare.BindVars[fmt.Sprintf("v%d", n)]
			if bound == nil {
				return "", errValues
			}
			value, err := sqltypes.BindVariableToValue(bound)
			if err != nil {
				return "", fmt.Errorf("read a value: %w", err)
			}
			value.EncodeSQL(&out)
			continue
		}
		out.WriteRune(r)
	}
	return out.String(), nil
}

// WarningCount implements mysql.Handler.
func (*Proxy) WarningCount(*mysql.Conn) uint16 { return 0 }

// ComResetConnection implements mysql.Handler: the next statement has another connection to
// a server.
func (p *Proxy) ComResetConnection(c *mysql.Conn) error {
	s := p.session(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
	return nil
}

// ParserOptionsForConnection implements mysql.Handler.
func (*Proxy) ParserOptionsForConnection(*mysql.Conn) (sqlparser.ParserOptions, error) {
	return sqlparser.ParserOptions{}, nil
}
