package runner

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"gocloud.dev/blob"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

const (
	// fileSize is how large Dumpling's files become, so that they can be restored side by
	// side.
	fileSize = "256MiB"
	// everything is the table filter of all that is of users: Dumpling's own leaves the
	// database of TiDB Lightning in.
	everything = "!/^(mysql|sys|INFORMATION_SCHEMA|PERFORMANCE_SCHEMA|METRICS_SCHEMA|INSPECTION_SCHEMA|lightning_task_info)$/.*"
	// cleanTimeout bounds the removal of what a failed backup wrote: it ends before the
	// pod's grace does.
	cleanTimeout = 40 * time.Second
)

// backup copies the database. A folder that an earlier attempt of the same Backup has left
// is used again.
func (c Command) backup(ctx context.Context, log io.Writer) (result.Result, error) {
	p, err := c.Storage.open(ctx)
	if err != nil {
		return result.Result{}, err
	}
	defer func() { _ = p.bucket.Close() }() // nothing was left unwritten
	password, err := c.Database.password()
	if err != nil {
		return result.Result{}, err
	}
	if done, err := p.claim(ctx, c.UID); err != nil || done != nil {
		return resultOfMarker(done), err
	}
	db, server, err := c.Database.connect(ctx, password, c.Patience)
	if err != nil {
		return result.Result{}, err
	}
	m := marker{UID: c.UID, Server: server}
	if c.Cluster.PD != "" {
		var at uint64
		at, err = position(ctx, db)
		m.Physical, m.TSO = true, strconv.FormatUint(at, 10)
	}
	if err := errors.Join(err, db.Close()); err != nil {
		return result.Result{}, err
	}
	if err := p.begin(ctx, m); err != nil {
		return result.Result{}, err
	}
	if m.Physical {
		m, err = c.copyStores(ctx, p, log, m)
	} else {
		m, err = c.dump(ctx, p, log, m, password)
	}
	if err != nil {
		out := resultOf(err, v1alpha1.ReasonRunFailed, true, password, p.secret)
		return out, errors.Join(errBegun, c.removeAfter(p))
	}
	return resultOfMarker(&m), nil
}

// errBegun marks a failure that the result tells.
var errBegun = errors.New("the run has failed")

// claim makes sure that nobody else's files are in the folder. It returns the marker of a
// backup that is complete already, and removes what an earlier attempt has left.
func (p *place) claim(ctx context.Context, uid string) (*marker, error) {
	m, err := p.marker(ctx)
	switch {
	case err != nil:
		return nil, err
	case m != nil && m.UID == uid && m.Complete:
		return m, nil
	case m != nil && m.UID == uid && !m.Log:
		_, err := p.remove(ctx, uid)
		return nil, err
	case m != nil:
		return nil, fail(v1alpha1.ReasonFolderTaken, "folder %s of %s has another backup: its Backup had UID %s", p.Folder, p.name(), m.UID)
	}
	return nil, p.each(ctx, "", func(file *blob.ListObject) error {
		return fail(v1alpha1.ReasonFolderTaken, "folder %s of %s has files that are none of a backup, such as %s", p.Folder, p.name(), file.Key)
	})
}

// dump runs Dumpling and completes the marker.
func (c Command) dump(ctx context.Context, p *place, log io.Writer, m marker, password string) (marker, error) {
	if err := c.runTool(ctx, log, p.env(), c.dumpArgs(p.url(), password)); err != nil {
		return m, err
	}
	var err error
	if m.TSO, err = p.position(ctx); err != nil {
		return m, err
	}
	return p.finish(ctx, m)
}

// dumpArgs are Dumpling's. Views and sequences belong to a copy, which it leaves out by
// default.
func (c Command) dumpArgs(to, password string) []string {
	args := []string{
		"--host", c.Database.Host, "--port", strconv.Itoa(c.Database.Port), "--user", c.Database.User, "--output", to,
		"--filetype", "sql", "--filesize", fileSize, "--consistency", "snapshot", "--no-views=false", "--no-sequences=false", "--status-addr=",
	}
	if c.Threads > 0 {
		args = append(args, "--threads", strconv.Itoa(c.Threads))
	}
	if password != "" {
		args = append(args, "--password", password)
	}
	if dir := c.Database.TLS; dir != "" {
		args = append(args, "--ca", filepath.Join(dir, v1alpha1.TLSKeyCA))
		if cert, key, shows := c.Database.shown(); shows {
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
		args = append(args, "--filter", filter)
	}
	return args
}

// position reads the time stamp of the snapshot from the file that Dumpling writes last.
func (p *place) position(ctx context.Context) (string, error) {
	text, err := p.bucket.ReadAll(ctx, p.Folder+"/"+DataFolder+"/metadata")
	if err != nil {
		return "", p.told("read metadata in", err)
	}
	found := regexp.MustCompile(`(?m)^\s*Pos: (\d+)$`).FindSubmatch(text)
	if found == nil {
		return "", fail(v1alpha1.ReasonRunFailed, "Dumpling tells no position in %s/%s/metadata", p.Folder, DataFolder)
	}
	return string(found[1]), nil
}

// removeAfter removes what a failed backup has written: half a backup is none. It does so
// also when the run was told to stop.
func (c Command) removeAfter(p *place) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	_, err := p.remove(ctx, c.UID)
	return err
}

// resultOfMarker is the result of a backup that is complete; empty without one.
func resultOfMarker(m *marker) result.Result {
	if m == nil {
		return result.Result{}
	}
	return result.Result{Bytes: m.Bytes, TSO: m.TSO}
}
