package schedule

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
)

// SourceOf returns the name of the Backup that a Restore names, or has chosen; empty if it
// reads none by its name.
func SourceOf(r *v1alpha1.Restore) string {
	if r.Spec.From.Backup != nil {
		return r.Spec.From.Backup.Name
	}
	return r.Status.Backup
}

// FindRead returns the names of those Backups that a Restore which has not ended reads, by
// their name or by the folder that they lie in. Where a bucket is reached does not count:
// what may be read stays.
func FindRead(restores []v1alpha1.Restore, backups []*v1alpha1.Backup) map[string]bool {
	read := map[string]bool{}
	for i := range restores {
		r := &restores[i]
		if r.Status.HasEnded() {
			continue
		}
		read[SourceOf(r)] = true
		if r.Spec.From.Storage == nil {
			continue
		}
		folder := jobtemplate.Files{Storage: *r.Spec.From.Storage, Folder: r.Spec.From.Folder}.Location()
		for _, b := range backups {
			if jobtemplate.FilesOf(b).Location() == folder {
				read[b.Name] = true
			}
		}
	}
	return read
}

// ReadsLog reports whether a Restore that has not ended reads the log of a LogBackup, by its
// name or by the folder that it lies in.
func ReadsLog(r *v1alpha1.Restore, l *v1alpha1.LogBackup) bool {
	from := r.Spec.From
	switch {
	case r.Status.HasEnded():
		return false
	case from.LogBackup != nil:
		return from.LogBackup.Name == l.Name
	}
	return from.Storage != nil && from.LogFolder != "" &&
		jobtemplate.Files{Storage: *from.Storage, Folder: from.LogFolder}.Location() == jobtemplate.FilesOfLog(l).Location()
}
