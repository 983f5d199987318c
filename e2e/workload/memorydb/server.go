package memorydb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strings"
	"sync"
	"testing"

	gms "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"
)

// Server is a server on loopback. Root logs in without a password.
type Server struct {
	// Address that it listens on, host:port.
	Address string

	server *server.Server
	ended  chan error
}

// TSO is what the server says that the time stamp of every transaction is, as TiDB does in a
// variable.
const (
	TSO        = "462000000000000001"
	currentTSO = "tidb_current_ts"
)

// release is what it says that it is, as TiDB does in a function.
const release = "Release Version: v8.5.7\nEdition: Community"

// provider adds TiDB's function to the databases.
type provider struct{ *memory.DbProvider }

// Function implements sql.FunctionProvider.
func (provider) Function(_ *sql.Context, name string) (sql.Function, bool) {
	if !strings.EqualFold(name, "tidb_version") {
		return nil, false
	}
	return sql.FunctionN{Name: name, Fn: func(...sql.Expression) (sql.Expression, error) {
		return expression.NewLiteral(release, types.LongText), nil
	}}, true
}

// Open starts a server that runs until it is closed.
func Open(ctx context.Context) (*Server, error) {
	logrus.SetOutput(io.Discard)
	data := memory.NewDBProvider()
	engine := gms.NewDefault(provider{data})
	sql.SystemVariables.AddSystemVariables([]sql.SystemVariable{&sql.MysqlSystemVariable{
		Name: currentTSO, Scope: sql.GetMysqlScope(sql.SystemVariableScope_Session), Type: types.NewSystemStringType(currentTSO), Default: TSO,
	}})
	edit := engine.Analyzer.Catalog.MySQLDb.Editor()
	engine.Analyzer.Catalog.MySQLDb.AddSuperUser(edit, "root", "%", "")
	edit.Close()
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	turns := func(e *gms.Engine, m *server.SessionManager, h mysql.Handler) (*gms.Engine, *server.SessionManager, mysql.Handler) {
		return e, m, &turns{Handler: h, free: make(chan struct{}, 1), holds: map[uint32]bool{}}
	}
	s, err := server.NewServer(server.Config{Protocol: "tcp", Address: l.Addr().String(), Listener: l, Options: []server.Option{turns}},
		engine, sql.NewContext, memory.NewSessionBuilder(data), nil)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the server: %w", err), l.Close())
	}
	out := &Server{Address: l.Addr().String(), server: s, ended: make(chan error, 1)}
	go func() { out.ended <- s.Start() }()
	return out, nil
}

// Close ends the server.
func (s *Server) Close() error {
	err := s.server.Close()
	<-s.ended //nolint:errcheck // what it says when it is closed does not matter
	return err
}

// Start runs a server until the test ends, and returns its address.
func Start(t testing.TB) string {
	t.Helper()
	s, err := Open(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s.Address
}

// turns lets one connection at a time run a statement or a transaction: a session of
// the engine in memory puts back every table that it has read when it commits, so that two at a
// time would undo each other's writes.
type turns struct {
	mysql.Handler
	free chan struct{} // full while a connection has the turn

	lock sync.Mutex
	// holds are the connections in a transaction.
	holds map[uint32]bool
}

var (
	begins = regexp.MustCompile(`(?i)^\s*(BEGIN|START\s+TRANSACTION)\b`)
	ends   = regexp.MustCompile(`(?i)^\s*(COMMIT|ROLLBACK)\b`)
)

// in runs a statement of a connection when it is the connection's turn.
func (s *turns) in(c *mysql.Conn, query string, run func() error) error {
	s.lock.Lock()
	holds := s.holds[c.ConnectionID]
	s.lock.Unlock()
	if !holds {
		s.free <- struct{}{}
	}
	err := run()
	holds = begins.MatchString(query) || holds && !ends.MatchString(query)
	s.lock.Lock()
	s.holds[c.ConnectionID] = holds
	s.lock.Unlock()
	if !holds {
		<-s.free
	}
	return err
}

// ComQuery implements mysql.Handler.
func (s *turns) ComQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) error {
	return s.in(c, query, func() error { return s.Handler.ComQuery(ctx, c, query, callback) })
}

// ComPrepare implements mysql.Handler.
func (s *turns) ComPrepare(ctx context.Context, c *mysql.Conn, query string, p *mysql.PrepareData) (fields []*querypb.Field, err error) {
	err = s.in(c, "", func() (err error) {
		fields, err = s.Handler.ComPrepare(ctx, c, query, p)
		return err
	})
	return fields, err
}

// ComStmtExecute implements mysql.Handler.
func (s *turns) ComStmtExecute(ctx context.Context, c *mysql.Conn, p *mysql.PrepareData, callback func(*sqltypes.Result) error) error {
	return s.in(c, p.PrepareStmt, func() error { return s.Handler.ComStmtExecute(ctx, c, p, callback) })
}

// ConnectionClosed implements mysql.Handler.
func (s *turns) ConnectionClosed(c *mysql.Conn) {
	s.Handler.ConnectionClosed(c)
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.holds[c.ConnectionID] {
		<-s.free
	}
	delete(s.holds, c.ConnectionID)
}
