package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/go-sql-driver/mysql"
	"gocloud.dev/blob"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/database"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

const (
	// policySuffix ends Dumpling's file of a placement policy, sequenceSuffix that of a sequence,
	// and createSuffix that of a database.
	policySuffix   = "-placement-policy-create.sql"
	sequenceSuffix = "-schema-sequence.sql"
	createSuffix   = "-schema-create.sql"
	// databaseExists and policyExists are numbers of TiDB's errors.
	databaseExists = 1007
	policyExists   = 8238
)

// MakePolicies makes the placement policies of a backup, which its databases and tables may name: one
// that is not there is an error for TiDB Lightning. One that is there stays. A user who may make
// none goes on: there may be no table that needs one.
func MakePolicies(ctx context.Context, p *storage.Place, db *sql.DB, log io.Writer) error {
	return p.ForEachDataFile(ctx, func(file *blob.ListObject) error {
		if !strings.HasSuffix(file.Key, policySuffix) {
			return nil
		}
		err := runFile(ctx, p, db, "", file.Key)
		if !database.IsRefusal(err) {
			return err
		}
		_, _ = fmt.Fprintf(log, "a table with this placement policy cannot be restored: %v\n", err)
		return nil
	})
}

// MakeSequences makes the sequences of a backup, and their databases.
func MakeSequences(ctx context.Context, p *storage.Place, db *sql.DB) error {
	return p.ForEachDataFile(ctx, func(file *blob.ListObject) error {
		name, is := strings.CutSuffix(path.Base(file.Key), sequenceSuffix)
		escaped, _, qualified := strings.Cut(name, ".")
		if !is || !qualified {
			return nil
		}
		schema, err := url.PathUnescape(escaped)
		if err != nil {
			return fmt.Errorf("read the name of file %s: %w", file.Key, err)
		}
		if err := runFile(ctx, p, db, "", path.Join(path.Dir(file.Key), escaped+createSuffix)); err != nil {
			return err
		}
		return runFile(ctx, p, db, schema, file.Key)
	})
}

// runFile executes a file of a backup. A database or a policy that it makes may be there.
func runFile(ctx context.Context, p *storage.Place, db *sql.DB, schema, key string) error {
	text, err := p.Blobs.ReadAll(ctx, key)
	if err != nil {
		return p.WrapError("read "+key+" in", err)
	}
	err = database.Run(ctx, db, schema, string(text))
	var said *mysql.MySQLError
	switch {
	case err == nil, errors.As(err, &said) && (said.Number == databaseExists || said.Number == policyExists):
		return nil
	case database.IsRefusal(err):
		return failure.New(v1alpha1.ReasonLoginRefused, "execute %s: %w", path.Base(key), err)
	}
	return fmt.Errorf("execute %s: %w", path.Base(key), err)
}
