package job

import (
	"fmt"
	"slices"
	"strconv"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
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
	b := p.findNewestBackup(l, until)
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

// findNewestBackup returns the newest Backup that a log goes on from and that shows its cluster not after
// a time stamp; nil if there is none. One that was chosen before stays.
func (p *planner) findNewestBackup(l *v1alpha1.LogBackup, until uint64) *v1alpha1.Backup {
	var out *v1alpha1.Backup
	best := uint64(0)
	for _, b := range p.seen.Backups {
		at, known := result.ParseTSO(b.Status.TSO)
		if !known || at > until || at < beginOf(l) || b.DeletionTimestamp != nil || !isFull(b) || !hasSameAccess(b, l) || !p.isOfCluster(b, l) {
			continue
		}
		if b.Name == p.plan.Backup {
			return b
		}
		if at > best {
			out, best = b, at
		}
	}
	return out
}

// isFull reports whether a Backup is complete and has all that a log can go on from.
func isFull(b *v1alpha1.Backup) bool {
	return b.Status.State == v1alpha1.RunComplete && b.Spec.Type == v1alpha1.BackupPhysical && len(b.Spec.Databases)+len(b.Spec.Tables)+len(b.Spec.Filters) == 0
}

// hasSameAccess reports whether a Backup and a log are reached in the same way: BR takes one set of
// credentials.
func hasSameAccess(b *v1alpha1.Backup, l *v1alpha1.LogBackup) bool {
	one, other := bucketOf(b.Spec.Storage), bucketOf(l.Spec.Storage)
	return one != (bucket{}) && one == other
}

// isOfCluster reports whether a Backup shows the cluster of a log, whichever of its TiDBGroups it was made
// through.
func (p *planner) isOfCluster(b *v1alpha1.Backup, l *v1alpha1.LogBackup) bool {
	return b.Spec.TiDBGroup == l.Spec.TiDBGroup || slices.Contains(p.seen.Groups, b.Spec.TiDBGroup.Name)
}

// bucket is what of a storage says how it is reached.
type bucket struct {
	provider, account, name, endpoint, region, secret string
}

func bucketOf(s v1alpha1.Storage) bucket {
	secret := func(r *v1alpha1.LocalReference) string { return ptr.Deref(r, v1alpha1.LocalReference{}).Name }
	switch {
	case s.S3 != nil && s.S3.CASecret == nil:
		return bucket{"s3", "", s.S3.Bucket, s.S3.Endpoint, jobtemplate.RegionOf(s.S3), secret(s.S3.Secret)}
	case s.GCS != nil:
		return bucket{provider: "gcs", name: s.GCS.Bucket, secret: secret(s.GCS.Secret)}
	case s.Azblob != nil:
		return bucket{provider: "azblob", account: s.Azblob.Account, name: s.Azblob.Container, secret: s.Azblob.Secret.Name}
	}
	return bucket{}
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
