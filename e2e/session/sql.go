package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// answerLimit bounds how long one statement may take, its connection included.
const answerLimit = 20 * time.Second

// Login is how root connects to an address, without a password.
func Login(address string) *mysql.Config {
	c := mysql.NewConfig()
	c.Net, c.Addr, c.User = "tcp", address, "root"
	return c
}

// Ask makes a connection of its own and returns the first column of a statement's
// first row, as text.
func Ask(ctx context.Context, login *mysql.Config, statement string) (answer string, err error) {
	err = runWithConnection(ctx, login, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, statement).Scan(&answer)
	})
	return answer, err
}

// Execute makes a connection of its own and runs a statement whose rows are not read.
func Execute(ctx context.Context, login *mysql.Config, statement string) error {
	return runWithConnection(ctx, login, func(ctx context.Context, db *sql.DB) error {
		_, err := db.ExecContext(ctx, statement)
		return err
	})
}

func runWithConnection(ctx context.Context, login *mysql.Config, do func(context.Context, *sql.DB) error) (err error) {
	connector, err := mysql.NewConnector(login)
	if err != nil {
		return fmt.Errorf("connect to %s: %w", login.Addr, err)
	}
	db := sql.OpenDB(connector)
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx, cancel := context.WithTimeout(ctx, answerLimit)
	defer cancel()
	if err := do(ctx, db); err != nil {
		return fmt.Errorf("ask %s: %w", login.Addr, err)
	}
	return nil
}
