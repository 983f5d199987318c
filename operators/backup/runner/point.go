package runner

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

// span is what a log has: from the first time stamp to the last.
type span struct{ from, to uint64 }

// restorePoint has BR restore a backup and then a log, to a moment that both have, which is
// looked at before anything is written.
func (c Command) restorePoint(ctx context.Context, p *place, db *sql.DB, log io.Writer, m *marker) (result.Result, error) {
	l := p.beside(c.Log.Folder)
	if err := l.isLog(ctx, c.Log.UID); err != nil {
		return result.Result{}, err
	}
	has, err := c.span(ctx, l, log)
	if err != nil {
		return result.Result{}, err
	}
	until, err := has.reaches(m.TSO, c.Log.Until)
	if err != nil {
		return result.Result{}, err
	}
	to := strconv.FormatUint(until, 10)
	args := slices.Concat([]string{"restore", "point", "--storage", l.url(), "--full-backup-storage", p.url(), "--restored-ts", to}, c.Cluster.args())
	if failed, err := c.leadRestore(ctx, p, db, log, args); err != nil {
		return failed, err
	}
	return result.Result{Bytes: m.Bytes, TSO: to}, nil
}

// beside is another folder of the same storage.
func (p *place) beside(folder string) *place {
	out := *p
	out.Folder = folder
	return &out
}

// isLog refuses a folder that has no log, or another LogBackup's if the UID is known.
func (p *place) isLog(ctx context.Context, uid string) error {
	m, err := p.marker(ctx)
	switch {
	case err != nil:
		return err
	case m == nil || !m.Log:
		return fail(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has no log: is it that of a LogBackup?", p.Folder, p.name())
	case uid != "" && m.UID != uid:
		return fail(v1alpha1.ReasonBackupUnreadable, "folder %s of %s has the log of the LogBackup with UID %s, not %s", p.Folder, p.name(), m.UID, uid)
	}
	return nil
}

// span asks BR which time stamps the log has.
func (c Command) span(ctx context.Context, l *place, log io.Writer) (span, error) {
	var said bytes.Buffer
	if err := c.runTool(ctx, io.MultiWriter(log, &said), append(l.env(), logToTerminal), []string{"log", "metadata", "--storage", l.url()}); err != nil {
		return span{}, err
	}
	return spanIn(said.Bytes())
}

// spanIn reads what br log metadata writes.
func spanIn(said []byte) (out span, err error) {
	for name, into := range map[string]*uint64{"min": &out.from, "max": &out.to} {
		found := regexp.MustCompile(`\[log-` + name + `-ts=(\d+)\]`).FindSubmatch(said)
		if found == nil {
			return out, fmt.Errorf("br log metadata wrote no log-%s-ts", name)
		}
		if *into, err = strconv.ParseUint(string(found[1]), 10, 64); err != nil {
			return out, fmt.Errorf("read log-%s-ts of br log metadata: %w", name, err)
		}
	}
	return out, nil
}

// reaches returns the time stamp to restore to, if the log has all changes from the backup's to
// it. Without one that is asked for it is the log's last.
func (s span) reaches(backup, until string) (uint64, error) {
	from, err := strconv.ParseUint(backup, 10, 64)
	if err != nil {
		return 0, fail(v1alpha1.ReasonBackupUnreadable, "%s of the backup tells no time stamp", markerFile)
	}
	to := s.to
	if until != "" {
		if to, err = strconv.ParseUint(until, 10, 64); err != nil {
			return 0, fmt.Errorf("read the time stamp %q: %w", until, err)
		}
	}
	switch {
	case from < s.from:
		return 0, fail(v1alpha1.ReasonLogGap, "the log begins at %s, and the backup shows %s: what was written between them is missing: restore a newer backup", result.Moment(s.from), result.Moment(from))
	case to > s.to:
		return 0, fail(v1alpha1.ReasonLogGap, "the log ends at %s: create this anew with a spec.pointInTime that is not after it", result.Moment(s.to))
	case to < from:
		return 0, fail(v1alpha1.ReasonLogGap, "the backup shows %s, after the moment that is asked for: restore an older backup, or a later moment", result.Moment(from))
	}
	return to, nil
}
