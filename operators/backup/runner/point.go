package runner

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/failure"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/operators/backup/storage"
)

// span is what a log has: from the first time stamp to the last.
type span struct{ from, to uint64 }

// restorePoint has BR restore a backup and then a log, to a moment that both have, which is
// looked at before anything is written.
func (c Command) restorePoint(ctx context.Context, p *storage.Place, db *sql.DB, log io.Writer, m *storage.Marker) (result.Result, error) {
	l := p.WithFolder(c.Log.Folder)
	if err := l.CheckIsLog(ctx, c.Log.UID); err != nil {
		return result.Result{}, err
	}
	has, err := c.fetchSpan(ctx, l, log)
	if err != nil {
		return result.Result{}, err
	}
	until, err := has.restorePoint(m.TSO, c.Log.Until)
	if err != nil {
		return result.Result{}, err
	}
	before, err := c.Cluster.ListTiKVs(ctx, c.ConnectTimeout)
	if err != nil {
		return result.Result{}, err
	}
	to := strconv.FormatUint(until, 10)
	if failed, err := c.leadRestore(ctx, p, db, log, c.pointArgs(p, l, to)); err != nil {
		return failed, err
	}
	if err := c.Cluster.ConfirmNoStart(ctx, before, c.ConnectTimeout); err != nil {
		return failure.NewResult(err, v1alpha1.ReasonRunFailed, true), errBegun
	}
	return result.Result{Bytes: m.Bytes, TSO: to}, nil
}

// pointArgs are the arguments of a restore of a backup and of a log, to a time stamp.
func (c Command) pointArgs(p, l *storage.Place, to string) []string {
	return restoreArgs("point", append(c.Cluster.Args(), "--storage", l.URL(), "--full-backup-storage", p.URL(), "--restored-ts", to))
}

// fetchSpan asks BR which time stamps the log has.
func (c Command) fetchSpan(ctx context.Context, l *storage.Place, log io.Writer) (span, error) {
	var said bytes.Buffer
	if err := c.runTool(ctx, io.MultiWriter(log, &said), append(l.Env(), logToTerminal), []string{"log", "metadata", "--storage", l.URL()}); err != nil {
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

// restorePoint returns the time stamp to restore to, if the log has all changes from the backup's to
// it. Without one that is asked for it is the log's last.
func (s span) restorePoint(backup, until string) (uint64, error) {
	from, err := strconv.ParseUint(backup, 10, 64)
	if err != nil {
		return 0, failure.New(v1alpha1.ReasonBackupUnreadable, "%s of the backup has no time stamp", storage.MarkerFile)
	}
	to := s.to
	if until != "" {
		if to, err = strconv.ParseUint(until, 10, 64); err != nil {
			return 0, fmt.Errorf("read the time stamp %q: %w", until, err)
		}
	}
	switch {
	case from < s.from:
		return 0, failure.New(v1alpha1.ReasonLogGap, "the log begins at %s, and the backup shows %s: what was written between them is missing: restore a newer backup", result.FormatMoment(s.from), result.FormatMoment(from))
	case to > s.to:
		return 0, failure.New(v1alpha1.ReasonLogGap, "the log ends at %s: recreate this with a spec.pointInTime that is not after it", result.FormatMoment(s.to))
	case to < from:
		return 0, failure.New(v1alpha1.ReasonLogGap, "the backup shows %s, after the moment that is asked for: restore an older backup, or a later moment", result.FormatMoment(from))
	}
	return to, nil
}
