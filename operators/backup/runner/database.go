package runner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/shared/cause"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

const (
	// pause is between two attempts to reach the database.
	pause = 2 * time.Second
	// answerTimeout bounds one attempt.
	answerTimeout = 10 * time.Second
	// taskSchema is the database that TiDB Lightning makes for itself.
	taskSchema = "lightning_task_info"
	testSchema = "test"
	// maxNamed is how many databases a message names.
	maxNamed = 3
)

// systemSchemas are the databases that every TiDB has.
func systemSchemas() []string {
	return []string{"information_schema", "metrics_schema", "performance_schema", "mysql", "sys", "inspection_schema"}
}

// password reads the password; empty if none is asked for.
func (d Database) password() (string, error) {
	if d.Password == "" {
		return "", nil
	}
	text, err := readKey(d.Password, d.PasswordOf)
	if err == nil && strings.ContainsAny(text, "\r\n") {
		return "", fail(v1alpha1.ReasonMissingReference, "%s has a second line: a password is one line", d.PasswordOf)
	}
	return text, err
}

// connect opens the database and waits for an answer; it returns the server's version.
func (d Database) connect(ctx context.Context, password string, patience time.Duration) (*sql.DB, string, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net = d.User, password, "tcp"
	cfg.Addr = net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
	cfg.Timeout, cfg.MultiStatements, cfg.TLSConfig = answerTimeout, true, "preferred"
	switch known, err := hook.MySQLTLS(d.TLS, cfg.Addr); {
	case err != nil:
		return nil, "", fail(v1alpha1.ReasonCertificateInvalid, "%s: %w: correct it: the TiDBGroup names it in spec.tls.mysql", d.TLSOf, err)
	case known != nil:
		cfg.TLS = known
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("prepare the connection: %w", err)
	}
	db := sql.OpenDB(connector)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		version := ""
		err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version)
		if err == nil {
			return db, version, nil
		}
		if refused(err) {
			return nil, "", errors.Join(fail(v1alpha1.ReasonLoginRefused, "%s refuses user %s: %w", cfg.Addr, d.User, err), db.Close())
		}
		if why := strange(err); why != "" {
			return nil, "", errors.Join(fail(v1alpha1.ReasonCertificateInvalid, "the certificate of %s cannot be verified by ca.crt of %s: %s", cfg.Addr, d.TLSOf, why), db.Close())
		}
		if !hook.Pause(ctx, pause) {
			return nil, "", errors.Join(fail(v1alpha1.ReasonDatabaseUnreachable, "%s does not answer: %s", cfg.Addr, cause.Of(err)), db.Close())
		}
	}
}

// shown are the files of the certificate to show; false if the server wants none.
func (d Database) shown() (cert, key string, shows bool) {
	cert, key = filepath.Join(d.TLS, v1alpha1.TLSKeyCert), filepath.Join(d.TLS, v1alpha1.TLSKeyKey)
	_, err := os.Stat(cert)
	return cert, key, err == nil
}

// refused reports whether the server has said no to a user.
func refused(err error) bool {
	var said *mysql.MySQLError
	return errors.As(err, &said) && slices.Contains(refusals(), said.Number)
}

// refusals are the numbers of errors about users, passwords and rights.
func refusals() []uint16 { return []uint16{1044, 1045, 1142, 1143, 1227, 8121} }

// schemas lists the databases.
func schemas(ctx context.Context, db *sql.DB) (out []string, err error) {
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

// ofUsers leaves out the databases that every TiDB has, and that of TiDB Lightning.
func ofUsers(all []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		name = strings.ToLower(name)
		return name == taskSchema || slices.Contains(systemSchemas(), name)
	})
}

// checkEmpty refuses a cluster that has databases of users; test counts if it has tables.
func checkEmpty(ctx context.Context, db *sql.DB, all []string) error {
	found := ofUsers(all)
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
	return fail(v1alpha1.ReasonDatabaseNotEmpty, "the cluster has databases of users: %s%s", strings.Join(found[:min(len(found), maxNamed)], ", "), more)
}

// quote writes a name as SQL does.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// run executes statements in a database, on one connection.
func run(ctx context.Context, db *sql.DB, schema, statements string) (err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if schema != "" {
		if _, err := conn.ExecContext(ctx, "USE "+quote(schema)); err != nil {
			return fmt.Errorf("use database %s: %w", schema, err)
		}
	}
	if _, err := conn.ExecContext(ctx, statements); err != nil {
		return err
	}
	return nil
}
