package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The statements of the workload.
const (
	insertNumber   = "INSERT INTO numbers (writer, seq, content) VALUES (?, ?, ?)"
	countNumber    = "SELECT COUNT(*) FROM numbers WHERE writer = ? AND seq = ? AND content = ?"
	addBalance     = "UPDATE accounts SET balance = balance + ? WHERE id = ?"
	insertTransfer = "INSERT INTO transfers (writer, seq, source, target, amount) VALUES (?, ?, ?, ?, ?)"
	sumBalances    = "SELECT COUNT(*), SUM(balance) FROM accounts"
	allBalances    = "SELECT id, balance FROM accounts"
)

// schemaStatements makes the tables again. Those of rows have no unique key: a row that is there twice is to be
// found, not refused.
func schemaStatements(c Config) []string {
	split := ""
	if c.Split > 0 {
		split = fmt.Sprintf(" /*T! SHARD_ROW_ID_BITS = %d PRE_SPLIT_REGIONS = %d */", c.Split, c.Split)
	}
	accounts := make([]string, c.Accounts)
	for i := range accounts {
		accounts[i] = fmt.Sprintf("(%d, %d)", i, balance)
	}
	return []string{
		"DROP TABLE IF EXISTS numbers, transfers, accounts",
		"CREATE TABLE numbers (writer INT NOT NULL, seq BIGINT NOT NULL, content VARCHAR(60) NOT NULL, KEY by_name (writer, seq))" + split,
		"CREATE TABLE transfers (writer INT NOT NULL, seq BIGINT NOT NULL, source INT NOT NULL, target INT NOT NULL, amount BIGINT NOT NULL, KEY by_name (writer, seq))" + split,
		"CREATE TABLE accounts (id INT NOT NULL PRIMARY KEY, balance BIGINT NOT NULL)",
		"INSERT INTO accounts (id, balance) VALUES " + strings.Join(accounts, ", "),
	}
}

// repeatUntilSuccess does something until it succeeds or ctx ends; the error is the last that the end of ctx is not
// the cause of.
func repeatUntilSuccess(ctx context.Context, do func() error) error {
	var last error
	for {
		err := do()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		again := time.NewTimer(dialAgain)
		select {
		case <-again.C:
		case <-ctx.Done():
			again.Stop()
			return errors.Join(context.Cause(ctx), last)
		}
	}
}

// createDatabase makes the database and its tables, as often as it takes until ctx ends.
func createDatabase(ctx context.Context, c Config) error {
	if err := repeatUntilSuccess(ctx, func() error { return foundOnce(ctx, c) }); err != nil {
		return fmt.Errorf("make tables of the workload: %w", err)
	}
	return nil
}

func foundOnce(ctx context.Context, c Config) error {
	if err := execAll(ctx, c, "", []string{"CREATE DATABASE IF NOT EXISTS " + c.Database}); err != nil {
		return err
	}
	return execAll(ctx, c, c.Database, schemaStatements(c))
}

func execAll(ctx context.Context, c Config, database string, statements []string) (err error) {
	db, err := openDatabase(c, database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, statement := range statements {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return fmt.Errorf("run %.60s: %w", statement, err)
		}
	}
	return nil
}

// scanRows reads all rows of a query.
func scanRows(ctx context.Context, conn *sql.Conn, query string, scan func(*sql.Rows) error) (err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// readBalances reads the balance of every account.
func readBalances(ctx context.Context, conn *sql.Conn) (map[int]int64, error) {
	out := map[int]int64{}
	err := scanRows(ctx, conn, allBalances, func(rows *sql.Rows) error {
		var id int
		var b int64
		if err := rows.Scan(&id, &b); err != nil {
			return err
		}
		out[id] = b
		return nil
	})
	return out, err
}
