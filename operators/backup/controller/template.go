package controller

import (
	"github.com/tidb-groups/tidb-groups/apis/groups/v1alpha1"
	"github.com/tidb-groups/tidb-groups/operators/backup/job"
)

// What Jobs look like is in package job, and what the Backups of a schedule look like in
// package schedule. Here is what the statuses of Backups, LogBackups and Restores have in common.

// statusesOf returns pointers to the status that a run has and to the one that it gets.
func statusesOf(run v1alpha1.Run, p job.Plan, after *v1alpha1.RunStatus) (before, written any) {
	switch of := run.(type) {
	case *v1alpha1.Backup:
		return &of.Status, &v1alpha1.BackupStatus{RunStatus: *after}
	case *v1alpha1.LogBackup:
		out := p.Log
		out.RunStatus = *after
		return &of.Status, &out
	}
	restore, _ := run.(*v1alpha1.Restore)
	return &restore.Status, &v1alpha1.RestoreStatus{RunStatus: *after, Backup: p.Backup}
}
