package basis

import (
	"slices"

	"k8s.io/utils/ptr"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/jobtemplate"
	"github.com/tidb-groups/tidb-groups/operators/backup/result"
)

// Log is what of a LogBackup decides which Backups it goes on from.
type Log struct {
	Spec v1alpha1.LogBackupSpec
	// Groups are the TiDBGroups of its cluster.
	Groups []string
}

// Span is from one time stamp to another, both in it.
type Span struct{ From, To uint64 }

// FindNewest returns the newest Backup of a span that a log goes on from; nil if there is none. One
// that was chosen before stays.
func FindNewest(backups []*v1alpha1.Backup, l Log, within Span, chosen string) *v1alpha1.Backup {
	var out *v1alpha1.Backup
	best := uint64(0)
	for _, b := range backups {
		at, known := result.ParseTSO(b.Status.TSO)
		if !known || at > within.To || at < within.From || b.DeletionTimestamp != nil || !isBasis(b, l) {
			continue
		}
		if b.Name == chosen {
			return b
		}
		if at > best {
			out, best = b, at
		}
	}
	return out
}

// FindOldest returns the time stamp of the oldest Backup that a log goes on from; 0 if there is none, or
// if that of any of them is not known.
func FindOldest(backups []*v1alpha1.Backup, l Log) uint64 {
	oldest := uint64(0)
	for _, b := range backups {
		if !isBasis(b, l) {
			continue
		}
		at, known := result.ParseTSO(b.Status.TSO)
		if !known {
			return 0
		}
		if oldest == 0 || at < oldest {
			oldest = at
		}
	}
	return oldest
}

// isBasis reports whether a log goes on from a Backup.
func isBasis(b *v1alpha1.Backup, l Log) bool {
	return b.Status.State == v1alpha1.RunComplete && DescribeMismatch(b.Spec.BackupTemplate, l) == ""
}

// DescribeMismatch says why no log goes on from the Backups of a template; empty if it does. They may be
// made through any TiDBGroup of its cluster.
func DescribeMismatch(b v1alpha1.BackupTemplate, l Log) string {
	switch {
	case b.Type != v1alpha1.BackupPhysical:
		return "makes logical Backups"
	case len(b.Databases)+len(b.Tables)+len(b.Filters) > 0:
		return "copies a part of the cluster"
	case !hasSameAccess(b.Storage, l.Spec.Storage):
		return "has another bucket or Secret, or a CA of its own"
	case b.TiDBGroup != l.Spec.TiDBGroup && !slices.Contains(l.Groups, b.TiDBGroup.Name):
		return "is of another cluster"
	}
	return ""
}

// hasSameAccess reports whether a Backup and a log are reached in the same way: BR takes one set of
// credentials.
func hasSameAccess(backup, log v1alpha1.Storage) bool {
	one, other := bucketOf(backup), bucketOf(log)
	return one != (bucket{}) && one == other
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
