package controller

import "github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"

// What Jobs look like is in package job, and what the Backups of a schedule look like in
// package schedule. Here is what the statuses of Backups and Restores have in common.

// statusesOf returns pointers to the status that a run has and to the one that it gets.
func statusesOf(run v1alpha1.Run, after *v1alpha1.RunStatus) (before, written any) {
	if backup, is := run.(*v1alpha1.Backup); is {
		return &backup.Status, &v1alpha1.BackupStatus{RunStatus: *after}
	}
	restore, _ := run.(*v1alpha1.Restore)
	return &restore.Status, &v1alpha1.RestoreStatus{RunStatus: *after}
}
