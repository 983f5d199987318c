package runner

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/database"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/progress"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/schema"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

// sqlMode is TiDB Lightning's own, with which a 0 in a column with AUTO_INCREMENT stays one: TiDB makes a
// new number of it otherwise.
const sqlMode = "ONLY_FULL_GROUP_BY,NO_AUTO_CREATE_USER,NO_AUTO_VALUE_ON_ZERO"

// restore writes a backup into the database.
func (c Command) restore(ctx context.Context, log io.Writer) (out result.Result, err error) {
	p, err := c.Storage.Open(ctx)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = p.Blobs.Close() }() // nothing was written
	password, err := c.Database.ReadPassword()
	if err != nil {
		return result.Result{}, err
	}
	m, err := p.ReadComplete(ctx, c.UID)
	if err != nil {
		return result.Result{}, err
	}
	p = p.WithData(m)
	if err := checkType(m, c.Cluster.PD != ""); err != nil {
		return result.Result{}, err
	}
	db, server, err := c.Database.Connect(ctx, password, c.ConnectTimeout)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = db.Close() }() // every statement has been answered
	before, err := database.ListDatabases(ctx, db)
	if err != nil {
		return result.Result{}, err
	}
	if c.needsEmpty() {
		if err := database.CheckEmpty(ctx, db, before, c.ignored()...); err != nil {
			return result.Result{}, err
		}
	}
	if c.Cluster.PD != "" {
		if err := checkVersion(m, server); err != nil {
			return result.Result{}, err
		}
		if c.Log.Folder != "" {
			return c.restorePoint(ctx, p, db, log, m)
		}
		return c.restoreStores(ctx, p, target{db, server}, log, m)
	}
	how := loading{password: password, zone: m.TimeZone, tidy: !slices.Contains(before, database.TaskSchema)}
	if err := c.loadAll(ctx, p, db, log, how); err != nil {
		return failure.NewResult(err, v1alpha1.ReasonRunFailed, true, password, p.Secret), errBegun
	}
	return resultOfMarker(m), nil
}

// needsEmpty reports whether a cluster with databases of users is refused. Before a log, BR does so in
// any case.
func (c Command) needsEmpty() bool { return !c.AllowNonEmpty || c.Log.Folder != "" }

// ignored are databases that do not count then. TiDB Lightning uses its own again; BR takes it for
// one of users.
func (c Command) ignored() []string {
	if c.Cluster.PD != "" {
		return nil
	}
	return []string{database.TaskSchema}
}

// loading is how a logical backup is loaded: by which password, in which time zone if that is not the
// database's, and whether what TiDB Lightning makes for itself is removed again.
type loading struct {
	password, zone string
	tidy           bool
}

// loadAll loads a logical backup, and removes what TiDB Lightning leaves. A run that has written
// everything does not fail of that: it is no user's, and no backup has it.
func (c Command) loadAll(ctx context.Context, p *storage.Place, db *sql.DB, log io.Writer, how loading) error {
	err := c.load(ctx, p, db, log, how)
	if !how.tidy {
		return err
	}
	if left := database.DropTasks(ctx, db); left != nil {
		_, _ = fmt.Fprintf(log, "database %s, which TiDB Lightning has made, could not be dropped: %v\n", database.TaskSchema, left)
	}
	return err
}

// load makes placement policies and sequences, which TiDB Lightning does not, and has it do the rest.
func (c Command) load(ctx context.Context, p *storage.Place, db *sql.DB, log io.Writer, how loading) error {
	if err := schema.MakePolicies(ctx, p, db, log); err != nil {
		return err
	}
	if len(c.Filters) == 0 {
		if err := schema.MakeSequences(ctx, p, db); err != nil {
			return err
		}
	}
	config := filepath.Join(c.Scratch, "lightning.toml")
	text, err := toml.Marshal(c.lightningConfig(p.URL(), how))
	if err != nil {
		return fmt.Errorf("encode the configuration of TiDB Lightning: %w", err)
	}
	if err := os.WriteFile(config, text, 0o600); err != nil {
		return fmt.Errorf("write the configuration of TiDB Lightning: %w", err)
	}
	return c.runTool(ctx, log, p.Env(), []string{"--config", config})
}

// lightningConfig is the configuration of TiDB Lightning.
func (c Command) lightningConfig(from string, how loading) map[string]any {
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
		"user": c.Database.User, "password": how.password, "sql-mode": sqlMode,
	}
	if how.zone != "" {
		database["session-vars"] = table{"time_zone": how.zone}
	}
	if dir := c.Database.TLS; dir == "" {
		database["tls"] = "preferred" // as Dumpling does by itself
	} else {
		security := table{"ca-path": filepath.Join(dir, v1alpha1.TLSKeyCA)}
		if cert, key, shows := c.Database.ClientCertificate(); shows {
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
