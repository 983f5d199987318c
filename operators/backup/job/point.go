package job

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/basis"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
	"github.com/tidb-groups/tidb-groups/shared/step"
)

// untilOf is the time stamp that a Restore asks for; empty for the last that the log has.
func untilOf(r *v1alpha1.Restore) string {
	if r.Spec.PointInTime == nil {
		return ""
	}
	return strconv.FormatUint(result.TSOFromTime(r.Spec.PointInTime.Time), 10)
}

// pointInTimeFiles are the files of the backup that is restored before a log, and of the log. The Backup
// stands in status before it is read, so that retention leaves it.
func (p *planner) pointInTimeFiles(r *v1alpha1.Restore) (jobtemplate.Files, step.Outcome) {
	l := p.seen.Log
	if l == nil {
		return jobtemplate.Files{}, p.waitForObjects(v1alpha1.ReasonWaitingForLogBackup, fmt.Sprintf("LogBackup %s does not exist: create it, or delete the Restore and name its files by spec.from.storage, spec.from.folder and spec.from.logFolder", r.Spec.From.LogBackup.Name))
	}
	end, known := result.ParseTSO(l.Status.Checkpoint)
	if !known {
		return jobtemplate.Files{}, p.waitForObjects(v1alpha1.ReasonWaitingForLogBackup, "LogBackup "+l.Name+" has no checkpoint yet")
	}
	// The checkpoint is as old as the last look at the task. The log may go further, and the
	// Job finds out how far: it restores all of it if no time is asked for, and nothing if it
	// ends before that time.
	until, asked := result.ParseTSO(untilOf(r))
	if !asked {
		until = end
	}
	if until > end && l.Status.State == v1alpha1.RunRunning {
		return jobtemplate.Files{}, p.waitForObjects(v1alpha1.ReasonWaitingForLogBackup, fmt.Sprintf("LogBackup %s has reached %s, and spec.pointInTime is %s", l.Name, result.FormatMoment(end), result.FormatMoment(until)))
	}
	b := basis.FindNewest(p.seen.Backups, p.logOf(l), basis.Span{From: beginOf(l), To: until}, p.plan.Backup)
	switch {
	case b == nil:
		return jobtemplate.Files{}, p.stallRun(v1alpha1.ReasonLogGap, fmt.Sprintf("no complete Backup of type Physical and of all tables, with the bucket and the Secret of LogBackup %s, shows its cluster between %s, where the log begins, and %s: delete the Restore, and create one with another pointInTime, or one that names the files of both by spec.from.storage, spec.from.folder and spec.from.logFolder", l.Name, result.FormatMoment(beginOf(l)), result.FormatMoment(until)))
	case p.plan.Backup != b.Name:
		p.plan.Backup = b.Name
		return jobtemplate.Files{}, p.waitForObjects(v1alpha1.ReasonCreating, "Backup "+b.Name+" is restored before the log")
	}
	f := jobtemplate.FilesOf(b)
	f.Log = &jobtemplate.Log{Folder: jobtemplate.FilesOfLog(l).Path(), UID: string(l.UID), Until: untilOf(r)}
	return f, step.Done()
}

// beginOf is the time stamp that a log has all changes since.
func beginOf(l *v1alpha1.LogBackup) uint64 {
	start, _ := result.ParseTSO(l.Status.LogStart)
	truncated, _ := result.ParseTSO(l.Status.TruncatedTo)
	return max(start, truncated)
}

// logOf is a log with the TiDBGroups of its cluster.
func (p *planner) logOf(l *v1alpha1.LogBackup) basis.Log {
	return basis.Log{Spec: l.Spec, Groups: p.seen.Groups}
}

// findActiveLog returns a LogBackup of the cluster that a Restore is to write: its task is there,
// or a Job may be starting it.
func (p *planner) findActiveLog() *v1alpha1.LogBackup {
	if p.run.RunKind() != v1alpha1.KindRestore {
		return nil
	}
	at := slices.IndexFunc(p.seen.Logs, func(l *v1alpha1.LogBackup) bool {
		return l.Status.PDGroup == p.seen.Group.PDGroupName() && l.Status.State != v1alpha1.RunStopped
	})
	if at < 0 {
		return nil
	}
	return p.seen.Logs[at]
}
