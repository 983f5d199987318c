package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
)

// noSuchTable is MySQL's number for a table that does not exist.
const noSuchTable = 1146

// systemSchemas are the databases that every TiDB has.
func systemSchemas() []string {
	return []string{"information_schema", "metrics_schema", "performance_schema", "mysql", "sys", "inspection_schema"}
}

// IsRefusal reports whether the server has said no to a user.
func IsRefusal(err error) bool {
	var said *mysql.MySQLError
	return errors.As(err, &said) && slices.Contains(failure.RefusalNumbers(), said.Number)
}

// ListDatabases lists the databases.
func ListDatabases(ctx context.Context, db *sql.DB) (out []string, err error) {
	rows, err := db.QueryContext(ctx, "SHOW DATABASES")
	if err != nil {
		return nil, fmt.Errorf("list databases: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		name := ""
		if err := rows.Scan(&name); err != nil {
			return nil, fmt.Errorf("read the list of databases: %w", err)
		}
		out = append(out, name)
	}
	return out, rows.Err()
}

// ofUsers leaves out the databases that every TiDB has, and others.
func ofUsers(all []string, others ...string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		name = strings.ToLower(name)
		return slices.Contains(others, name) || slices.Contains(systemSchemas(), name)
	})
}

// CheckEmpty refuses a cluster that has databases of users, but for others; test counts if it has
// tables.
func CheckEmpty(ctx context.Context, db *sql.DB, all []string, others ...string) error {
	found := ofUsers(all, others...)
	if slices.Contains(found, testSchema) {
		tables := 0
		if err := db.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'test'").Scan(&tables); err != nil {
			return fmt.Errorf("count the tables of database test: %w", err)
		}
		if tables == 0 {
			found = slices.DeleteFunc(found, func(name string) bool { return name == testSchema })
		}
	}
	if len(found) == 0 {
		return nil
	}
	more := ""
	if len(found) > maxNamed {
		more = fmt.Sprintf(" and %d more", len(found)-maxNamed)
	}
	return failure.New(v1alpha1.ReasonDatabaseNotEmpty, "the cluster has databases of users: %s%s", strings.Join(found[:min(len(found), maxNamed)], ", "), more)
}

// QuoteName writes a name as SQL does.
func QuoteName(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Run executes statements in a database, on one connection.
func Run(ctx context.Context, db *sql.DB, schema, statements string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if schema != "" {
		if _, err := conn.ExecContext(ctx, "USE "+QuoteName(schema)); err != nil {
			return fmt.Errorf("use database %s: %w", schema, err)
		}
	}
	if _, err := conn.ExecContext(ctx, statements); err != nil {
		return err
	}
	return nil
}

// CurrentTSO reads the time stamp that a transaction begins with now.
func CurrentTSO(ctx context.Context, db *sql.DB) (uint64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("begin a transaction: %w", err)
	}
	tso := ""
	err = tx.QueryRowContext(ctx, "SELECT @@tidb_current_ts").Scan(&tso)
	if err := errors.Join(err, tx.Rollback()); err != nil {
		return 0, fmt.Errorf("read the time stamp: %w", err)
	}
	at, err := strconv.ParseUint(tso, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the time stamp %q: %w", tso, err)
	}
	return at, nil
}

// DropTasks removes the database that TiDB Lightning has made for itself.
func DropTasks(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	if _, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+QuoteName(TaskSchema)); err != nil {
		return fmt.Errorf("drop database %s: %w", TaskSchema, err)
	}
	return nil
}

// ForgetRestores removes what BR of v8.5.5 and later has noted of restores. It is left by one that was
// killed, and BR then refuses another one.
func ForgetRestores(ctx context.Context, db *sql.DB) error {
	_, err := db.ExecContext(ctx, "DELETE FROM mysql.tidb_restore_registry")
	var said *mysql.MySQLError
	if err == nil || errors.As(err, &said) && said.Number == noSuchTable {
		return nil
	}
	return fmt.Errorf("forget restores that were killed: %w", err)
}
