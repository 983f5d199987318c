package tidb

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// interceptor sees every statement of every client: it counts those that run,
// logs the slow ones and hands those that write to the journal.
type interceptor struct {
	log      *slog.Logger
	journal  *journal
	slow     *slowLog
	one      *sync.Mutex
	sessions func() *server.SessionManager
	signing  signing
	running  atomic.Int64
	total    atomic.Int64
}

// Priority implements server.Interceptor; there is only this one.
func (i *interceptor) Priority() int { return 0 }

func (i *interceptor) around(ctx context.Context, c *mysql.Conn, query string, statement func() string, run func() error) error {
	i.running.Add(1)
	i.total.Add(1)
	defer i.running.Add(-1)
	database, err := currentDatabase(ctx, i.sessions(), c)
	if err != nil {
		return err
	}
	start := time.Now()
	if mustRunAlone(query) {
		// Also while it is logged, so that the log has the order of running.
		i.one.Lock()
		defer i.one.Unlock()
	}
	if err = run(); err != nil {
		return err
	}
	text := statement()
	i.slow.write(c, database, text, time.Since(start))
	if needsLogging(text) {
		return i.journal.append(ctx, database, text)
	}
	return nil
}

// currentDatabase makes the connection's session if need be. The library makes
// one only when a client names its database at login or runs its first
// statement, and panics when asked earlier.
func currentDatabase(ctx context.Context, sessions *server.SessionManager, c *mysql.Conn) (string, error) {
	session, err := sessions.NewContextWithQuery(ctx, c, "")
	if err != nil {
		return "", fmt.Errorf("make session: %w", err)
	}
	return session.GetCurrentDatabase(), nil
}

// withSessions gives a connection its session before the library resets it.
type withSessions struct {
	mysql.Handler
	sessions *server.SessionManager
}

// ComResetConnection implements mysql.Handler.
func (h withSessions) ComResetConnection(c *mysql.Conn) error {
	if _, err := currentDatabase(context.Background(), h.sessions, c); err != nil {
		return err
	}
	return h.Handler.ComResetConnection(c)
}

// Query implements server.Interceptor.
func (i *interceptor) Query(ctx context.Context, chain server.Chain, c *mysql.Conn, query string,
	callback func(res *sqltypes.Result, more bool) error,
) error {
	if showStates.MatchString(query) {
		return i.showStates(ctx, c, callback)
	}
	query = rewriteStatement(query)
	return i.around(ctx, c, query, func() string { return query }, func() error { return chain.ComQuery(ctx, c, query, callback) })
}

// ParsedQuery implements server.Interceptor.
func (i *interceptor) ParsedQuery(chain server.Chain, c *mysql.Conn, query string, _ sqlparser.Statement,
	callback func(res *sqltypes.Result, more bool) error,
) error {
	return i.Query(context.Background(), chain, c, query, callback)
}

// MultiQuery implements server.Interceptor.
func (i *interceptor) MultiQuery(ctx context.Context, chain server.Chain, c *mysql.Conn, query string,
	callback func(res *sqltypes.Result, more bool) error,
) (rest string, err error) {
	if showStates.MatchString(query) {
		return "", i.showStates(ctx, c, callback)
	}
	query = rewriteStatement(query)
	err = i.around(ctx, c, query, func() string { return strings.TrimSuffix(query, rest) }, func() (err error) {
		rest, err = chain.ComMultiQuery(ctx, c, query, callback)
		return err
	})
	return rest, err
}

// showStates answers what the engine has no words for.
func (i *interceptor) showStates(ctx context.Context, c *mysql.Conn, callback func(res *sqltypes.Result, more bool) error) error {
	database, err := currentDatabase(ctx, i.sessions(), c)
	if err != nil {
		return err
	}
	result, err := i.signing.states(c, database)
	if err != nil {
		return err
	}
	return callback(result, false)
}

// Prepare implements server.Interceptor.
func (i *interceptor) Prepare(ctx context.Context, chain server.Chain, c *mysql.Conn, query string,
	prepare *mysql.PrepareData,
) ([]*querypb.Field, error) {
	i.one.Lock()
	defer i.one.Unlock()
	return chain.ComPrepare(ctx, c, query, prepare)
}

// StmtExecute implements server.Interceptor. The statement is written out with
// its arguments, since others have not prepared it.
func (i *interceptor) StmtExecute(ctx context.Context, chain server.Chain, c *mysql.Conn, prepare *mysql.PrepareData,
	callback func(*sqltypes.Result) error,
) error {
	written := prepare.PrepareStmt
	if parsed, err := sqlparser.Parse(written); err == nil && needsLogging(written) {
		text, err := sqlparser.NewParsedQuery(parsed).GenerateQuery(prepare.BindVars, nil)
		if err != nil {
			return fmt.Errorf("write statement out: %w", err)
		}
		written = text
	}
	return i.around(ctx, c, written, func() string { return written }, func() error { return chain.ComStmtExecute(ctx, c, prepare, callback) })
}

// slowLog is the file of slow statements, in TiDB's form.
type slowLog struct {
	log       *slog.Logger
	threshold time.Duration

	mu   sync.Mutex
	file *os.File // nil means that none is kept
}

// openSlowLog makes the file; an empty path means no slow log.
func openSlowLog(log *slog.Logger, path string, threshold time.Duration) (*slowLog, error) {
	s := &slowLog{log: log, threshold: threshold}
	if path == "" {
		return s, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the slow log's directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open slow log: %w", err)
	}
	s.file = f
	return s, nil
}

func (s *slowLog) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

func (s *slowLog) write(c *mysql.Conn, database, statement string, took time.Duration) {
	if s.file == nil || took < s.threshold {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	statement = strings.TrimRight(strings.TrimSpace(statement), ";")
	_, err := fmt.Fprintf(s.file, "# Time: %s\n# Conn_ID: %d\n# User@Host: %s[%s] @ %s\n# Query_time: %.9f\n# DB: %s\n# Is_internal: false\n# Succ: true\n%s;\n",
		time.Now().Format(time.RFC3339Nano), c.ConnectionID, c.User, c.User, c.RemoteAddr(), took.Seconds(), database, statement)
	if err != nil {
		s.log.Warn("slow log not written", "error", err)
	}
}
