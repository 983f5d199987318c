package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/shared/cause"
	"github.com/tidb-groups/tidb-groups/shared/hook"
)

const (
	// pause is between two attempts to reach the database.
	pause = 2 * time.Second
	// answerTimeout bounds one attempt.
	answerTimeout = 10 * time.Second
	// TaskSchema is the database that TiDB Lightning makes for itself.
	TaskSchema = "lightning_task_info"
	testSchema = "test"
	// maxNamed is how many databases a message names.
	maxNamed = 3
)

// Server is what the tool connects to.
type Server struct {
	Host         string
	Port, Status int
	User         string
	// Password is a file, PasswordOf the Secret and key that it is made from; both empty
	// for none.
	Password, PasswordOf string
	// TLS is the folder with ca.crt of TiDB's certificate, and tls.crt and tls.key to show if
	// it wants one; TLSOf is the Secret that it is made from. Both are empty if TiDB offers
	// no TLS that can be verified.
	TLS, TLSOf string
}

// ReadPassword reads the password; empty if none is asked for.
func (d Server) ReadPassword() (string, error) {
	if d.Password == "" {
		return "", nil
	}
	text, err := failure.ReadPassword(d.Password, d.PasswordOf)
	if err == nil && strings.ContainsAny(text, "\r\n") {
		return "", failure.New(v1alpha1.ReasonMissingReference, "%s has a second line: a password is one line", d.PasswordOf)
	}
	return text, err
}

// Connect opens the database and waits for an answer; it returns the server's version.
func (d Server) Connect(ctx context.Context, password string, timeout time.Duration) (*sql.DB, string, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Passwd, cfg.Net = d.User, password, "tcp"
	cfg.Addr = net.JoinHostPort(d.Host, strconv.Itoa(d.Port))
	cfg.Timeout, cfg.MultiStatements, cfg.TLSConfig = answerTimeout, true, "preferred"
	switch known, err := hook.MySQLTLS(d.TLS, cfg.Addr); {
	case err != nil:
		return nil, "", failure.New(v1alpha1.ReasonCertificateInvalid, "%s: %w: correct it: the TiDBGroup names it in spec.tls.mysql", d.TLSOf, err)
	case known != nil:
		cfg.TLS = known
	}
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, "", fmt.Errorf("prepare the connection: %w", err)
	}
	db := sql.OpenDB(connector)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		version, err := askVersion(ctx, db)
		if err == nil {
			return db, version, nil
		}
		if IsRefusal(err) {
			return nil, "", errors.Join(failure.New(v1alpha1.ReasonLoginRefused, "%s refuses user %s: %w", cfg.Addr, d.User, err), db.Close())
		}
		if why := failure.DescribeCertificateError(err); why != "" {
			return nil, "", errors.Join(failure.New(v1alpha1.ReasonCertificateInvalid, "the certificate of %s cannot be verified by ca.crt of %s: %s", cfg.Addr, d.TLSOf, why), db.Close())
		}
		if !hook.Pause(ctx, pause) {
			return nil, "", errors.Join(failure.New(v1alpha1.ReasonDatabaseUnreachable, "%s does not answer: %s", cfg.Addr, cause.Describe(err)), db.Close())
		}
	}
}

// ClientCertificate are the files of the certificate to show; false if the server wants none.
func (d Server) ClientCertificate() (cert, key string, shows bool) {
	cert, key = filepath.Join(d.TLS, v1alpha1.TLSKeyCert), filepath.Join(d.TLS, v1alpha1.TLSKeyKey)
	_, err := os.Stat(cert)
	return cert, key, err == nil
}
