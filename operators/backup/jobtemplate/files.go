package jobtemplate

import (
	"path"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
)

// Files are those of one backup.
type Files struct {
	Storage v1alpha1.Storage
	// Folder is named after the Backup, UID is the Backup's; empty if it is not known.
	Folder, UID string
	// Physical says that BR writes or reads them.
	Physical bool
	// Log is a log that is restored after them; nil for none.
	Log *Log
}

// Log is a log in the same storage: where its folder is, the UID of its LogBackup if that is known, and
// the time stamp to restore to, empty for its last.
type Log struct{ Folder, UID, Until string }

// FilesOf are the files of a Backup.
func FilesOf(b *v1alpha1.Backup) Files {
	return Files{Storage: b.Spec.Storage, Folder: b.Name, UID: string(b.UID), Physical: b.Spec.Type == v1alpha1.BackupPhysical}
}

// FilesOfLog are those of a LogBackup.
func FilesOfLog(l *v1alpha1.LogBackup) Files {
	return Files{Storage: l.Spec.Storage, Folder: l.Name, UID: string(l.UID), Physical: true}
}

// Path is the folder in the bucket or on the volume.
func (f Files) Path() string { return f.FolderPath(f.Folder) }

// FolderPath is a folder in the bucket or on the volume.
func (f Files) FolderPath(folder string) string {
	switch s := f.Storage; {
	case s.S3 != nil:
		return path.Join(s.S3.Prefix, folder)
	case s.GCS != nil:
		return path.Join(s.GCS.Prefix, folder)
	case s.Azblob != nil:
		return path.Join(s.Azblob.Prefix, folder)
	case s.PVC != nil:
		return path.Join(s.PVC.Path, folder)
	}
	return folder
}

// Location is what status says of them.
func (f Files) Location() string {
	switch s := f.Storage; {
	case s.S3 != nil:
		return "s3://" + s.S3.Bucket + "/" + f.Path()
	case s.GCS != nil:
		return "gcs://" + s.GCS.Bucket + "/" + f.Path()
	case s.Azblob != nil:
		return "azure://" + s.Azblob.Container + "/" + f.Path()
	case s.PVC != nil:
		return "pvc://" + s.PVC.ClaimName + "/" + f.Path()
	}
	return ""
}
