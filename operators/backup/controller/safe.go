package controller

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/schedule"
)

// What harms here is to delete a Backup, with which its files may go. Only retention does,
// which the pure package schedule decides; here stands what act.go checks again on the
// newest versions. A pod deletes files only if their backup.json has the UID of the Backup.

// mayDelete reports whether a Backup that was planned to be deleted may be, as it is now: the
// schedule asks for it still, and has made it.
func mayDelete(s *v1alpha1.BackupSchedule, live *v1alpha1.Backup, planned types.UID) bool {
	limited := s.Spec.MaxBackups != nil || s.Spec.MaxAge != nil
	return limited && !s.Spec.Paused && s.DeletionTimestamp == nil &&
		live.UID == planned && live.DeletionTimestamp == nil && schedule.IsOwn(s, live) && live.Name != s.Status.LastBackup
}
