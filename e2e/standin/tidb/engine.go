package tidb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"

	gms "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/go-mysql-server/sql/variables"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// replayUser runs what other servers logged. It is locked: no client logs in as it.
const replayUser = "stand-in"

// engine is the SQL side of the server.
type engine struct {
	log     *slog.Logger
	gms     *gms.Engine
	data    *memory.DbProvider
	version string
	open    *connections
	pids    atomic.Uint64
	// one lets statements on tables run one by one: a session of the engine in
	// memory puts back every table that it has read, so that two at a time
	// would undo each other's writes.
	one    sync.Mutex
	replay *memory.Session // runs what other servers logged
}

// provider adds TiDB's functions to the databases in memory.
type provider struct {
	*memory.DbProvider
	functions map[string]sql.Function
}

// Function implements sql.FunctionProvider.
func (p provider) Function(_ *sql.Context, name string) (sql.Function, bool) {
	f, ok := p.functions[strings.ToLower(name)]
	return f, ok
}

func constantFunction(name, value string) sql.Function {
	return sql.FunctionN{Name: name, Fn: func(...sql.Expression) (sql.Expression, error) {
		return expression.NewLiteral(value, types.LongText), nil
	}}
}

// newEngine makes the databases and the root account of a new TiDB: root may
// log in from anywhere without a password, or not at all when secure is set.
func newEngine(log *slog.Logger, c *Config) (*engine, error) {
	data := memory.NewDBProvider(memory.NewDatabase("test"), memory.NewDatabase("sys"), memory.NewDatabase("METRICS_SCHEMA"))
	version := c.ServerVersion()
	e := &engine{log: log, data: data, version: version, open: &connections{all: map[net.Conn]struct{}{}}}
	e.gms = gms.NewDefault(provider{DbProvider: data, functions: map[string]sql.Function{
		"version":      constantFunction("version", version),
		"tidb_version": constantFunction("tidb_version", tidbVersion(c.Version)),
	}})
	if sql.SystemVariables == nil {
		variables.InitSystemVariables()
	}
	sql.SystemVariables.AddSystemVariables(systemVariables())
	comment := "TiDB Server (stand-in) " + c.Version
	if err := sql.SystemVariables.AssignValues(map[string]any{"version": version, "version_comment": comment}); err != nil {
		return nil, fmt.Errorf("set system variables: %w", err)
	}
	accounts := e.gms.Analyzer.Catalog.MySQLDb
	accounts.SetPersister(&mysql_db.NoopPersister{})
	edit := accounts.Editor()
	if c.Secure {
		accounts.AddSuperUser(edit, "root", "localhost", "")
	} else {
		accounts.AddSuperUser(edit, "root", "%", "")
	}
	accounts.AddLockedSuperUser(edit, replayUser, "localhost", "")
	edit.Close()
	client := sql.Client{User: replayUser, Address: "localhost"}
	e.replay = memory.NewSession(sql.NewBaseSessionWithClientServer("", client, 0), data)
	return e, nil
}

// systemVariables are those of TiDB that scripts set most; they do nothing.
func systemVariables() []sql.SystemVariable {
	var all []sql.SystemVariable
	for name, value := range map[string]string{
		"tidb_gc_life_time": "10m0s", "tidb_gc_run_interval": "10m0s", "tidb_mem_quota_query": "1073741824",
		"tidb_server_memory_limit": "80%", "tidb_enable_clustered_index": "ON", "tidb_txn_mode": "pessimistic",
		"tidb_slow_log_threshold": "300", "tidb_enable_slow_log": "ON", "tidb_general_log": "OFF",
		"tidb_multi_statement_mode": "OFF", "tidb_enable_resource_control": "ON", "tidb_enable_tiflash_read_for_write_stmt": "ON",
		"tidb_allow_mpp": "ON", "tidb_isolation_read_engines": "tikv,tiflash,tidb", "tidb_max_chunk_size": "1024",
		"tidb_distsql_scan_concurrency": "15", "tidb_ddl_enable_fast_reorg": "ON", "tidb_ddl_reorg_worker_cnt": "4",
		"tidb_enable_auto_analyze": "ON", "tidb_analyze_version": "2", "tidb_stmt_summary_max_stmt_count": "3000",
		"tidb_enable_telemetry": "OFF", "tidb_row_format_version": "2", "tidb_retry_limit": "10",
		"tidb_disable_txn_auto_retry": "ON", "tidb_replica_read": "leader", "tidb_service_scope": "",
		"tidb_enable_1pc": "ON", "tidb_enable_async_commit": "ON", "tidb_scatter_region": "",
	} {
		all = append(all, &sql.MysqlSystemVariable{
			Name: name, Scope: sql.GetMysqlScope(sql.SystemVariableScope_Both), Dynamic: true,
			Type: types.NewSystemStringType(name), Default: value,
		})
	}
	return all
}

