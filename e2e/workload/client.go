package workload

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
)

const (
	// dialLimit bounds one attempt to connect.
	dialLimit = 3 * time.Second
	// dialAgain is how long a session waits after a connection was refused.
	dialAgain = 100 * time.Millisecond
)

// openDatabase returns the database of a workload. It keeps no connections: each session has a new one.
func openDatabase(c Config, database string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Timeout, config.DBName = "tcp", dialLimit, database
	config.InterpolateParams = true // a statement is one packet, so that it is sent or not
	config.Logger = log.New(io.Discard, "", 0)
	login := func(ctx context.Context, config *mysql.Config) error {
		l, err := c.Login(ctx)
		config.Addr, config.User, config.Passwd, config.TLS = l.Address, l.User, l.Password, l.TLS
		return err
	}
	if err := config.Apply(mysql.BeforeConnect(login)); err != nil {
		return nil, fmt.Errorf("configure driver: %w", err)
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("configure driver: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(-1)
	return db, nil
}

// isUnsent says whether an error proves that nothing of the statement was written to the
// connection.
func isUnsent(err error) bool { return errors.Is(err, driver.ErrBadConn) }

// isServerError says whether an error is the server's answer, after which the connection can
// be used on.
func isServerError(err error) bool {
	var said *mysql.MySQLError
	return errors.As(err, &said)
}

// open says whether the server has the connection still open, as far as this machine knows.
func isStale(ctx context.Context, conn *sql.Conn) bool {
	err := conn.Raw(func(c any) error {
		resetter, ok := c.(driver.SessionResetter)
		if !ok {
			return fmt.Errorf("connection %T cannot be looked at", c)
		}
		return resetter.ResetSession(ctx)
	})
	return err != nil
}

// client is the connection of one session.
type client struct {
	db *sql.DB
	// lifetime of a connection; 0 means until it fails.
	lifetime time.Duration
	// refused is told why a connection was refused, reconnected that the server had closed one between turns.
	refused     func(error)
	reconnected func()

	conn *sql.Conn
	// prepared statements of conn, by text.
	prepared map[string]*sql.Stmt
	born     time.Time
}

// ready returns a connection that the server has not closed, and makes one until ctx ends.
func (c *client) ready(ctx context.Context) (*sql.Conn, error) {
	if c.conn != nil {
		switch {
		case c.lifetime > 0 && time.Since(c.born) >= c.lifetime:
			c.drop()
		case isStale(ctx, c.conn):
			c.drop()
			c.reconnected()
		}
	}
	if c.conn != nil {
		return c.conn, nil
	}
	err := repeatUntilSuccess(ctx, func() error {
		conn, err := c.db.Conn(ctx)
		if err == nil {
			c.conn, c.prepared, c.born = conn, map[string]*sql.Stmt{}, time.Now()
		} else if ctx.Err() == nil {
			c.refused(err)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("no connection within the deadline: %w", err)
	}
	return c.conn, nil
}

// statement returns a prepared statement of the present connection.
func (c *client) statement(ctx context.Context, text string) (*sql.Stmt, error) {
	if s := c.prepared[text]; s != nil {
		return s, nil
	}
	s, err := c.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	c.prepared[text] = s
	return s, nil
}

// after closes the connection if an error has made it useless.
func (c *client) after(err error) {
	if err != nil && !isServerError(err) {
		c.drop()
	}
}

// drop closes the connection.
func (c *client) drop() {
	if c.conn == nil {
		return
	}
	// What a connection says when it is closed does not matter: nothing runs on it.
	_ = c.conn.Close()
	c.conn, c.prepared = nil, nil
}

// shortenError shortens the errors of connections: what differs by chance, as the port of this side, is left
// out, so that equal ones can be counted.
func shortenError(err error) string {
	var operation *net.OpError
	if errors.As(err, &operation) {
		return fmt.Sprintf("%s: %v", operation.Op, operation.Err)
	}
	return err.Error()
}
