package runner

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/pelletier/go-toml/v2"
	"gocloud.dev/blob"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

const (
	// sequenceSuffix ends Dumpling's file of a sequence, and createSuffix that of a database.
	sequenceSuffix = "-schema-sequence.sql"
	createSuffix   = "-schema-create.sql"
	// databaseExists is the number of TiDB's error.
	databaseExists = 1007
)

// restore writes a backup into the database.
func (c Command) restore(ctx context.Context, log io.Writer) (out result.Result, err error) {
	p, err := c.Storage.open(ctx)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = p.bucket.Close() }() // nothing was written
	password, err := c.Database.password()
	if err != nil {
		return result.Result{}, err
	}
	m, err := p.complete(ctx, c.UID)
	if err != nil {
		return result.Result{}, err
	}
	if err := m.suits(c.Cluster.PD != ""); err != nil {
		return result.Result{}, err
	}
	db, server, err := c.Database.connect(ctx, password, c.Patience)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = db.Close() }() // every statement has been answered
	before, err := schemas(ctx, db)
	if err != nil {
		return result.Result{}, err
	}
	if !c.AllowNonEmpty {
		if err := checkEmpty(ctx, db, before); err != nil {
			return result.Result{}, err
		}
	}
	if c.Cluster.PD != "" {
		if err := m.readable(server); err != nil {
			return result.Result{}, err
		}
		if c.Log.Folder != "" {
			return c.restorePoint(ctx, p, db, log, m)
		}
		return c.restoreStores(ctx, p, db, log, m)
	}
	err = c.load(ctx, p, db, log, password)
	if !slices.Contains(before, taskSchema) {
		err = errors.Join(err, dropTasks(ctx, db))
	}
	if err != nil {
		return resultOf(err, v1alpha1.ReasonRunFailed, true, password, p.secret), errBegun
	}
	return resultOfMarker(m), nil
}

// complete reads the marker of a backup that is complete.
func (p *place) complete(ctx context.Context, uid string) (*marker, error) {
	m, err := p.marker(ctx)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, fail(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has no %s: is it that of a backup?", p.Folder, p.name(), markerFile)
	case m.Log:
		return nil, fail(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has a log, which is restored after a backup: name its folder by spec.from.logFolder, and that of the backup by spec.from.folder", p.Folder, p.name())
	case !m.Complete:
		return nil, fail(v1alpha1.ReasonBackupUnreadable, "the backup in folder %s of %s is not complete", p.Folder, p.name())
	case uid != "" && m.UID != uid:
		return nil, fail(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has the backup with UID %s, not %s", p.Folder, p.name(), m.UID, uid)
	}
	return m, nil
}

// load makes the sequences, which TiDB Lightning does not, and has it do the rest.
func (c Command) load(ctx context.Context, p *place, db *sql.DB, log io.Writer, password string) error {
	if len(c.Filters) == 0 {
		if err := p.makeSequences(ctx, db); err != nil {
			return err
		}
	}
	config := filepath.Join(c.Scratch, "lightning.toml")
	text, err := toml.Marshal(c.lightning(p.url(), password))
	if err != nil {
		return fmt.Errorf("encode the configuration of TiDB Lightning: %w", err)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return fmt.Errorf("write the configuration of TiDB Lightning: %w", err)
	}
	return c.runTool(ctx, log, p.env(), []string{"--config", config})
}

// lightning is the configuration of TiDB Lightning.
func (c Command) lightning(from, password string) map[string]any {
	type table = map[string]any
	source := table{
		"data-source-dir": from, "default-file-rules": true,
		"files": []table{{"pattern": `-schema-sequence[.]sql$`, "type": "ignore"}},
	}
	if len(c.Filters) > 0 {
		source["filter"] = c.Filters
	}
	database := table{
		"host": c.Database.Host, "port": c.Database.Port, "status-port": c.Database.Status,
		"user": c.Database.User, "password": password,
	}
	if dir := c.Database.TLS; dir != "" {
		security := table{"ca-path": filepath.Join(dir, v1alpha1.TLSKeyCA)}
		if cert, key, shows := c.Database.shown(); shows {
			security["cert-path"], security["key-path"] = cert, key
		}
		database["security"] = security
	}
	tool := table{"level": "info", "file": "-"}
	if c.Threads > 0 {
		tool["region-concurrency"] = c.Threads
	}
	return table{
		"lightning":     tool,
		"tikv-importer": table{"backend": "tidb", "on-duplicate": "error"},
		"mydumper":      source,
		"cron":          table{"log-progress": progress.Every.String()},
		"checkpoint":    table{"enable": false}, // a run is not continued
		"tidb":          database,
		"post-restore":  table{"checksum": "off", "analyze": "off"}, // of this back end there are none
	}
}

// makeSequences makes the sequences of a backup, and their databases.
func (p *place) makeSequences(ctx context.Context, db *sql.DB) error {
	return p.each(ctx, DataFolder+"/", func(file *blob.ListObject) error {
		name, is := strings.CutSuffix(path.Base(file.Key), sequenceSuffix)
		escaped, _, qualified := strings.Cut(name, ".")
		if !is || !qualified {
			return nil
		}
		schema, err := url.PathUnescape(escaped)
		if err != nil {
			return fmt.Errorf("read the name of file %s: %w", file.Key, err)
		}
		if err := p.runFile(ctx, db, "", path.Join(path.Dir(file.Key), escaped+createSuffix)); err != nil {
			return err
		}
		return p.runFile(ctx, db, schema, file.Key)
	})
}

// runFile executes a file of a backup. A database that it makes may be there.
func (p *place) runFile(ctx context.Context, db *sql.DB, schema, key string) error {
	text, err := p.bucket.ReadAll(ctx, key)
	if err != nil {
		return p.told("read "+key+" in", err)
	}
	err = run(ctx, db, schema, string(text))
	var said *mysql.MySQLError
	switch {
	case err == nil, errors.As(err, &said) && said.Number == databaseExists:
		return nil
	case refused(err):
		return fail(v1alpha1.ReasonLoginRefused, "execute %s: %w", path.Base(key), err)
	}
	return fmt.Errorf("execute %s: %w", path.Base(key), err)
}

// dropTasks removes the database that TiDB Lightning has made for itself.
func dropTasks(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTimeout)
	defer cancel()
	if _, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+quote(taskSchema)); err != nil {
		return fmt.Errorf("drop database %s: %w", taskSchema, err)
	}
	return nil
}