// run executes a script as the replaying user and reads every result.
func (e *engine) run(ctx context.Context, database, script string) error {
	e.one.Lock()
	defer e.one.Unlock()
	e.replay.SetCurrentDatabase(database)
	parts, err := sqlparser.SplitStatementToPieces(script)
	if err != nil {
		return fmt.Errorf("split script: %w", err)
	}
	for _, statement := range parts {
		statement = rewriteStatement(statement)
		if strings.TrimSpace(statement) == "" {
			continue
		}
		one := sql.NewContext(ctx, sql.WithSession(e.replay), sql.WithPid(e.pids.Add(1)), sql.WithQuery(statement))
		_, rows, _, err := e.gms.Query(one, statement)
		if err != nil {
			return fmt.Errorf("run %.80q: %w", statement, err)
		}
		for err == nil {
			_, err = rows.Next(one)
		}
		if !errors.Is(err, io.EOF) {
			return fmt.Errorf("run %.80q: %w", statement, err)
		}
		if err := rows.Close(one); err != nil {
			return fmt.Errorf("run %.80q: %w", statement, err)
		}
	}
	return nil
}

var setPassword = regexp.MustCompile(`(?is)^\s*SET\s+PASSWORD\s+FOR\s+(\S+)\s*=\s*(?:PASSWORD\()?('[^']*')\)?`)

var transaction = regexp.MustCompile(`(?is)^\s*(BEGIN|START\s+TRANSACTION|COMMIT|ROLLBACK|SET\s+(SESSION\s+|@@)?autocommit\s*=)[^;]*`)

// rewriteStatement says in the engine's words what it has no words for, and makes each
// statement of a transaction take effect at once: an open one would hold old
// copies of tables, and put them back at its end.
func rewriteStatement(statement string) string {
	statement = transaction.ReplaceAllString(statement, "SET @stand_in_transaction = 1")
	return setPassword.ReplaceAllString(statement, "ALTER USER $1 IDENTIFIED BY $2")
}

var firstWords = regexp.MustCompile(`(?is)^(?:\s|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n|\()*([a-z]+)(?:\s+([a-z]+))?`)

// needsLogging tells whether a statement has to be logged for the other servers.
func needsLogging(statement string) bool {
	m := firstWords.FindStringSubmatch(statement)
	if m == nil {
		return false
	}
	second := strings.ToUpper(m[2])
	switch strings.ToUpper(m[1]) {
	case "INSERT", "UPDATE", "DELETE", "REPLACE", "TRUNCATE", "RENAME", "GRANT", "REVOKE", "ALTER", "DROP":
		return second != "TEMPORARY"
	case "CREATE":
		return second != "TEMPORARY"
	case "SET":
		return second == "GLOBAL" || second == "PASSWORD" || second == "PERSIST"
	default:
		return false
	}
}

var tables = regexp.MustCompile(`(?i)\b(FROM|JOIN|TABLES?|DESC|DESCRIBE|EXPLAIN|SHOW|USE)\b`)

// mustRunAlone tells whether a statement has to run alone.
func mustRunAlone(statement string) bool {
	return needsLogging(statement) || tables.MatchString(statement)
}

// listen makes the MySQL server on l, which offers TLS if there is a configuration. What in
// sees of each statement is its business.
func (e *engine) listen(l net.Listener, secured *tls.Config, in server.Interceptor) (*server.Server, error) {
	chain := &server.InterceptorChain{}
	chain.WithInterceptor(in)
	sessions := func(e *gms.Engine, m *server.SessionManager, h mysql.Handler) (*gms.Engine, *server.SessionManager, mysql.Handler) {
		return e, m, withSessions{Handler: h, sessions: m}
	}
	s, err := server.NewServer(server.Config{
		Protocol: "tcp", Address: l.Addr().String(), Listener: e.open.wrap(l), Version: e.version,
		AllowClearTextWithoutTLS: true, TLSConfig: secured, Options: []server.Option{chain.Option(), sessions},
	}, e.gms, sql.NewContext, memory.NewSessionBuilder(e.data), nil)
	if err != nil {
		return nil, fmt.Errorf("make MySQL server: %w", err)
	}
	return s, nil
}

// connections counts the clients' connections and can end them.
type connections struct {
	mu  sync.Mutex
	all map[net.Conn]struct{}
}

func (c *connections) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

func (c *connections) closeAll() {
	c.mu.Lock()
	open := make([]net.Conn, 0, len(c.all))
	for conn := range c.all {
		open = append(open, conn)
	}
	c.mu.Unlock()
	for _, conn := range open {
		// A connection that fails to close is gone all the same.
		_ = conn.Close()
	}
}

func (c *connections) wrap(l net.Listener) net.Listener { return counting{l, c} }

type counting struct {
	net.Listener
	in *connections
}

// Accept implements net.Listener.
func (l counting) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	counted := &countedConn{Conn: conn, in: l.in}
	l.in.mu.Lock()
	l.in.all[counted] = struct{}{}
	l.in.mu.Unlock()
	return counted, nil
}

type countedConn struct {
	net.Conn
	in *connections
}

// Close implements net.Conn.
func (c *countedConn) Close() error {
	c.in.mu.Lock()
	delete(c.in.all, c)
	c.in.mu.Unlock()
	return c.Conn.Close()
}
