package sqlrun

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidb-groups/tidb-groups/shared/hook"
)

// dialTimeout bounds one attempt to connect.
const dialTimeout = 10 * time.Second

// Run is one run of SQL.
type Run struct {
	// Address of TiDB, host:port, and User to connect as.
	Address, User string
	// Password is a file with the password. PasswordOf says where it comes from, and
	// is empty if the file may be missing, which stands for no password.
	Password, PasswordOf string
	// TLS is a folder with ca.crt of TiDB's certificate, and tls.crt and tls.key to show if it
	// wants one; without it the server is not verified.
	TLS string
	// File with the SQL, or Users, a folder with the users of a Secret. Of says where
	// it comes from.
	File, Users, Of string
	// Host of Users, and Taken, one who may not be among them.
	Host, Taken string
	// Secret says that nothing of the SQL may be printed.
	Secret bool
	// Within bounds everything.
	Within time.Duration
	// Result is the file that the end is written to.
	Result string
	// Pause between two attempts.
	Pause time.Duration
	// Say reports progress; nil reports none.
	Say func(format string, args ...any)
}

// failure is an end that nothing helps against.
type failure string

func (f failure) Error() string { return string(f) }

// Do runs the SQL and returns how many statements, or users, it has carried out. What
// is not there yet is waited for: files, because Secrets may be made after the group,
// and the server. What the server has refused is not tried again.
func (r Run) Do(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, r.Within, fmt.Errorf("not done within %s", r.Within))
	defer cancel()
	for {
		done, err := r.attempt(ctx)
		var final failure
		switch {
		case err == nil:
			return done, nil
		case errors.As(err, &final):
			return done, err
		case ctx.Err() != nil:
			return done, fmt.Errorf("%w: %s", context.Cause(ctx), oneLine(err.Error()))
		}
		r.reportProgress("%s; trying again", oneLine(err.Error()))
		select {
		case <-ctx.Done():
			return done, fmt.Errorf("%w: %s", context.Cause(ctx), oneLine(err.Error()))
		case <-time.After(r.Pause):
		}
	}
}

// attempt does all of it. An error that is no failure may be gone next time.
func (r Run) attempt(ctx context.Context) (int, error) {
	password, err := r.password()
	if err != nil {
		return 0, err
	}
	statements, users, err := r.source()
	if err != nil {
		return 0, err
	}
	server, err := hook.MySQLTLS(r.TLS, r.Address)
	if err != nil {
		return 0, err
	}
	db, err := r.open(password, server)
	if err != nil {
		return 0, failure(oneLine(err.Error()))
	}
	defer func() { _ = db.Close() }() // what it says does not matter any more
	conn, err := db.Conn(ctx)
	switch {
	case isFinal(err):
		return 0, failure("connect as " + r.User + ": " + describeError(err, false))
	case err != nil:
		return 0, fmt.Errorf("connect to %s as %s: %s", r.Address, r.User, describeError(err, false))
	}
	defer func() { _ = conn.Close() }()
	if r.Users != "" {
		return r.applyUsers(ctx, conn, users)
	}
	return r.execute(ctx, conn, statements)
}

// open prepares connections. They are encrypted where the server offers it, and always if
// there is a CA to know it by.
func (r Run) open(password string, server *tls.Config) (*sql.DB, error) {
	c := mysql.NewConfig()
	c.User, c.Passwd, c.Net, c.Addr = r.User, password, "tcp", r.Address
	c.Timeout, c.TLSConfig, c.Logger = dialTimeout, "preferred", &mysql.NopLogger{}
	if server != nil {
		c.TLS = server
	}
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// password reads the password to connect with.
func (r Run) password() (string, error) {
	if r.Password == "" {
		return "", nil
	}
	text, err := os.ReadFile(r.Password)
	if errors.Is(err, fs.ErrNotExist) && r.PasswordOf == "" {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("%s is not there", r.PasswordOf)
	}
	return strings.TrimRight(string(text), "\r\n"), nil
}

// source reads what is to be run.
func (r Run) source() ([]string, []user, error) {
	if r.Users != "" {
		users, err := readUsers(r.Users, r.Taken)
		switch {
		case err != nil:
			return nil, nil, failure(r.Of + ": " + oneLine(err.Error()))
		case len(users) == 0:
			return nil, nil, fmt.Errorf("%s is not there, or has no keys", r.Of)
		}
		return nil, users, nil
	}
	text, err := os.ReadFile(filepath.Clean(r.File))
	if err != nil {
		return nil, nil, fmt.Errorf("%s is not there", r.Of)
	}
	statements := splitStatements(string(text))
	if len(statements) == 0 {
		return nil, nil, failure(r.Of + " has no statement")
	}
	return statements, nil, nil
}

// execute runs statements in their order. Once the first has been sent nothing is
// begun again: what has no answer may have been carried out.
func (r Run) execute(ctx context.Context, conn *sql.Conn, statements []string) (int, error) {
	for i, statement := range statements {
		begin := time.Now()
		_, err := conn.ExecContext(ctx, statement)
		switch {
		case err == nil:
			r.reportProgress("statement %d of %d: done in %s", i+1, len(statements), time.Since(begin).Round(time.Millisecond))
		case i == 0 && errors.Is(err, driver.ErrBadConn): // nothing was sent
			return 0, fmt.Errorf("connect to %s as %s: %s", r.Address, r.User, describeError(err, r.Secret))
		case isRefusal(err):
			return i, failure(fmt.Sprintf("statement %d of %d: %s", i+1, len(statements), describeError(err, r.Secret)))
		case ctx.Err() != nil:
			return i, failure(fmt.Sprintf("statement %d of %d: %s: it may be carried out still", i+1, len(statements), context.Cause(ctx)))
		default:
			return i, failure(fmt.Sprintf("statement %d of %d: no answer (%s): it may have been carried out", i+1, len(statements), describeError(err, r.Secret)))
		}
	}
	return len(statements), nil
}

// applyUsers has users there with their passwords. That can be begun again at any time.
func (r Run) applyUsers(ctx context.Context, conn *sql.Conn, users []user) (int, error) {
	// A backslash has to be one that escapes, whatever the server's default is.
	if _, err := conn.ExecContext(ctx, "SET SESSION sql_mode = ''"); err != nil {
		return 0, r.userError("session", err)
	}
	for i, u := range users {
		there := 0
		if err := conn.QueryRowContext(ctx, u.countStatement(r.Host)).Scan(&there); err != nil {
			return i, r.userError("key "+u.name, err)
		}
		if _, err := conn.ExecContext(ctx, u.passwordStatement(r.Host, there > 0)); err != nil {
			return i, r.userError("key "+u.name, err)
		}
		r.reportProgress("key %s: done", u.name)
	}
	return len(users), nil
}

// userError is what became of a user: for good if the server has refused it.
func (r Run) userError(what string, err error) error {
	if isFinal(err) {
		return failure(r.Of + ": " + what + ": " + describeError(err, true))
	}
	return fmt.Errorf("%s: %s", what, describeError(err, true))
}

func (r Run) reportProgress(format string, args ...any) {
	if r.Say != nil {
		r.Say(format, args...)
	}
}
