package runner

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/database"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

const (
	// fileSize is how large Dumpling's files become, so that they can be restored side by
	// side.
	fileSize = "256MiB"
	// everything is the table filter of all that is of users: Dumpling's own leaves the
	// database of TiDB Lightning in.
	everything = "!/^(mysql|sys|INFORMATION_SCHEMA|PERFORMANCE_SCHEMA|METRICS_SCHEMA|INSPECTION_SCHEMA|lightning_task_info)$/.*"
)

// dumpZone is the time zone that times stand in a dump in. Dumpling writes TIMESTAMP as text in that of its
// session, which is the database's own, and says nowhere which one that was.
const dumpZone = "+00:00"

// backup copies the database. A folder that an earlier attempt of the same Backup has left
// is used again.
func (c Command) backup(ctx context.Context, log io.Writer) (result.Result, error) {
	p, err := c.Storage.Open(ctx)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = p.Blobs.Close() }() // nothing was left unwritten
	password, err := c.Database.ReadPassword()
	if err != nil {
		return result.Result{}, err
	}
	if done, err := p.Claim(ctx, c.UID); err != nil || done != nil {
		return resultOfMarker(done), err
	}
	db, server, err := c.Database.Connect(ctx, password, c.ConnectTimeout)
	if err != nil {
		return result.Result{}, err
	}
	m := storage.NewMarker(c.UID, server)
	if c.Cluster.PD != "" {
		var at uint64
		at, err = database.CurrentTSO(ctx, db)
		m.Physical, m.TSO = true, strconv.FormatUint(at, 10)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return result.Result{}, err
	}
	if err := p.Begin(ctx, m); err != nil {
		return result.Result{}, err
	}
	p = p.WithData(&m)
	if m.Physical {
		m, err = c.copyStores(ctx, p, log, m)
	} else {
		m, err = c.dump(ctx, p, log, m, password)
	}
	if err != nil {
		out := failure.NewResult(err, v1alpha1.ReasonRunFailed, true, password, p.Secret)
		return out, errors.Join(errBegun, p.RemoveFailedAttempt(ctx, m))
	}
	return resultOfMarker(&m), nil
}

// errBegun marks a failure that the result tells.
var errBegun = errors.New("the run has failed")

// dump runs Dumpling and completes the marker.
func (c Command) dump(ctx context.Context, p *storage.Place, log io.Writer, m storage.Marker, password string) (storage.Marker, error) {
	m.TimeZone = dumpZone
	if err := c.runTool(ctx, log, p.Env(), c.dumpArgs(p.URL(), password)); err != nil {
		return m, err
	}
	var err error
	if m.TSO, err = dumpPosition(ctx, p); err != nil {
		return m, err
	}
	return p.Finish(ctx, m)
}

// dumpArgs are Dumpling's. Views and sequences belong to a copy, which it leaves out by
// default.
func (c Command) dumpArgs(to, password string) []string {
	args := []string{
		"--host", c.Database.Host, "--port", strconv.Itoa(c.Database.Port), "--user", c.Database.User, "--output", to,
		"--filetype", "sql", "--filesize", fileSize, "--consistency", "snapshot", "--no-views=false", "--no-sequences=false", "--status-addr=",
		"--params", "time_zone=" + dumpZone,
	}
	if c.Threads > 0 {
		args = append(args, "--threads", strconv.Itoa(c.Threads))
	}
	if password != "" {
		args = append(args, "--password", password)
	}
	if dir := c.Database.TLS; dir != "" {
		args = append(args, "--ca", filepath.Join(dir, v1alpha1.TLSKeyCA))
		if cert, key, shows := c.Database.ClientCertificate(); shows {
			args = append(args, "--cert", cert, "--key", key)
		}
	}
	if len(c.Databases)+len(c.Tables)+len(c.Filters) == 0 {
		args = append(args, "--filter", "*.*", "--filter", everything)
	}
	for _, name := range c.Databases {
		args = append(args, "--database", name)
	}
	for _, name := range c.Tables {
		args = append(args, "--tables-list", name)
	}
	for _, filter := range c.Filters {
		args = append(args, "--filter", quoteField(filter))
	}
	return args
}

// quoteField writes a text as a field of CSV: Dumpling divides a filter at its commas.
func quoteField(text string) string {
	if !strings.ContainsAny(text, "\",\r\n") {
		return text
	}
	return `"` + strings.ReplaceAll(text, `"`, `""`) + `"`
}

// dumpPosition reads the time stamp of the snapshot from the file that Dumpling writes last.
func dumpPosition(ctx context.Context, p *storage.Place) (string, error) {
	text, err := p.ReadDataFile(ctx, "metadata")
	if err != nil {
		return "", err
	}
	found := regexp.MustCompile(`(?m)^\s*Pos: (\d+)$`).FindSubmatch(text)
	if found == nil {
		return "", failure.New(v1alpha1.ReasonRunFailed, "Dumpling wrote no position to its file metadata")
	}
	return string(found[1]), nil
}

// resultOfMarker is the result of a backup that is complete; empty without one.
func resultOfMarker(m *storage.Marker) result.Result {
	if m == nil {
		return result.Result{}
	}
	return result.Result{Bytes: m.Bytes, TSO: m.TSO}
}
